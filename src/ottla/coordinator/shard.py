"""One partition of an internal topic and the state that is kept in it: load, run a command, append, replay, complete.

How things are written, and when those who wait are told, is in writes.py. A shard loads once and is gone for good when
its partition is led elsewhere, or when something it wrote did not get into the log: then the state may be ahead of the
log, and a new shard reads it all again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Generic

from ottla.coordinator.loading import Window, read_window, tell_skipped
from ottla.coordinator.result import LATER, Command, CommandResult, Producer, R, RecordCodec, Reply, S, Shard
from ottla.coordinator.writes import Replies, Writes, tell
from ottla.errors import (
    BrokerError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    DiskFullError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from ottla.names import TopicPartition
from ottla.records.batch import NO_PRODUCER_ID
from ottla.records.control import Marker, build_marker
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult
from ottla.runtime import LoopRuntime, Timer
from ottla.timers import Timers

_logger = logging.getLogger(__name__)

# Records of a result that need not be in one batch, or that are replayed in one turn of the loop.
_PIECE = 1000

# Errors of an append after which clients try again at this coordinator; after others they look for another one.
_NOT_AVAILABLE = frozenset(
    error.code
    for error in (
        UnknownTopicOrPartitionError,
        NotEnoughReplicasError,
        NotEnoughReplicasAfterAppendError,
        RequestTimedOutError,
        DiskFullError,
    )
)


class Phase(Enum):
    """Where a shard is in its life."""

    LOADING = "loading"
    ACTIVE = "active"
    GONE = "gone"


class PartitionShard(Generic[S, R]):
    """Runs the commands of one partition, one after the other, on the loop."""

    def __init__(
        self,
        key: TopicPartition,
        epoch: int,
        make_state: Callable[[Shard], S],
        codec: RecordCodec[R],
        replicas: ReplicaManager,
        runtime: LoopRuntime,
        timers: Timers,
        *,
        timeout_ms: int,
        max_bytes: Callable[[], int],
        failed: Callable[[PartitionShard[S, R]], None],
    ) -> None:
        self.key = key
        self.partition = key.partition
        self.epoch = epoch
        self.phase = Phase.LOADING
        self._codec = codec
        self._replicas = replicas
        self._runtime = runtime
        self._timers = timers
        self._max_bytes = max_bytes
        self._failed = failed
        self._writes = Writes(key, codec, replicas, runtime, timers, timeout_ms, self._append_failed)
        self.state = make_state(self)

    # -- loading

    def load(self, loaded: Callable[[BaseException | None], None]) -> None:
        """Read the partition from its start; `loaded` when the state is complete, or with why it is not."""
        partition = self._replicas.partition(self.key)
        log = partition.log if partition is not None else None
        if log is None:
            loaded(NotCoordinatorError(f"{self.key} is not here"))
            return
        self._writes.next_offset = log.start_offset
        if log.end_offset == log.start_offset:
            self._take_window(None, None, loaded)  # a new topic is ready as soon as it is made
        else:
            self._load_window(loaded)

    def _load_window(self, loaded: Callable[[BaseException | None], None]) -> None:
        start = self._writes.next_offset
        self._replicas.on_log(
            self.key,
            lambda log: read_window(log, start, self._codec),
            lambda window, error: self._take_window(window, error, loaded),
        )

    def _take_window(
        self,
        window: Window[R] | None,
        error: BaseException | None,
        loaded: Callable[[BaseException | None], None],
    ) -> None:
        if self.phase is not Phase.LOADING:
            return
        if error is not None:
            loaded(error)
            return
        if window is None:
            self.phase = Phase.ACTIVE
            self.state.loaded(self._runtime.now_ms())
            loaded(None)
            return
        self._replay_window(window, self._steps(window), loaded)

    def _replay_window(
        self, window: Window[R], steps: Iterator[None], loaded: Callable[[BaseException | None], None]
    ) -> None:
        """Replay what was read, a piece in each turn of the loop."""
        if self.phase is not Phase.LOADING:
            return
        if sum(1 for _ in islice(steps, _PIECE)) == _PIECE:
            self._timers.call_soon(partial(self._replay_window, window, steps, loaded))
            return
        self._writes.next_offset = window.next_offset
        self._load_window(loaded)

    def _steps(self, window: Window[R]) -> Iterator[None]:
        for batch in window.batches:
            if batch.marker is not None:
                self.state.replay_end_of_txn(batch.producer_id, not batch.marker.is_abort, batch.last_offset)
                yield
            for offset, record in batch.records:
                self._replay_loaded(record, offset, batch.producer_id)
                yield

    def _replay_loaded(self, record: R, offset: int, producer_id: int) -> None:
        """One record that contradicts the others must not keep all of them from being loaded."""
        try:
            self.state.replay([record], offset, producer_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this record's fault
            tell_skipped(self.key, offset, error)

    # -- commands

    def run(self, command: Command[S], reply: Reply) -> None:
        """Run a command; `reply` is told when all that it saw and wrote is safe."""
        if self.phase is not Phase.ACTIVE:
            reply(None, self._refusal())
            return
        now_ms = self._runtime.now_ms()
        try:
            result = command(self.state, now_ms)
        except BrokerError as error:
            self._writes.tell_in_order([(reply, error)])
            return
        except Exception as error:
            # The command may have changed part of the state, and none of that is in the log.
            _logger.exception("a command on %s failed", self.key)
            reply(None, BrokerError(f"unexpected: {error}"))
            self.fail(CoordinatorNotAvailableError(f"{self.key} is being read again"))
            return
        replies = list(result.replies)
        if result.response is not LATER:
            replies.append((reply, result.response))
        if not result.records:
            self._writes.tell_in_order(replies)
        elif result.whole or len(result.records) <= _PIECE:
            self._write_records(result, result.records, replies, now_ms)
        else:
            for at in range(0, len(result.records), _PIECE):
                self._write_records(result, result.records[at : at + _PIECE], [], now_ms)
            self._writes.tell_in_order(replies)

    def end_txn(self, producer: Producer, marker: Marker, reply: Reply) -> None:
        """Write the marker that ends a producer's transaction in this partition, and settle what it did here."""
        if self.phase is not Phase.ACTIVE:
            reply(None, self._refusal())
            return
        offset = self._writes.next_offset
        batch = build_marker(marker, producer.producer_id, producer.producer_epoch, self._runtime.now_ms())
        settle = partial(self.state.replay_end_of_txn, producer.producer_id, not marker.is_abort, offset)
        self._writes.append_marker(batch, producer, [(reply, None)], settle)

    def _refusal(self) -> BrokerError:
        if self.phase is Phase.LOADING:
            return CoordinatorLoadInProgressError(f"{self.key} is being read")
        return NotCoordinatorError(f"{self.key} is not looked after here")

    def _write_records(
        self, result: CommandResult[R], records: Sequence[R], replies: Replies, now_ms: int
    ) -> None:
        writes, producer, max_bytes = self._writes, result.producer, self._max_bytes()
        first_offset = writes.next_offset
        if producer is None:
            is_written = writes.gather(records, now_ms, replies, max_bytes)
            if is_written and result.replay:
                self.state.replay(records, first_offset, NO_PRODUCER_ID)
        else:
            replay = partial(self.state.replay, records, first_offset, producer.producer_id)
            is_written = writes.append(records, now_ms, producer, replies, max_bytes, replay)
        if not is_written:
            if result.undo is not None:
                result.undo()
            tell(replies, RecordTooLargeError(f"what {self.key} was to take is too large for a batch"))

    def _append_failed(self, result: AppendResult) -> None:
        what = f"{self.key} could not be written: error {result.error_code}"
        is_passing = result.error_code in _NOT_AVAILABLE
        self.fail(CoordinatorNotAvailableError(what) if is_passing else NotCoordinatorError(what))

    # -- the end

    def fail(self, error: BrokerError) -> None:
        """The state may not be what the log says: give it up, and have it read again."""
        self.unload(error)
        self._failed(self)

    def unload(self, error: BrokerError) -> None:
        """Stop. Whoever waits is told so, and asks again."""
        if self.phase is Phase.GONE:
            return
        self.phase = Phase.GONE
        self._writes.end(error)
        self.state.unloaded(error)

    # -- what a state may ask for

    def call_later(self, delay_ms: float, command: Command[Any]) -> Timer:
        def due() -> None:
            if self.phase is Phase.ACTIVE:
                self.run(command, _nobody)

        return self._timers.call_later(delay_ms, due)

    def monotonic_ms(self) -> int:
        return self._runtime.monotonic_ms()

    def randrange(self, stop: int) -> int:
        return self._runtime.randrange(stop)


def _nobody(response: Any, error: BrokerError | None) -> None:
    """A timer's command answers nobody."""
