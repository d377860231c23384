"""Mends the logs of a data directory: checked by segment, mended by partition.

A task plans anew what it does: where one was lost half-way, the next goes on from what it finds. Each step leaves a
log that a broker can open.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from ottla.logtools.listing import DataDir, Partition, all_partitions_of, list_partition
from ottla.logtools.repair.log import repair_log
from ottla.logtools.repair.plan import RepairPlan, Step, plan_from
from ottla.logtools.verify.data_dir import surroundings
from ottla.spark.jobs.tasks import TASK_BYTES, refuse_speculation, run_tasks
from ottla.spark.jobs.verify import verify_logs
from ottla.storage.fs import FileSystem, RealFileSystem

_Todo = tuple[str, bool, int]


@dataclass(slots=True)
class Mended:
    """What was done to a log, and what is left."""

    steps: list[Step]
    left: RepairPlan


def plan_repairs(
    spark: SparkSession,
    fs: FileSystem,
    target: DataDir | Partition,
    *,
    skip_corrupt: bool,
    task_bytes: int = TASK_BYTES,
) -> list[tuple[Partition, RepairPlan]]:
    """What would mend each log."""
    logs = [(partition, surroundings(fs, partition)) for partition in all_partitions_of(fs, target)]
    reports = verify_logs(spark, fs, logs, task_bytes)
    return [
        (partition, plan_from(report, skip_corrupt=skip_corrupt))
        for (partition, _), report in zip(logs, reports, strict=True)
    ]


def apply_repairs(
    spark: SparkSession, planned: list[tuple[Partition, RepairPlan]], *, skip_corrupt: bool, now_ms: int
) -> list[tuple[Partition, Mended]]:
    """Mend the logs that need it. Checkpoints are left to the caller."""
    refuse_speculation(spark)
    todo = [(plan.partition.path, skip_corrupt, now_ms) for _, plan in planned if plan.steps]
    done = iter(run_tasks(spark, _mend, todo))
    return [(partition, next(done) if plan.steps else Mended([], plan)) for partition, plan in planned]


def _mend(todo: _Todo) -> Mended:
    path, skip_corrupt, now_ms = todo
    fs = RealFileSystem()
    steps: list[Step] = []
    left = repair_log(
        fs, list_partition(fs, path), skip_corrupt=skip_corrupt, now_ms=now_ms, tell=steps.extend
    )
    return Mended(steps, left)
