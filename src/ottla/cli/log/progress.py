"""A progress bar on stderr for work that takes long; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.logtools.listing import Target, all_partitions_of
from ottla.storage.fs import FileSystem

_WORTH_A_BAR_BYTES = 64 << 20


@contextmanager
def progress_bar(fs: FileSystem, target: Target, doing: str) -> Iterator[Callable[[int], None]]:
    """Gives what to call with the number of log bytes done since the last call."""
    total = sum(partition.size for partition in all_partitions_of(fs, target)) if sys.stderr.isatty() else 0
    if total < _WORTH_A_BAR_BYTES:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.update(task, advance=done)
