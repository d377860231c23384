"""Takes the directories of logs out of the way: renamed now, removed when file.delete.delay.ms is over."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence

from ottla.errors import DiskFullError
from ottla.names import TopicPartition
from ottla.storage import layout
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.opened_dir import OpenedDir

# (when, where, path) of `-delete` directories; any thread may add to it.
Doomed = deque[tuple[int, LogDir, str]]


def rename(
    opened: OpenedDir, logs: Sequence[Log], paths: Sequence[str], cleaned: dict[TopicPartition, int] | None
) -> None:
    """Close logs of one directory and give them other names, with one sync for all. `cleaned`: what
    cleaner-offset-checkpoint says now, where it named one of them."""
    fs, log_dir = opened.dir.fs, opened.dir
    try:
        for log, path in zip(logs, paths, strict=True):
            log.abandon()
            fs.rename(log.path, path)
        fs.sync_dir(log_dir.path)
    except OSError as error:
        raise log_dir.fail(error, f"deleting {logs[0].partition}") from error
    if cleaned is not None:
        with contextlib.suppress(DiskFullError):  # what it says of logs that are gone is no harm
            opened.write(layout.CLEANER_OFFSETS, cleaned)


def take_due(doomed: Doomed, now_ms: int) -> list[tuple[LogDir, str]]:
    """Those whose delay is over, for the caller to remove."""
    due = []
    for _ in range(len(doomed)):  # one by one: other threads add to it
        entry = doomed.popleft()
        if entry[0] <= now_ms:
            due.append(entry[1:])
        else:
            doomed.append(entry)
    return due
