"""How far tasks are is shown while they run, and only to people."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ottla.cli.pipeline.progress import make_watcher
from ottla.cli.spark.progress import session_of
from ottla.names import TopicPartition
from ottla.spark.pipeline.checkpoint import Plan
from ottla.spark.read.ranges import Split
from ottla.spark.read.stream import Position
from ottla.spark.session.task_progress import watched_tasks
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.jobs.helping import Here
from tests.spark.pipeline.helpers import write_pipeline

ORDERS = TopicPartition("orders", 0)
TASKS = 3


class Terminal(io.StringIO):
    """Opens a gate when it has shown tasks."""

    def __init__(self, gate: Path | None = None) -> None:
        super().__init__()
        self._gate = gate

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._gate is not None and f"0 of {TASKS} tasks" in text:
            self._gate.touch()
        return super().write(text)


def look_at(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")


def run_until(spark: SparkSession, gate: Path) -> None:
    """Tasks that end when the gate is there."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            deadline = time.monotonic() + 120
            while not gate.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            yield batch

    spark.range(0, TASKS, 1, TASKS).mapInArrow(wait, "id long").collect()


def test_the_driver_is_told_how_many_tasks_are_done(spark: SparkSession, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        (tmp_path / "gate").touch()

    with watched_tasks(spark, tell):
        run_until(spark, tmp_path / "gate")
    assert told[0] == (0, TASKS)
    assert all(done <= total == TASKS for done, total in told)


def test_a_command_shows_its_tasks_on_a_terminal(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(tmp_path / "gate")
    look_at(monkeypatch, terminal)
    with session_of(Here(spark=spark), "spark verify") as session:
        run_until(session, tmp_path / "gate")
    assert "spark verify" in terminal.getvalue()
    assert f"0 of {TASKS} tasks" in terminal.getvalue()


def test_a_command_is_quiet_where_nobody_looks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gate").touch()
    with session_of(Here(spark=spark), "spark verify") as session:
        run_until(session, tmp_path / "gate")
    assert capsys.readouterr() == ("", "")


def test_a_pipeline_shows_how_far_a_batch_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    position = Position({ORDERS: 0}, {})
    plan = Plan(7, position, position, (Split(ORDERS, 0, 1000, 100, 0),))
    with EmbeddedBroker() as broker:
        pipeline = write_pipeline(tmp_path, broker, "orders")
    look_at(monkeypatch, terminal)
    with make_watcher(pipeline) as watcher:
        watcher.planned(plan, behind=1000)
        watcher.tasks(1, 4)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "record 250 of 2,000 batch 7: reading, 1 of 4 tasks" in shown
