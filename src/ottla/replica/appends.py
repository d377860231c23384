"""Produce below the api floor: append to each partition, raise high watermarks, wake who waits, answer or wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.errors import (
    BrokerError,
    CorruptRecordError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    StorageError,
    UnknownTopicOrPartitionError,
)
from ottla.replica.hosted import Hosted
from ottla.replica.partition import ALL_REPLICAS, Partition
from ottla.replica.results import AppendResult
from ottla.replica.waits import DelayedProduce, Purgatories, Unreplicated
from ottla.storage.fs import Bytes
from ottla.storage.layout import TopicPartition
from ottla.storage.validation import Origin

_logger = logging.getLogger(__name__)

UNKNOWN_SERVER_ERROR = BrokerError.code
_ACKS = (-1, 0, 1)
_CLIENT = Origin.CLIENT
# A client's or the cluster's everyday: not counted as failures of the broker, and told without a log start.
_EXPECTED = (
    UnknownTopicOrPartitionError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    RecordBatchTooLargeError,
    CorruptRecordError,
    StorageError,
)

Appended = Callable[[list[AppendResult]], None]


class Appends:
    """The way of records into the logs of this broker."""

    def __init__(self, hosted: Hosted, purgatories: Purgatories) -> None:
        self._partitions = hosted.partitions
        self._hosted = hosted
        self._purgatories = purgatories
        self._fetch = purgatories.fetch

    def append(
        self,
        *,
        acks: int,
        timeout_ms: int,
        entries: Sequence[tuple[TopicPartition, Bytes]],
        done: Appended,
        origin: Origin = _CLIENT,
    ) -> DelayedProduce | None:
        """Append each entry and call `done` with a result for each: at once, unless acks=all must wait.

        A wait is returned, so that it can be cancelled when its client goes.
        """
        if acks not in _ACKS:
            done([AppendResult(key, InvalidRequiredAcksError.code) for key, _ in entries])
            return None
        results: list[AppendResult] = []
        grown: list[tuple[Partition, bool]] = []
        pending: list[Unreplicated] = []
        is_watched = self._purgatories.is_watched
        for key, records in entries:
            partition = self._partitions.get(key)
            try:
                if partition is None:
                    raise self._hosted.missing(key)
                info, moved = partition.append(records, acks, origin)
            except Exception as error:  # noqa: BLE001 - one partition's trouble is no other's
                results.append(self._failure(key, partition, records, error))
                continue
            if is_watched(partition):
                grown.append((partition, moved))
            log = partition.log
            assert log is not None
            if acks == ALL_REPLICAS and log.high_watermark <= info.last_offset:
                pending.append(
                    Unreplicated(len(results), partition, info.last_offset + 1, partition.leader_epoch)
                )
            metrics = partition.metrics
            metrics.produce_requests += 1
            metrics.bytes_in += info.size_bytes
            metrics.messages_in += info.last_offset - info.first_offset + 1
            # Not AppendResult(...): a third of what is added to the log's own work.
            results.append(tuple.__new__(AppendResult, (
                key, 0, None, info.first_offset, info.log_append_time, log.start_offset, (),
            )))  # fmt: skip
        wait = self._finish(results, pending, timeout_ms, done)
        for partition, moved in grown:
            if moved:
                self._purgatories.high_watermark_moved(partition)
            else:
                self._fetch.check(partition)  # followers read past the high watermark
        return wait

    def _finish(
        self, results: list[AppendResult], pending: list[Unreplicated], timeout_ms: int, done: Appended
    ) -> DelayedProduce | None:
        if not pending:
            done(results)
            return None
        wait = DelayedProduce(results, pending, done)
        keys = [entry.partition for entry in pending]
        return None if self._purgatories.produce.try_complete_else_watch(wait, keys, timeout_ms) else wait

    @staticmethod
    def _failure(
        key: TopicPartition, partition: Partition | None, records: Bytes, error: Exception
    ) -> AppendResult:
        """What the client is told, and whether it counts as a failure of this broker."""
        if partition is None:
            assert isinstance(error, BrokerError)
            return AppendResult(key, error.code)
        partition.metrics.produce_requests += 1
        if isinstance(error, (RecordTooLargeError, RecordBatchTooLargeError)):
            partition.metrics.bytes_rejected += len(records)
        if isinstance(error, _EXPECTED):
            return AppendResult(key, error.code)
        partition.metrics.failed_produce_requests += 1
        start_offset = partition.log.start_offset if partition.log else -1
        if isinstance(error, InvalidRecordError) and error.record_errors:
            return AppendResult(
                key, error.code, str(error), log_start_offset=start_offset, record_errors=error.record_errors
            )
        if not isinstance(error, BrokerError):
            _logger.error("appending to %s failed", key, exc_info=error)
        code = error.code if isinstance(error, BrokerError) else UNKNOWN_SERVER_ERROR
        return AppendResult(key, code, log_start_offset=start_offset)
