"""A running count of records on stderr for work that takes long; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def record_counter(doing: str, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Gives what to call with the number of records done since the last call."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("records {task.description}: {task.completed:,.0f}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None, rate="")

        def advance(count: int) -> None:
            speed = progress.tasks[0].speed
            progress.update(task, advance=count, rate=f"{speed:,.0f}/s" if speed else "")

        yield advance
