"""The regular work on one log, or on what is left of one: flush by time, retention, delayed deletion.

Each is called by whoever owns the log, when it is time. A broker does that log by log on its threads
(replica/background.py); `run_once` is for a program that has the logs to itself.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ottla.errors import StorageError
from ottla.runtime import Runtime
from ottla.storage.cleaning import compaction
from ottla.storage.log import retention
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.log_manager import LogManager

_logger = logging.getLogger(__name__)


def flush_is_due(log: Log, monotonic_ms: int) -> bool:
    """Whether something is unflushed, and the last flush is flush.ms ago."""
    unflushed = log.recovery_point < log.end_offset
    return unflushed and monotonic_ms - log.flusher.flushed_ms >= log.config.flush_ms


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


def run_once(logs: LogManager, runtime: Runtime) -> None:
    """All regular work that is due now. What takes long, flushing and compaction, goes to the runtime's threads."""
    for log in logs.logs.values():
        if flush_is_due(log, runtime.monotonic_ms()):
            log.flusher.request()
        with suppress(StorageError):  # its directory is offline now
            retain(log, runtime.now_ms())
        log.producers.remove_expired(runtime.now_ms())
    for log_dir, path in logs.take_doomed():
        remove_dir(log_dir, path)
    clean_dirtiest(logs)
    logs.checkpoint()


def clean_dirtiest(logs: LogManager) -> Log | None:
    """Begin to compact the log that needs it most; None if none does, or as many as allowed are under way."""
    cleaner = logs.cleaner
    if not cleaner.may_start:
        return None
    compacted = [log for log in logs.logs.values() if log.config.compact]
    plans = {log: cleaner.plan(log, logs.cleaned_to(log)) for log in compacted}
    best = compaction.dirtiest(plans.values())
    if best is None:
        return None
    log = next(log for log, plan in plans.items() if plan is best)
    cleaner.begin(log, best, lambda log, offset: logs.note_cleaned(log, offset)())
    return log
