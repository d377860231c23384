"""A Spark session for a command, with a bar of its tasks on stderr; no bar where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ottla.cli.options import SparkOptions
from ottla.spark.session.task_progress import watched_tasks


@contextmanager
def session_of(place: SparkOptions, job: str) -> Iterator[SparkSession]:
    if not sys.stderr.isatty():
        with place.session(job) as session:
            yield session
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[tasks]}"),
        TimeElapsedColumn(),
    )
    # What is printed meanwhile goes above the bar only where both are on the terminal.
    progress = Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()
    )
    with progress:
        bar = progress.add_task("starting Spark", total=None, tasks="")

        def tell(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total, tasks=f"{done:,} of {total:,} tasks")

        with place.session(job) as session:
            progress.update(bar, description=job)
            with watched_tasks(session, tell):
                yield session
