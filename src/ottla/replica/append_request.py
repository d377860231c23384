"""One append request under way: what it asked for, what has become of each of its entries, and how it ends.

The loop (appends.py), the thread that checks (slow_appends.py) and the lanes of the log directories all write their
results here. When the last one is there, the request is answered, or waits for replicas.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ottla.errors import (
    BrokerError,
    CorruptRecordError,
    DiskFullError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RefusedRecordsError,
    StorageError,
    UnknownTopicOrPartitionError,
    UnpackedTooLargeError,
)
from ottla.metrics import Metrics
from ottla.names import Bytes, TopicPartition
from ottla.replica.lanes import Lanes
from ottla.replica.partition import ALL_REPLICAS, Partition
from ottla.replica.results import AppendResult
from ottla.replica.waits import DelayedProduce, Purgatories, Unreplicated
from ottla.storage.log.log import AppendInfo
from ottla.storage.log.validation import Origin, Validated

_logger = logging.getLogger(__name__)

UNKNOWN_SERVER_ERROR: Final = BrokerError.code
# A client's or the cluster's everyday: not counted as failures of the broker, and told without a log start.
_EXPECTED: Final = (
    UnknownTopicOrPartitionError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    RecordBatchTooLargeError,
    CorruptRecordError,
    StorageError,
)
# Of these a client is told in words: what to do is not clear from the code.
_TOLD: Final = (DiskFullError, UnpackedTooLargeError)
_NO_RESULT: Final = AppendResult(TopicPartition("", -1))  # yet

Appended = Callable[[list[AppendResult]], None]


class AppendRequest:
    """Used on the loop only."""

    __slots__ = (
        "_done", "_grown", "_left", "_metrics", "_purgatories", "_results", "_timeout_ms", "_unreplicated", "acks",
        "origin",
    )  # fmt: skip

    def __init__(
        self,
        purgatories: Purgatories,
        metrics: Metrics,
        acks: int,
        timeout_ms: int,
        origin: Origin,
        done: Appended,
        count: int,
    ) -> None:
        self._purgatories = purgatories
        self._metrics = metrics
        self.acks = acks
        self._timeout_ms = timeout_ms
        self.origin = origin
        self._done = done
        self._results = [_NO_RESULT] * count
        self._unreplicated: list[Unreplicated] = []  # for acks=all
        self._grown: list[tuple[Partition, bool]] = []  # and whether the high watermark moved
        self._left = 0  # entries that lanes have yet to append

    def succeeded(self, place: int, partition: Partition, info: AppendInfo, moved: bool, size: int) -> None:
        """An entry of so many bytes is appended."""
        if self.acks == ALL_REPLICAS:
            log = partition.log
            assert log is not None
            if log.high_watermark <= info.last_offset:
                self._unreplicated.append(
                    Unreplicated(place, partition, info.last_offset + 1, partition.leader_epoch)
                )
        self._results[place] = success(partition, info, size)
        self._grown.append((partition, moved))

    def failed(
        self, place: int, key: TopicPartition, partition: Partition | None, size: int, error: BaseException
    ) -> None:
        if partition is None:
            assert isinstance(error, BrokerError)
            self._metrics.known_topic(key.topic).produce_requests += 1
            self._results[place] = AppendResult(key, error.code)
        else:
            self._results[place] = failure(partition, size, error)

    def append_on_lane(
        self,
        lanes: Lanes,
        place: int,
        partition: Partition,
        records: Bytes,
        checked: Validated | None,
        then: Callable[[], None],
    ) -> None:
        """Append an entry where its log is lent to, or on the thread of its directory; then `then`."""
        size = len(records)
        # A copy: whoever called has the buffer back before the lane gets to it.
        copy = bytearray(records) if checked is None else b""

        def append() -> tuple[AppendInfo, bool]:
            if checked is not None:
                return partition.append_validated(checked, self.acks)
            return partition.append(copy, self.acks, self.origin)

        def appended(result: tuple[AppendInfo, bool] | None, error: BaseException | None) -> None:
            if error is None and partition.log is None:
                error = NotLeaderOrFollowerError(f"{partition.key} was deleted meanwhile")
            if result is None or error is not None:
                error = error or RuntimeError("an append was broken off")
                self.failed(place, partition.key, partition, size, error)
            else:
                self.succeeded(place, partition, result[0], True, size)
            then()

        lanes.on(partition, lambda _: append(), appended, must_flush=partition.is_durable)

    def wait_for_lanes(self, count: int) -> None:
        self._left = count

    def one_lane_done(self) -> None:
        self._left -= 1
        if not self._left:
            self.finish()

    def finish(self) -> DelayedProduce | None:
        """Every entry has its result: answer, or wait for replicas; and wake who waits for what was appended."""
        wait = None
        if self._unreplicated:
            wait = DelayedProduce(self._results, self._unreplicated, self._done)
            keys = [entry.partition for entry in self._unreplicated]
            if self._purgatories.produce.try_complete_else_watch(wait, keys, self._timeout_ms):
                wait = None
        else:
            self._done(self._results)
        for partition, moved in self._grown:
            wake(self._purgatories, partition, moved)
        return wait


def wake(purgatories: Purgatories, partition: Partition, moved: bool) -> None:
    """Let those go on who wait for what was appended, or for the high watermark, if that moved."""
    if not any(partition in watched for watched in purgatories.watched):
        return
    if moved:
        purgatories.high_watermark_moved(partition)
    else:
        purgatories.fetch.check(partition)  # followers read past the high watermark


def success(partition: Partition, info: AppendInfo, size: int) -> AppendResult:
    log = partition.log
    assert log is not None
    first_offset, last_offset, _, append_time, _, _ = info
    metrics = partition.metrics
    metrics.produce_requests += 1
    metrics.bytes_in += size
    metrics.messages_in += last_offset - first_offset + 1
    # Not AppendResult(...), as in validation.py.
    return tuple.__new__(
        AppendResult, (partition.key, 0, None, first_offset, append_time, log.start_offset, ())
    )


def failure(partition: Partition, size: int, error: BaseException) -> AppendResult:
    """What the client is told, and whether it counts as a failure of this broker."""
    key, metrics = partition.key, partition.metrics
    metrics.produce_requests += 1
    if isinstance(error, RecordTooLargeError):
        metrics.bytes_rejected += size
    if isinstance(error, DiskFullError):
        metrics.failed_produce_requests += 1
    if isinstance(error, _TOLD):
        return AppendResult(key, error.code, str(error))
    if isinstance(error, _EXPECTED):
        return AppendResult(key, error.code)
    metrics.failed_produce_requests += 1
    start_offset = partition.log.start_offset if partition.log is not None else -1
    if isinstance(error, RefusedRecordsError) and error.record_errors:
        return AppendResult(
            key, error.code, str(error), log_start_offset=start_offset, record_errors=error.record_errors
        )
    if isinstance(error, BrokerError):
        return AppendResult(key, error.code, log_start_offset=start_offset)
    _logger.error("appending to %s failed", key, exc_info=error)
    return AppendResult(key, UNKNOWN_SERVER_ERROR, log_start_offset=start_offset)
