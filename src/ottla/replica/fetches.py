"""Fetch below the api floor: read each partition within the limits, and wait where there is too little."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.errors import BrokerError, OffsetOutOfRangeError
from ottla.replica.hosted import Hosted
from ottla.replica.partition import Partition
from ottla.replica.results import (
    CONSUMER,
    NO_EPOCH,
    EpochEnd,
    FetchEntry,
    FetchParams,
    FetchResult,
)
from ottla.replica.waits import DelayedFetch, Purgatories
from ottla.storage import log_reader
from ottla.storage.log import Log
from ottla.storage.log_reader import Isolation

_logger = logging.getLogger(__name__)

Fetched = Callable[[list[FetchResult]], None]


class Fetches:
    """The way of records out of the logs of this broker."""

    def __init__(self, hosted: Hosted, purgatories: Purgatories) -> None:
        self._hosted = hosted
        self._purgatories = purgatories

    def fetch(self, params: FetchParams, entries: Sequence[FetchEntry], done: Fetched) -> DelayedFetch | None:
        """Read, and call `done` with a result for each entry: at once, unless there is too little to send.

        A wait is returned, so that it can be cancelled when its client goes.
        """
        if params.replica_id >= 0:
            self._note_follower(params.replica_id, entries)
        results = self._read_all(params, entries)
        if (
            params.max_wait_ms <= 0
            or not entries
            or sum(result.size_bytes for result in results) >= params.min_bytes
            or any(result.error_code or result.diverging_epoch for result in results)
        ):
            self._answer(params, results, done)
            return None
        watched = [(self._hosted.partitions[entry.partition], entry) for entry in entries]
        wait = DelayedFetch(
            params, watched, lambda: self._answer(params, self._read_all(params, entries), done)
        )
        keys = [partition for partition, _ in watched]
        done_now = self._purgatories.fetch.try_complete_else_watch(wait, keys, params.max_wait_ms)
        return None if done_now else wait

    def _answer(self, params: FetchParams, results: list[FetchResult], done: Fetched) -> None:
        if params.replica_id == CONSUMER:
            for result in results:
                if result.size_bytes:
                    partition = self._hosted.partitions.get(result.partition)
                    if partition is not None:
                        partition.metrics.bytes_out += result.size_bytes
        done(results)

    def _note_follower(self, replica_id: int, entries: Sequence[FetchEntry]) -> None:
        for entry in entries:
            partition = self._hosted.partitions.get(entry.partition)
            if partition is None or not partition.is_leader or partition.log is None:
                continue
            if partition.follower_reached(replica_id, entry.fetch_offset):
                self._purgatories.high_watermark_moved(partition)

    def _read_all(self, params: FetchParams, entries: Sequence[FetchEntry]) -> list[FetchResult]:
        """The first partition that has something gives at least one batch; the rest must fit into what is left."""
        left = params.max_bytes
        one_batch = not params.hard_max_bytes
        results = []
        for entry in entries:
            result = self._read(params, entry, min(entry.max_bytes, left), one_batch)
            results.append(result)
            if result.size_bytes:
                left = max(0, left - result.size_bytes)
                one_batch = False
        return results

    def _read(self, params: FetchParams, entry: FetchEntry, max_bytes: int, one_batch: bool) -> FetchResult:
        partition = None
        try:
            partition = self._hosted.find(entry.partition, entry.topic_id)
            partition.metrics.fetch_requests += 1
            log = partition.leader_log()
            partition.check_epoch(entry.current_leader_epoch)
            if entry.last_fetched_epoch != NO_EPOCH:
                diverging = _divergence(partition, log, entry)
                if diverging is not None:
                    return FetchResult(
                        entry.partition, 0, log.high_watermark, log.last_stable_offset, log.start_offset,
                        [] if params.isolation is Isolation.COMMITTED else None, b"", diverging,
                    )  # fmt: skip
            found = log_reader.read(
                log, entry.fetch_offset, max_bytes, isolation=params.isolation, min_one_batch=one_batch
            )
        except BrokerError as error:
            return FetchResult(entry.partition, error.code)
        except Exception:
            _logger.exception("reading %s failed", entry.partition)
            if partition is not None:
                partition.metrics.failed_fetch_requests += 1
            return FetchResult(entry.partition, BrokerError.code)
        records = found.slice.read() if found.slice is not None else b""
        return FetchResult(
            entry.partition, 0, found.high_watermark, found.last_stable_offset, found.start_offset,
            found.aborted if params.isolation is Isolation.COMMITTED else None, records,
            size_bytes=len(records),
        )  # fmt: skip


def _divergence(partition: Partition, log: Log, entry: FetchEntry) -> EpochEnd | None:
    """Where the reader's log parts from this one, if its last record is of another history."""
    epoch, end_offset = log.epochs.end_offset_for(entry.last_fetched_epoch, log.end_offset)
    if epoch < 0 or end_offset < 0:
        raise OffsetOutOfRangeError(
            f"{partition.key}: the end of epoch {entry.last_fetched_epoch}, the last one fetched, is not known"
        )
    if entry.fetch_offset < log.start_offset:
        raise OffsetOutOfRangeError(
            f"{partition.key}: offset {entry.fetch_offset} lies before the log start {log.start_offset}"
        )
    if epoch < entry.last_fetched_epoch or end_offset < entry.fetch_offset:
        return EpochEnd(epoch, end_offset)
    return None
