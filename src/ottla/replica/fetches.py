"""Fetch below the api floor: read each partition within the limits, and wait where there is too little.

Records come as views of mapped files or small copies. What is not in memory is first read on another thread, and what
is lent to a lane is read there; the loop never waits for a disk. Where there are very many partitions, they are read
a few hundred at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.errors import BrokerError, OffsetOutOfRangeError
from ottla.replica.epochs import end_of_epoch
from ottla.replica.fetch_states import (
    ANSWER,
    ANSWERED,
    CANCEL,
    CANCELLED,
    COME_BACK,
    LEAVE,
    READING,
    READING_AGAIN,
    RESUMED,
    TABLE,
    WAIT,
    WAITING,
    WAKE,
    FetchEvent,
)
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.partition import Partition
from ottla.replica.results import CONSUMER, NO_EPOCH, EpochEnd, FetchEntry, FetchParams, FetchResult
from ottla.replica.waits import DelayedFetch, Purgatories
from ottla.replica.watermarks import Watermarks
from ottla.runtime import LoopRuntime
from ottla.slices import Slices, Steps
from ottla.stall_watch import StallWatch
from ottla.states import next_state
from ottla.storage.fs import ColdPagesError
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log.windows import WindowCache

_logger = logging.getLogger(__name__)

# Memory may be so short that pages are gone again before they are sent, or the file does not have them any more: then
# the lane of the directory reads.
_MAX_WARMINGS = 3
# What a lane reads is memory of the broker's own until it is sent: an answer has no more of it from one partition,
# unless the first batch is larger.
_LANE_BYTES = 1 << 20
_SLICE = 300  # entries that are read in one go

Fetched = Callable[[list[FetchResult]], None]


class Fetches:
    """The way of records out of the logs of this broker."""

    def __init__(
        self,
        runtime: LoopRuntime,
        hosted: Hosted,
        purgatories: Purgatories,
        lanes: Lanes,
        watermarks: Watermarks,
    ) -> None:
        self.runtime = runtime
        self.hosted = hosted
        self.purgatories = purgatories
        self.lanes = lanes
        self.windows = WindowCache()
        self._watermarks = watermarks
        self.slices = Slices(runtime, StallWatch())

    def fetch(self, params: FetchParams, entries: Sequence[FetchEntry], done: Fetched) -> Fetch | None:
        """Read, and call `done` with a result for each entry: at once, unless something must be waited for.

        What waits is returned, so that it can be cancelled when its client goes.
        """
        fetch = Fetch(self, params, entries, done)
        fetch.start()
        return None if fetch.is_done else fetch

    def follower_read(self, replica_id: int, entry: FetchEntry, result: FetchResult) -> FetchResult:
        """What a follower asks for, it has all below of, if nothing was wrong with what it asked for. The high
        watermark that this moves is in its answer."""
        partition = self.hosted.partitions.get(entry.partition)
        if partition is None or partition.log is None or not partition.is_leader:
            return result
        if entry.current_leader_epoch not in (NO_EPOCH, partition.leader_epoch):
            return result  # the epoch has changed while a thread was reading
        partition.follower_reached(replica_id, entry.fetch_offset, entry.log_start_offset)
        self._watermarks.update(partition)
        self.purgatories.delete_records.check(partition)
        return result._replace(high_watermark=partition.log.high_watermark)


class Fetch:
    """One fetch under way: read everything, and if that was too little, wait and read everything again.

    fetch_states.py says what its states are.
    """

    __slots__ = (
        "_done", "_entries", "_fetches", "_left_bytes", "_missing_bytes", "_params", "_results", "_state", "_wait",
        "_warmings",
    )  # fmt: skip

    def __init__(
        self, fetches: Fetches, params: FetchParams, entries: Sequence[FetchEntry], done: Fetched
    ) -> None:
        self._fetches = fetches
        self._params = params
        self._entries = entries
        self._done = done
        self._state = READING
        self._wait: DelayedFetch | None = None
        self._begin_pass()

    @property
    def is_done(self) -> bool:
        return self._state is ANSWERED or self._state is CANCELLED

    def start(self) -> None:
        self._read_on()

    def cancel(self) -> None:
        """Nobody wants the answer any more."""
        self._move(CANCEL)
        self._done = _nobody
        self._leave_purgatory()

    def _move(self, event: FetchEvent) -> None:
        self._state = next_state(TABLE, self._state, event)

    # -- one pass over all entries

    def _begin_pass(self) -> None:
        params = self._params
        self._results: list[FetchResult] = []
        self._warmings = 0  # of the entry that is being read
        self._left_bytes = params.max_bytes  # below 0 if the first batch was larger
        # How much more must be found before there is nothing to wait for; an error is reason enough to answer.
        self._missing_bytes = params.min_bytes if params.max_wait_ms > 0 and self._entries else 0

    def _read_on(self) -> None:
        """Read the entries that are left, as far as that goes in this turn."""
        entries, results = self._entries, self._results
        stop = len(results) + _SLICE
        while len(results) < len(entries):
            if len(results) == stop:
                self._move(LEAVE)
                self._fetches.slices.call(self._come_back, self)
                return
            result = self._read(entries[len(results)])
            if result is None:
                return  # `_come_back` continues
            self._add(result)
        if self._state is READING_AGAIN or self._missing_bytes <= 0:
            self._answer()
        else:
            self._begin_to_wait()

    def _come_back(self, result: FetchResult | None = None) -> None:
        """The next turn of the loop is here, or a thread is through; a lane has read the entry as well."""
        self._move(COME_BACK)
        if self._state is CANCELLED:
            return
        if result is not None:
            self._add(result)
        self._read_on()

    def _add(self, result: FetchResult) -> None:
        is_fine = not result.error_code and result.diverging_epoch is None
        if is_fine and self._params.replica_id >= 0 and self._state is not READING_AGAIN:
            entry = self._entries[len(self._results)]
            result = self._fetches.follower_read(self._params.replica_id, entry, result)
        self._results.append(result)
        self._warmings = 0
        if is_fine:
            self._left_bytes -= result.size_bytes
            self._missing_bytes -= result.size_bytes
        else:
            self._missing_bytes = 0

    # -- the end of a pass

    def _begin_to_wait(self) -> None:
        params, purgatory = self._params, self._fetches.purgatories.fetch
        must_look = self._state is RESUMED
        self._move(WAIT)
        if len(self._entries) > _SLICE:
            self._fetches.slices.add(self._wait_slowly(), lambda _: None, self._answer, self)
            return
        partitions = self._fetches.hosted.partitions
        watched = [(partitions[entry.partition], entry) for entry in self._entries]
        self._results = []
        self._wait = DelayedFetch(params, watched, self._read_again)
        keys = [partition for partition, _ in watched]
        if must_look:
            purgatory.try_complete_else_watch(self._wait, keys, params.max_wait_ms)
        else:
            purgatory.watch(self._wait, keys, params.max_wait_ms)

    def _wait_slowly(self) -> Steps:
        """The same for very many partitions, a few in each step."""
        purgatory, entries = self._fetches.purgatories.fetch, self._entries
        partitions = self._fetches.hosted.partitions
        if self._state is not WAITING:
            return None
        self._wait = wait = DelayedFetch(self._params, [], self._read_again)
        purgatory.watch(wait, [], self._params.max_wait_ms)
        for start in range(0, len(entries), _SLICE):
            some = [(entry, partitions.get(entry.partition)) for entry in entries[start : start + _SLICE]]
            watched = [(partition, entry) for entry, partition in some if partition is not None]
            wait.add(watched)
            purgatory.watch_more(wait, [partition for partition, _ in watched])
            if wait.is_done:
                return None
            yield
        return None

    def _read_again(self) -> None:
        """There is more, or the time is over."""
        self._move(WAKE)
        self._wait = None
        self._begin_pass()
        self._read_on()

    def _answer(self) -> None:
        self._move(ANSWER)
        self._leave_purgatory()
        # Nothing that is done holds views: a map goes when they are sent, not when garbage is next collected.
        results, self._results = self._results, []
        done, self._done = self._done, _nobody
        if self._params.replica_id == CONSUMER:
            partitions = self._fetches.hosted.partitions
            for result in results:
                if result.size_bytes and (partition := partitions.get(result.partition)) is not None:
                    partition.metrics.bytes_out += result.size_bytes
        done(results)

    def _leave_purgatory(self) -> None:
        wait, self._wait = self._wait, None
        if wait is not None:
            self._fetches.purgatories.fetch.cancel(wait)

    # -- one entry

    def _read(self, entry: FetchEntry) -> FetchResult | None:
        """What a partition gives now; None if another thread has to read it."""
        fetches = self._fetches
        partition = None
        try:
            partition = fetches.hosted.find(entry.partition, entry.topic_id)
            log = partition.leader_log()
            partition.check_epoch(entry.current_leader_epoch)
            if self._params.replica_id >= 0:
                partition.check_follower(self._params.replica_id)
            isolation = self._params.isolation
            if entry.fetch_offset == partition.limit(log, isolation) and entry.last_fetched_epoch == NO_EPOCH:
                return _nothing_new(partition, log, isolation)
            if not (partition.is_lent or self._warmings >= _MAX_WARMINGS or self._params.copied_bytes):
                return self._read_log(partition, log, entry, fetches.windows)
        except ColdPagesError as cold:
            self._warmings += 1
            self._move(LEAVE)
            fetches.runtime.run_blocking(cold.warm, lambda _, error: self._warmed(error))
            return None
        except Exception as error:  # noqa: BLE001 - told for this partition; the others are read
            return _failure(entry, partition, error)
        self._read_lent(partition, entry)
        return None

    def _warmed(self, error: BaseException | None) -> None:
        if error is not None:
            self._warmings = _MAX_WARMINGS  # the lane will find the same error, and knows what to do with it
        self._come_back()

    def _read_lent(self, partition: Partition, entry: FetchEntry) -> None:
        """Read on the lane that has the log, or may wait for its disk."""

        def done(result: FetchResult | None, error: BaseException | None) -> None:
            self._come_back(result or _failure(entry, partition, error))

        self._move(LEAVE)
        self._fetches.lanes.on(partition, lambda log: self._read_log(partition, log, entry, None), done)

    def _read_log(
        self, partition: Partition, log: Log, entry: FetchEntry, windows: WindowCache | None
    ) -> FetchResult:
        """Read from the log, on the thread that owns it. With windows that is the loop, which never waits for the
        disk; without, what is read is copied."""
        params = self._params
        is_loop = windows is not None
        max_bytes = min(entry.max_bytes, max(0, self._left_bytes))
        if not is_loop and not params.hard_max_bytes:
            max_bytes = min(max_bytes, _LANE_BYTES)
        only_committed = params.isolation is Isolation.COMMITTED
        if entry.last_fetched_epoch != NO_EPOCH:
            diverging = _divergence(partition, log, entry)
            if diverging is not None:
                return FetchResult(
                    entry.partition, 0, log.high_watermark, log.last_stable_offset, log.start_offset,
                    [] if only_committed else None, b"", diverging,
                )  # fmt: skip
        found = log_reader.read(
            log,
            entry.fetch_offset,
            max_bytes,
            isolation=params.isolation,
            min_one_batch=self._left_bytes == params.max_bytes and not params.hard_max_bytes,
            cached_only=is_loop,
            may_open=not is_loop or self._warmings > 0,
        )
        part = found.slice
        records: list[memoryview] | bytes = b""
        size_bytes = 0
        if part is not None and (not found.is_cut or params.hard_max_bytes):
            size_bytes = part.size
            try:
                if params.copied_bytes:
                    part = part.head(params.copied_bytes)
                records = part.views(windows) if windows is not None else part.read()
            except OSError as error:
                raise log.dir.fail(error, f"reading {log.partition}") from error
        partition.metrics.fetch_requests += 1
        return FetchResult(
            entry.partition, 0, found.high_watermark, found.last_stable_offset, found.start_offset,
            found.aborted if only_committed else None, records, None, size_bytes,
        )  # fmt: skip


def _nobody(_: list[FetchResult]) -> None: ...


def _nothing_new(partition: Partition, log: Log, isolation: Isolation) -> FetchResult:
    """What a reader gets who has read everything: the usual case, so it is made without looking into the log."""
    partition.metrics.fetch_requests += 1
    only_committed = isolation is Isolation.COMMITTED
    stable_offset = partition.limit(log, Isolation.COMMITTED)
    # Not FetchResult(...), as in validation.py.
    return tuple.__new__(FetchResult, (
        partition.key, 0, log.high_watermark, stable_offset, log.start_offset, [] if only_committed else None, b"",
        None, 0,
    ))  # fmt: skip


def _failure(entry: FetchEntry, partition: Partition | None, error: BaseException | None) -> FetchResult:
    if partition is not None:
        partition.metrics.fetch_requests += 1
    if isinstance(error, BrokerError):
        return FetchResult(entry.partition, error.code)
    _logger.error("reading %s failed", entry.partition, exc_info=error)
    if partition is not None:
        partition.metrics.failed_fetch_requests += 1
    return FetchResult(entry.partition, BrokerError.code)


def _divergence(partition: Partition, log: Log, entry: FetchEntry) -> EpochEnd | None:
    """Where the reader's log parts from this one, if its last record is of another history."""
    end = end_of_epoch(partition, log, entry.last_fetched_epoch)
    if end.epoch < 0:
        raise OffsetOutOfRangeError(
            f"{log.partition}: the end of epoch {entry.last_fetched_epoch}, the last one fetched, is not known"
        )
    if entry.fetch_offset < log.start_offset:
        raise OffsetOutOfRangeError(
            f"{log.partition}: offset {entry.fetch_offset} lies before the log start {log.start_offset}"
        )
    if end.epoch < entry.last_fetched_epoch or end.end_offset < entry.fetch_offset:
        return end
    return None
