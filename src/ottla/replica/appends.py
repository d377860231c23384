"""Produce below the api floor: append to each partition, raise high watermarks, wake who waits, answer or wait.

The loop appends what is quickly checked. From the first batch of a request that is not, or when its batches together
have taken a few milliseconds, the rest goes the way of slow_appends.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from ottla.errors import (
    BrokerError,
    CorruptRecordError,
    DiskFullError,
    InvalidRequiredAcksError,
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
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.partition import ALL_REPLICAS, Partition
from ottla.replica.results import AppendResult
from ottla.replica.slow_appends import SlowAppend, SlowAppends
from ottla.replica.waits import DelayedProduce, Purgatories, Unreplicated
from ottla.runtime import LoopRuntime
from ottla.storage.log.batch_run import BatchRun
from ottla.storage.log.log import AppendInfo
from ottla.storage.log.validation import Origin, TakesLongError, Validated, is_packed, validate

_logger = logging.getLogger(__name__)

UNKNOWN_SERVER_ERROR: Final = BrokerError.code
VALID_ACKS: Final = (-1, 0, 1)
_LEADER_ONLY: Final = 1
_AT_ONCE: Final = (ALL_REPLICAS, _LEADER_ONLY)  # acks that are answered
_CLIENT: Final = Origin.CLIENT
_LOOP_BYTES: Final = 1 << 20  # that may be unpacked on the loop for one batch: one to three milliseconds
_LOOP_MS: Final = 3  # for all batches of a request
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

Appended = Callable[[list[AppendResult]], None]


class Appends:
    """The way of records into the logs of this broker."""

    def __init__(
        self,
        runtime: LoopRuntime,
        hosted: Hosted,
        purgatories: Purgatories,
        lanes: Lanes,
        metrics: Metrics,
    ) -> None:
        self._runtime = runtime
        self._partitions = hosted.partitions
        self._hosted = hosted
        self._purgatories = purgatories
        self._watched = purgatories.watched
        self._lanes = lanes
        self._metrics = metrics
        self.slow = SlowAppends(self, runtime, lanes)
        self._queued = self.slow.queues

    def append(
        self,
        *,
        acks: int,
        timeout_ms: int,
        entries: Sequence[tuple[TopicPartition, Bytes]],
        done: Appended,
        origin: Origin = _CLIENT,
        owner: object = None,
    ) -> DelayedProduce | None:
        """Append each entry and call `done` with a result for each: at once, unless something must be waited for.

        Requests of one `owner` keep their order. A wait for replicas is returned, so that it can be cancelled when its
        client goes. A wait for this broker's own disk ends by itself.
        """
        if acks not in VALID_ACKS:
            done([AppendResult(key, InvalidRequiredAcksError.code) for key, _ in entries])
            return None
        results: list[AppendResult] = []
        grown: list[tuple[Partition, bool]] = []
        pending: list[Unreplicated] = []
        lent: list[tuple[int, Partition, Bytes, Validated | None]] = []
        is_late = owner in self._queued
        until_ms = self._runtime.monotonic_ms() + _LOOP_MS if len(entries) > 1 else 0
        for key, records in entries:
            partition = self._partitions.get(key)
            if is_late or (until_ms and self._runtime.monotonic_ms() > until_ms):
                break
            try:
                if partition is None:
                    raise self._hosted.missing(key)
                if partition.goes_by_lane:
                    # What could take long on the lane, where others wait too, is seen here.
                    checked = self._check(partition, records, origin) if is_packed(records) else None
                    lent.append((len(results), partition, records, checked))
                    results.append(AppendResult(key))
                    continue
                info, moved = partition.append(records, acks, origin, _LOOP_BYTES)
            except TakesLongError:
                break
            except Exception as error:  # noqa: BLE001 - one partition's trouble is no other's
                results.append(self.failure(key, partition, len(records), error))
                continue
            grown.append((partition, moved))
            results.append(_success(key, partition, info, acks, pending, len(results), len(records)))
        if len(results) < len(entries):
            places = [*(place for place, _, _, _ in lent), *range(len(results), len(entries))]
            results += [AppendResult(key) for key, _ in entries[len(results) :]]
            rest = [(place, *entries[place]) for place in places]
            request = SlowAppend(self.slow, rest, acks, timeout_ms, origin, done, results, pending, grown)
            self.slow.add(owner, request)
            return None
        if lent:
            _LaneAppends(self, self._lanes, acks, timeout_ms, origin, done, results, pending, grown).start(
                lent
            )
            return None
        return self.finish(results, pending, grown, timeout_ms, done)

    def _check(self, partition: Partition, records: Bytes, origin: Origin) -> Validated:
        config = partition.leader_log().config
        now_ms = self._runtime.now_ms()
        return validate(bytearray(records), 0, partition.leader_epoch, config, now_ms, origin, _LOOP_BYTES)

    def append_run(
        self, key: TopicPartition, run: BatchRun, acks: int
    ) -> tuple[AppendResult, Partition, bool] | None:
        """Append as many batches of a run as nothing has to be waited for or said about; None if that is none.

        The result is that of the first of them; `run.count` says how many there are. `wake` comes next, once the run
        is not needed any more: those who wake may bring runs of their own.
        """
        partition = self._partitions.get(key)
        appended = partition.append_run(run, acks) if partition is not None and acks in _AT_ONCE else None
        if partition is None or appended is None:
            return None
        info, moved = appended
        partition.metrics.produce_requests += run.count - 1
        return _success(key, partition, info, _LEADER_ONLY, [], 0, info.size_bytes), partition, moved

    def wake(self, partition: Partition, moved: bool) -> None:
        """Let those go on who wait for what was appended, or for the high watermark, if that moved."""
        if not any(partition in watched for watched in self._watched):
            return
        if moved:
            self._purgatories.high_watermark_moved(partition)
        else:
            self._purgatories.fetch.check(partition)  # followers read past the high watermark

    def finish(
        self,
        results: list[AppendResult],
        pending: list[Unreplicated],
        grown: list[tuple[Partition, bool]],
        timeout_ms: int,
        done: Appended,
    ) -> DelayedProduce | None:
        """Everything is appended: answer, or wait for replicas; and wake who waits for what was appended."""
        wait = None
        if pending:
            wait = DelayedProduce(results, pending, done)
            keys = [entry.partition for entry in pending]
            if self._purgatories.produce.try_complete_else_watch(wait, keys, timeout_ms):
                wait = None
        else:
            done(results)
        for partition, moved in grown:
            self.wake(partition, moved)
        return wait

    def partition(self, key: TopicPartition) -> Partition:
        found = self._partitions.get(key)
        if found is None:
            raise self._hosted.missing(key)
        return found

    def success_of(
        self,
        key: TopicPartition,
        partition: Partition,
        info: AppendInfo,
        acks: int,
        pending: list[Unreplicated],
        place: int,
        received_bytes: int,
    ) -> AppendResult:
        return _success(key, partition, info, acks, pending, place, received_bytes)

    def failure_of(self, key: TopicPartition, received_bytes: int, error: Exception) -> AppendResult:
        return self.failure(key, self._partitions.get(key), received_bytes, error)

    def failure(
        self, key: TopicPartition, partition: Partition | None, received_bytes: int, error: Exception
    ) -> AppendResult:
        """What the client is told, and whether it counts as a failure of this broker."""
        if partition is None:
            assert isinstance(error, BrokerError)
            self._metrics.known_topic(key.topic).produce_requests += 1
            return AppendResult(key, error.code)
        partition.metrics.produce_requests += 1
        if isinstance(error, RecordTooLargeError):
            partition.metrics.bytes_rejected += received_bytes
        if isinstance(error, DiskFullError):
            partition.metrics.failed_produce_requests += 1
        if isinstance(error, _TOLD):
            return AppendResult(key, error.code, str(error))
        if isinstance(error, _EXPECTED):
            return AppendResult(key, error.code)
        partition.metrics.failed_produce_requests += 1
        log = partition.log
        start_offset = log.start_offset if log is not None else -1
        if isinstance(error, RefusedRecordsError) and error.record_errors:
            return AppendResult(
                key, error.code, str(error), log_start_offset=start_offset, record_errors=error.record_errors
            )
        if not isinstance(error, BrokerError):
            _logger.error("appending to %s failed", key, exc_info=error)
        code = error.code if isinstance(error, BrokerError) else UNKNOWN_SERVER_ERROR
        return AppendResult(key, code, log_start_offset=start_offset)


def _success(
    key: TopicPartition,
    partition: Partition,
    info: AppendInfo,
    acks: int,
    pending: list[Unreplicated],
    place: int,
    received_bytes: int,
) -> AppendResult:
    """The result of an append; noted as pending where acks=all has to wait for its replicas."""
    log = partition.log
    assert log is not None
    first_offset, last_offset, _, append_time, _, _ = info
    if acks == ALL_REPLICAS and log.high_watermark <= last_offset:
        pending.append(Unreplicated(place, partition, last_offset + 1, partition.leader_epoch))
    metrics = partition.metrics
    metrics.produce_requests += 1
    metrics.bytes_in += received_bytes
    metrics.messages_in += last_offset - first_offset + 1
    # Not AppendResult(...), as in validation.py.
    return tuple.__new__(AppendResult, (key, 0, None, first_offset, append_time, log.start_offset, ()))


class _LaneAppends:
    """A produce of which some partitions are lent to lanes: it goes on when the last of them is appended."""

    def __init__(
        self,
        appends: Appends,
        lanes: Lanes,
        acks: int,
        timeout_ms: int,
        origin: Origin,
        done: Appended,
        results: list[AppendResult],
        pending: list[Unreplicated],
        grown: list[tuple[Partition, bool]],
    ) -> None:
        self._appends = appends
        self._lanes = lanes
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._origin = origin
        self._done = done
        self._results = results
        self._pending = pending
        self._grown = grown
        self._left = 0

    def start(self, entries: list[tuple[int, Partition, Bytes, Validated | None]]) -> None:
        self._left = len(entries)
        for place, partition, records, checked in entries:
            # A copy: whoever called has the buffer back before the lane gets to it.
            copy = bytearray(records) if checked is None else b""
            self._submit(place, partition, copy, checked, len(records))

    def _submit(
        self, place: int, partition: Partition, records: Bytes, checked: Validated | None, received_bytes: int
    ) -> None:
        self._lanes.on(
            partition,
            lambda _: (
                partition.append(records, self._acks, self._origin)
                if checked is None
                else partition.append_validated(checked, self._acks)
            ),
            lambda appended, error: self._appended(place, partition, received_bytes, appended, error),
            must_flush=partition.is_durable,
        )

    def _appended(
        self,
        place: int,
        partition: Partition,
        received_bytes: int,
        appended: tuple[AppendInfo, bool] | None,
        error: BaseException | None,
    ) -> None:
        key = partition.key
        if error is None and partition.log is None:
            error = NotLeaderOrFollowerError(f"{key} was deleted meanwhile")
        if isinstance(error, Exception):
            self._results[place] = self._appends.failure(key, partition, received_bytes, error)
        elif appended is not None:
            result = _success(key, partition, appended[0], self._acks, self._pending, place, received_bytes)
            self._results[place] = result
            self._grown.append((partition, True))
        self._left -= 1
        if not self._left:
            self._appends.finish(self._results, self._pending, self._grown, self._timeout_ms, self._done)
