"""Mends the logs of a data directory: checked by segment, mended by partition.

A task plans anew what it does: where one was lost half-way, the next goes on from what it finds. Each step leaves a
log that a broker can open.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from ottla.logtools.repair import RepairPlan, mend, plan_from, plan_repair
from ottla.logtools.source import DataDir, Partition, list_partition, partitions_of
from ottla.logtools.verify import Surroundings
from ottla.logtools.verify_data_dir import surroundings
from ottla.spark.jobs.tasks import TASK_BYTES, refuse_speculation, run_tasks
from ottla.spark.jobs.verify import verify_logs
from ottla.storage.fs import FileSystem, RealFileSystem

_Todo = tuple[str, Surroundings, bool]


def plan_repairs(
    spark: SparkSession,
    fs: FileSystem,
    target: DataDir | Partition,
    *,
    skip_corrupt: bool,
    task_bytes: int = TASK_BYTES,
) -> list[tuple[Partition, RepairPlan]]:
    """What would mend each log."""
    logs = [(partition, surroundings(fs, partition)) for partition in partitions_of(fs, target)]
    reports = verify_logs(spark, fs, logs, task_bytes)
    return [
        (partition, plan_from(report, skip_corrupt=skip_corrupt))
        for (partition, _), report in zip(logs, reports, strict=True)
    ]


def apply_repairs(
    spark: SparkSession,
    fs: FileSystem,
    planned: list[tuple[Partition, RepairPlan]],
    *,
    skip_corrupt: bool,
) -> None:
    """Mend the logs, and note in the plans where they end then. Checkpoints are left to the caller."""
    refuse_speculation(spark)
    plans = [plan for _, plan in planned if plan.steps]
    todo = [
        (plan.partition.path, surroundings(fs, partition), skip_corrupt)
        for partition, plan in planned
        if plan.steps
    ]
    for plan, end_offset in zip(plans, run_tasks(spark, _mend, todo), strict=True):
        plan.end_offset = end_offset


def _mend(todo: _Todo) -> int:
    path, around, skip_corrupt = todo
    fs = RealFileSystem()
    plan = plan_repair(fs, list_partition(fs, path), around, lambda _: None, skip_corrupt=skip_corrupt)
    if plan.steps:
        mend(fs, plan)
    return plan.end_offset
