"""Checks all logs of a data directory: segments in tasks, what they say together on the driver.

A partition that looks damaged because a running broker changed it meanwhile, or because of a file under a wrong name,
is checked again in one task.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ottla.logtools.findings import Finding
from ottla.logtools.listing import DataDir, Partition, SegmentFiles
from ottla.logtools.verify.data_dir import DataDirCheck, partition_findings, surroundings
from ottla.logtools.verify.log import LogCheck, settle, verify_log
from ottla.logtools.verify.log_report import LogReport, Surroundings
from ottla.logtools.verify.segment import check_segment
from ottla.logtools.verify.segment_facts import SegmentFacts
from ottla.spark.jobs.tasks import TASK_BYTES, Sized, run_blocks, run_tasks
from ottla.storage.fs import FileSystem, RealFileSystem

Log = tuple[Partition, Surroundings]


@dataclass(frozen=True, slots=True)
class _Segment:
    """One segment to check, with what its log knows of it."""

    files: SegmentFiles
    next_base: int | None
    epochs: bytes  # the epoch checkpoint, as int64

    def check(self) -> SegmentFacts:
        return check_segment(
            RealFileSystem(), self.files, self.next_base, array("q", self.epochs), lambda _: None
        )


def verify(
    spark: SparkSession, fs: FileSystem, target: DataDir | Partition, task_bytes: int = TASK_BYTES
) -> Iterator[Finding]:
    """All findings, in the order of the files."""
    if isinstance(target, Partition):
        report = verify_logs(spark, fs, [(target, surroundings(fs, target))], task_bytes)[0]
        yield from partition_findings(fs, target, report)
        return
    check = DataDirCheck(fs, target)
    yield from check.own.all()
    logs = list(check.logs())
    reports = verify_logs(spark, fs, logs, task_bytes)
    for (partition, _), report in zip(logs, reports, strict=True):
        yield from report.findings.all()
        check.add(partition, report)
    yield from check.finish().all()


def verify_logs(
    spark: SparkSession, fs: FileSystem, logs: list[Log], task_bytes: int = TASK_BYTES
) -> list[LogReport]:
    """The report of each log."""
    checks = [LogCheck(fs, partition, around) for partition, around in logs]
    segments = [
        Sized(_Segment(files, check.partition.next_base(files), epochs), files.size)
        for check in checks
        for epochs in (check.epochs.known.tobytes(),)
        for files in check.partition.segments
    ]
    found = iter(run_blocks(spark, _Segment.check, segments, task_bytes))
    reports: list[LogReport] = []
    again: list[tuple[int, Log]] = []
    for number, check in enumerate(checks):
        report = check.judge(next(found) for _ in check.partition.segments)
        now = settle(fs, check, report)
        is_listed = check.partition.unreadable is None
        if now is not None or not is_listed or report.may_have_strangers(logs[number][1]):
            again.append((number, (now or check.partition, logs[number][1])))
        reports.append(report)
    for (number, _), report in zip(again, run_tasks(spark, _again, [log for _, log in again]), strict=True):
        reports[number] = report
    return reports


def _again(log: Log) -> LogReport:
    partition, around = log
    return verify_log(RealFileSystem(), partition, around, lambda _: None)
