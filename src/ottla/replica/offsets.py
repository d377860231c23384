"""Questions about offsets: by time, by leader epoch; and the one change of them that clients ask for, DeleteRecords."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.errors import BrokerError, OffsetOutOfRangeError, PolicyViolationError
from ottla.names import TopicPartition
from ottla.replica.epochs import end_of_epoch, known_epochs
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.partition import Partition
from ottla.replica.results import DeleteResult, EpochEndResult, OffsetResult
from ottla.replica.waits import DelayedDeleteRecords, Purgatories
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation, TimestampOffset
from ottla.storage.log_manager import LogManager

_logger = logging.getLogger(__name__)

# What a client may ask for in place of a time.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4  # without tiered storage the same as the earliest
LATEST_TIERED = -5  # without tiered storage there is none,
EARLIEST_PENDING_UPLOAD = -6  # nor this

HIGH_WATERMARK = -1  # what DeleteRecords may ask for in place of an offset

Listed = Callable[[OffsetResult], None]
Deleted = Callable[[dict[TopicPartition, DeleteResult]], None]


@dataclass(eq=False)
class Offsets:
    """Of the partitions that this broker leads."""

    _hosted: Hosted
    _purgatories: Purgatories
    _lanes: Lanes
    _logs: LogManager

    # -- by time

    def list_offset(
        self,
        key: TopicPartition,
        timestamp: int,
        isolation: Isolation,
        current_leader_epoch: int,
        done: Listed,
    ) -> None:
        """The first offset at or after a time, or one of the special ones above. `done` comes at once for most."""
        try:
            partition, log = self._leader(key, current_leader_epoch)
            limit = partition.limit(log, isolation)
        except BrokerError as error:
            done(OffsetResult(key, error.code))
            return
        if timestamp == LATEST:
            done(OffsetResult(key, 0, -1, limit, partition.leader_epoch))
        elif timestamp in (EARLIEST, EARLIEST_LOCAL):
            done(OffsetResult(key, 0, -1, log.start_offset, _first_epoch(partition, log)))
        elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            done(OffsetResult(key))
        else:
            find = _find_latest if timestamp == MAX_TIMESTAMP else log_reader.find_timestamp
            self._lanes.on(
                partition,
                lambda log: find(log, timestamp),
                lambda found, error: done(_found(key, found, limit, error)),
            )

    def _leader(self, key: TopicPartition, current_leader_epoch: int) -> tuple[Partition, Log]:
        partition = self._hosted.find(key)
        log = partition.leader_log()
        partition.check_epoch(current_leader_epoch)
        return partition, log

    # -- by leader epoch

    def end_offset_for_epoch(
        self, key: TopicPartition, current_leader_epoch: int, leader_epoch: int
    ) -> EpochEndResult:
        """Where an epoch ends in this log: followers and consumers find out by that where they parted from it."""
        try:
            partition, log = self._leader(key, current_leader_epoch)
        except BrokerError as error:
            return EpochEndResult(key, error.code)
        return EpochEndResult(key, 0, *end_of_epoch(partition, log, leader_epoch))

    # -- deleting

    def delete_records(self, offsets: Mapping[TopicPartition, int], timeout_ms: int, done: Deleted) -> None:
        """Raise log starts to these offsets (-1: the high watermark); `done` when every replica has followed."""
        results: dict[TopicPartition, DeleteResult] = {}
        left = len(offsets)
        waiting: list[tuple[Partition, int]] = []

        def deleted(key: TopicPartition, reached: int | None, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            partition = self._hosted.partitions.get(key)
            if error is None and reached is not None and partition is not None:
                waiting.append((partition, reached))
            else:
                results[key] = DeleteResult(_code(key, error or self._hosted.missing(key)))
            if not left:
                wait = DelayedDeleteRecords(results, waiting, done)
                keys = [partition for partition, _ in waiting]
                self._purgatories.delete_records.try_complete_else_watch(wait, keys, timeout_ms)

        if not offsets:
            done(results)
        for key, offset in offsets.items():
            self._delete(key, offset, deleted)

    def _delete(
        self,
        key: TopicPartition,
        offset: int,
        deleted: Callable[[TopicPartition, int | None, BaseException | None], None],
    ) -> None:
        try:
            partition = self._hosted.find(key)
            log = partition.leader_log()
            if not log.config.delete:
                raise PolicyViolationError(f"{key}: its cleanup.policy does not allow to delete records")
            wanted = _checked_start(log, offset)
        except BrokerError as error:
            deleted(key, None, error)
            return
        write = self._logs.plan_start(log, wanted) if wanted > log.start_offset else _nothing
        self._lanes.on(
            partition,
            lambda log: _raise_start(log, wanted, write),
            lambda reached, error: deleted(key, reached, error),
        )


def _checked_start(log: Log, offset: int) -> int:
    wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= wanted <= log.high_watermark:
        raise OffsetOutOfRangeError(
            f"{log.partition}: {offset} is no offset up to the high watermark {log.high_watermark}"
        )
    return wanted


def _raise_start(log: Log, wanted: int, write: Callable[[], None]) -> int:
    """On disk first, and before the leader epochs are cut: a kill in between must not bring back what is deleted."""
    write()
    log.raise_start_offset(wanted)
    return wanted


def _nothing() -> None: ...


def _find_latest(log: Log, _: int) -> TimestampOffset | None:
    return log_reader.max_timestamp(log)


def _found(
    key: TopicPartition, found: TimestampOffset | None, limit: int, error: BaseException | None
) -> OffsetResult:
    if error is not None:
        return OffsetResult(key, _code(key, error))
    if found is None or found.offset >= limit:
        return OffsetResult(key)
    return OffsetResult(key, 0, *found)


def _code(key: TopicPartition, error: BaseException | None) -> int:
    if isinstance(error, BrokerError):
        return error.code
    _logger.error("looking into %s failed", key, exc_info=error)
    return BrokerError.code


def _first_epoch(partition: Partition, log: Log) -> int:
    epoch, start_offset = known_epochs(partition, log)[0]
    return epoch if start_offset <= log.start_offset else -1
