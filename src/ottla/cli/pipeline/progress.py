"""How a running pipeline is shown: a moving line on a terminal, a line a batch elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.spark.pipeline.config import Pipeline
from ottla.words import counted

if TYPE_CHECKING:
    from ottla.spark.pipeline.checkpoint import Plan
    from ottla.spark.pipeline.tasks import TaskResult


class Lines:
    """A line a batch, on stderr."""

    def planned(self, plan: Plan, behind: int) -> None:
        """Nothing: the line comes with the commit."""

    def written(self, plan: Plan, results: Sequence[TaskResult]) -> None:
        """Nothing: the line comes with the commit."""

    def quarantined(self, plan: Plan, bad: int) -> None:
        """Nothing: the number of bad rows is in the commit's line."""

    def committed(self, plan: Plan, facts: dict[str, Any]) -> None:
        bad = f", {facts['bad']:,} bad" if facts["bad"] else ""
        seconds = facts["took_ms"] / 1000
        self._say(
            f"batch {plan.batch}: {counted(facts['read'], 'record')}, {counted(facts['rows'], 'row')}{bad},"
            f" {seconds:.1f} s"
        )

    def tasks(self, done: int, total: int) -> None:
        """Nothing: only a bar shows single tasks."""

    def note(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@contextmanager
def make_watcher(pipeline: Pipeline) -> Iterator[Lines]:
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    where = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("record {task.completed:,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[more]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*where, console=console, redirect_stdout=sys.stdout.isatty()) as progress:
        yield _Bar(progress, pipeline.file.stem)


class _Bar(Lines):
    """What is left to read as a bar; notes stand above it."""

    def __init__(self, progress: Any, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=0, more="")
        self._done = 0
        self._rows = 0
        self._bad = 0
        self._batch: Plan | None = None  # that tasks read at present

    def planned(self, plan: Plan, behind: int) -> None:
        self._batch = plan
        total = self._done + _size(plan) + behind
        self._progress.update(self._task, total=total, more=f"batch {plan.batch}: reading")

    def tasks(self, done: int, total: int) -> None:
        batch = self._batch
        if batch is not None:
            read = self._done + _size(batch) * done // total
            more = f"batch {batch.batch}: reading, {done:,} of {total:,} tasks"
            self._progress.update(self._task, completed=read, more=more)

    def written(self, plan: Plan, results: Sequence[TaskResult]) -> None:
        self._batch = None
        self._progress.update(self._task, more=f"batch {plan.batch}: committing")

    def committed(self, plan: Plan, facts: dict[str, Any]) -> None:
        self._done += _size(plan)
        self._rows += facts["rows"]
        self._bad += facts["bad"]
        bad = f", {self._bad:,} bad" if self._bad else ""
        self._progress.update(self._task, completed=self._done, more=f"{counted(self._rows, 'row')}{bad}")

    def _say(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)


def _size(plan: Plan) -> int:
    return sum(split.end - split.start for split in plan.splits)
