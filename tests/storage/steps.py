"""What happens to the logs of a manager, put together from the parts that a broker runs on its threads."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from ottla.errors import StorageError
from ottla.names import TopicPartition
from ottla.storage import upkeep
from ottla.storage.log import truncation
from ottla.storage.log_manager import LogManager


def truncate(manager: LogManager, partition: TopicPartition, offset: int) -> None:
    """Drop every record from `offset` on."""
    log = manager._logs[partition]
    if truncation.truncate_to(log, offset, partial(manager.write_recovery_point, log)):
        manager.checkpoint(log.dir)


def truncate_fully(manager: LogManager, partition: TopicPartition, offset: int) -> None:
    """Drop every record; the next one gets `offset`."""
    log = manager._logs[partition]
    truncation.truncate_fully_and_start_at(log, offset, partial(manager.write_recovery_point, log))
    manager.checkpoint(log.dir)


def delete(manager: LogManager, partition: TopicPartition) -> None:
    log_dir = manager._logs[partition].dir
    manager.plan_removal([partition])()
    manager.checkpoint(log_dir)


def apply_retention(manager: LogManager) -> None:
    """Retention of every log, and the directories of deleted ones whose delay is over."""
    for log in manager.logs.values():
        with suppress(StorageError):  # its directory is offline now
            upkeep.retain(log, manager._runtime.now_ms())
    for log_dir, path in manager.take_doomed():
        upkeep.remove_dir(log_dir, path)
