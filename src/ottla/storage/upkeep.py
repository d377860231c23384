"""The regular work on one log, or on what is left of one: flush by time, retention, delayed deletion.

Each is called by whoever owns the log, when it is time.
"""

from __future__ import annotations

import logging

from ottla.storage import retention
from ottla.storage.log import Log
from ottla.storage.log_dir import LogDir

_logger = logging.getLogger(__name__)


def flush_is_due(log: Log, monotonic_ms: int) -> bool:
    """Whether something is unflushed, and the last flush is flush.ms ago."""
    unflushed = log.recovery_point < log.end_offset
    return unflushed and monotonic_ms - log.flusher.flushed_ms >= log.config.flush_ms


def flush_if_due(log: Log, monotonic_ms: int) -> None:
    """Ask for a flush if the log's flush.ms is over."""
    if flush_is_due(log, monotonic_ms):
        log.flusher.request()


def retain(log: Log, now_ms: int) -> int:
    """Take out the segments that retention does not keep, and unlink those whose delay is over; how many went out."""
    removed = len(retention.apply(log, now_ms))
    log.delete_due_files()
    return removed


def remove_dir(log_dir: LogDir, path: str) -> None:
    """Remove the directory of a deleted partition, with all files that are in it. What is not a partition's, a link or
    a folder, is left for whoever put it there: behind it may lie files that are not the broker's."""
    if log_dir.offline:
        return
    fs = log_dir.fs
    try:
        if fs.is_link(path):
            _logger.warning("%s is a symbolic link: what it leads to is left alone; remove it by hand", path)
            return
        left = []
        for name in fs.list_dir(path):
            inner = f"{path}/{name}"
            if fs.is_dir(inner) and not fs.is_link(inner):
                left.append(name)
            else:
                fs.unlink(inner)
        if left:
            _logger.warning("%s is kept, because it holds a folder (%s); remove it by hand", path, left[0])
        else:
            fs.remove_dir(path)
    except OSError as error:
        log_dir.fail(error, f"removing {path}")
