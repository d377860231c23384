"""One partition of an internal topic and the state that is kept in it: load, run a command, append, replay, complete.

What the commands of one turn of the loop write goes into the log as one batch: many members of a group commit at once,
and a batch costs more than a record.

A shard loads once and is gone for good when its partition is led elsewhere, or when something it wrote did not get
into the log: then the state may be ahead of the log, and a new shard reads it all again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, Generic

from ottla.coordinator.loading import Window, read_window
from ottla.coordinator.result import LATER, Codec, Command, Producer, R, Reply, Result, S, Shard
from ottla.errors import (
    BrokerError,
    CodedError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from ottla.records.builder import build_batch
from ottla.records.control import Marker, build_marker
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult
from ottla.runtime import LoopRuntime, Timer
from ottla.storage.layout import TopicPartition
from ottla.storage.validation import Origin

_logger = logging.getLogger(__name__)

_PIECE = 1000  # records of a result that need not be in one batch
_GATHERED_BYTES = 128 << 10  # what commands of one turn may write together
_RECORD_OVERHEAD_BYTES = 32  # at most: lengths, offset, time

# What an append that failed means to a client of the coordinator: try again here, or ask who it is now.
_NOT_AVAILABLE = frozenset(
    error.code
    for error in (
        UnknownTopicOrPartitionError,
        NotEnoughReplicasError,
        NotEnoughReplicasAfterAppendError,
        RequestTimedOutError,
    )
)


_Encoded = tuple[int, bytes | None, bytes | None, tuple[()]]  # time, key, value, headers


class Phase(Enum):
    """Where a shard is in its life."""

    LOADING = "loading"
    ACTIVE = "active"
    GONE = "gone"


class _Write:
    """Something on its way into the log, and who is to be told when it is safe."""

    __slots__ = ("after", "is_done", "records", "replies", "size_bytes")

    def __init__(self, replies: list[tuple[Reply, Any]], after: Callable[[], None] | None) -> None:
        self.replies = replies
        self.after = after  # a transaction's: what follows once it is in the log
        self.is_done = False
        self.records: list[_Encoded] = []  # while it is being gathered
        self.size_bytes = 0


class PartitionShard(Generic[S, R]):
    """Runs the commands of one partition, one after the other, on the loop."""

    def __init__(
        self,
        key: TopicPartition,
        epoch: int,
        make_state: Callable[[Shard], S],
        codec: Codec[R],
        replicas: ReplicaManager,
        runtime: LoopRuntime,
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
        self._timeout_ms = timeout_ms
        self._max_bytes = max_bytes
        self._failed = failed
        self._in_flight: deque[_Write] = deque()
        self._gathering: _Write | None = None  # the last one in flight, if others may still join it
        self._next_offset = 0
        self.state = make_state(self)

    # -- loading

    def load(self, loaded: Callable[[BaseException | None], None]) -> None:
        """Read the partition from its start; `loaded` when the state is complete, or with why it is not."""
        partition = self._replicas.partition(self.key)
        log = partition.log if partition is not None else None
        if log is None:
            loaded(NotCoordinatorError(f"{self.key} is not here"))
            return
        self._next_offset = log.start_offset
        if log.end_offset == log.start_offset:
            self._take_window(None, None, loaded)  # a new topic is ready as soon as it is made
        else:
            self._load_window(loaded)

    def _load_window(self, loaded: Callable[[BaseException | None], None]) -> None:
        start = self._next_offset
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
        for batch in window.batches:
            if batch.marker is not None:
                self.state.replay_end_of_txn(batch.producer_id, not batch.marker.is_abort, batch.last_offset)
            for offset, record in batch.records:
                self.state.replay(record, offset, batch.producer_id)
        self._next_offset = window.next_offset
        self._load_window(loaded)

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
            self._tell_in_order([(reply, error)])
            return
        except Exception as error:
            # How far it came nobody knows; the log does not have it.
            _logger.exception("a command on %s failed", self.key)
            reply(None, BrokerError(f"unexpected: {error}"))
            self.fail(CoordinatorNotAvailableError(f"{self.key} is being read again"))
            return
        replies = list(result.replies)
        if result.response is not LATER:
            replies.append((reply, result.response))
        if not result.records:
            self._tell_in_order(replies)
        elif result.whole or len(result.records) <= _PIECE:
            self._write_records(result, replies, now_ms)
        else:
            for at in range(0, len(result.records), _PIECE):
                piece = replace(result, records=result.records[at : at + _PIECE])
                self._write_records(piece, [], now_ms)
            self._tell_in_order(replies)

    def end_txn(self, producer: Producer, marker: Marker, reply: Reply) -> None:
        """Write the marker that ends a producer's transaction in this partition, and settle what it did here."""
        if self.phase is not Phase.ACTIVE:
            reply(None, self._refusal())
            return
        offset = self._advance(1)
        batch = build_marker(marker, producer.producer_id, producer.producer_epoch, self._runtime.now_ms())
        settle = partial(self.state.replay_end_of_txn, producer.producer_id, not marker.is_abort, offset)
        self._append(_Write([(reply, None)], settle), batch)

    def _refusal(self) -> BrokerError:
        if self.phase is Phase.LOADING:
            return CoordinatorLoadInProgressError(f"{self.key} is being read")
        return NotCoordinatorError(f"{self.key} is not looked after here")

    def _write_records(self, result: Result[R], replies: list[tuple[Reply, Any]], now_ms: int) -> None:
        encoded: list[_Encoded] = [(now_ms, *self._codec.encode(record), ()) for record in result.records]
        if result.producer is not None:
            self._write_txn(result, result.producer, encoded, replies)
            return
        size_bytes = sum(_size(record) for record in encoded)
        if size_bytes > _GATHERED_BYTES and len(build_batch(encoded)) > self._max_bytes():
            if result.undo is not None:
                result.undo()
            _tell(replies, RecordTooLargeError(f"{size_bytes} bytes are too many for {self.key}"))
            return
        first_offset = self._advance(len(encoded))
        if result.replay:
            self._replay(result.records, first_offset, -1)
        self._gather(encoded, size_bytes, replies)

    def _write_txn(
        self, result: Result[R], producer: Producer, encoded: list[_Encoded], replies: list[tuple[Reply, Any]]
    ) -> None:
        """A transaction's records are in a batch of their own, and count when they are in the log."""
        batch = build_batch(
            encoded,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transactional=True,
        )
        if len(batch) > self._max_bytes():
            _tell(replies, RecordTooLargeError(f"{len(batch)} bytes are too many for {self.key}"))
            return
        first_offset = self._advance(len(encoded))
        replay = partial(self._replay, result.records, first_offset, producer.producer_id)
        self._append(_Write(replies, replay), batch)

    def _advance(self, count: int) -> int:
        first_offset = self._next_offset
        self._next_offset += count
        return first_offset

    def _replay(self, records: Sequence[R], first_offset: int, producer_id: int) -> None:
        for offset, record in enumerate(records, first_offset):
            self.state.replay(record, offset, producer_id)

    # -- the log

    def _gather(self, encoded: list[_Encoded], size_bytes: int, replies: list[tuple[Reply, Any]]) -> None:
        """Write records together with others of this turn."""
        write = self._gathering
        if write is not None and write.size_bytes + size_bytes > _GATHERED_BYTES:
            self._flush()
            write = None
        if write is None:
            write = self._gathering = _Write([], None)
            self._in_flight.append(write)
            self._runtime.call_soon(partial(self._flush_if, write))
        write.records += encoded
        write.size_bytes += size_bytes
        write.replies += replies

    def _flush_if(self, write: _Write) -> None:
        if self._gathering is write:
            self._flush()

    def _flush(self) -> None:
        """Append what was gathered, before anything else gets into the log."""
        write, self._gathering = self._gathering, None
        if write is not None:
            self._send(write, build_batch(write.records))
            write.records = []

    def _append(self, write: _Write, batch: bytearray) -> None:
        self._flush()
        self._in_flight.append(write)
        self._send(write, batch)

    def _send(self, write: _Write, batch: bytearray) -> None:
        self._replicas.append(
            acks=-1,
            timeout_ms=self._timeout_ms,
            entries=[(self.key, batch)],
            done=lambda results: self._appended(write, results[0]),
            origin=Origin.COORDINATOR,
        )

    def _appended(self, write: _Write, result: AppendResult) -> None:
        if self.phase is Phase.GONE:
            return
        if result.error_code and write.after is None:
            self.fail(_append_error(self.key, result))
            return
        write.is_done = True
        if result.error_code:
            replies, write.replies = write.replies, []
            _tell(replies, CodedError(result.error_code, result.error_message))
        elif write.after is not None:
            write.after()
        while self._in_flight and self._in_flight[0].is_done:
            _tell(self._in_flight.popleft().replies)

    def _tell_in_order(self, replies: list[tuple[Reply, Any]]) -> None:
        """Tell now, or after what is on its way: what was seen must be safe before anybody hears of it."""
        if self._in_flight:
            self._in_flight[-1].replies += replies
        else:
            _tell(replies)

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
        self._gathering = None
        writes, self._in_flight = self._in_flight, deque()
        for write in writes:
            _tell(write.replies, error)
        self.state.unloaded(error)

    # -- what a state may ask for

    def call_later(self, delay_ms: float, command: Command[Any]) -> Timer:
        def due() -> None:
            if self.phase is Phase.ACTIVE:
                self.run(command, _nobody)

        return self._runtime.call_later(delay_ms, due)

    def monotonic_ms(self) -> int:
        return self._runtime.monotonic_ms()

    def randrange(self, stop: int) -> int:
        return self._runtime.randrange(stop)


def _size(record: _Encoded) -> int:
    """No less than what a record takes in a batch."""
    _, key, value, _ = record
    return len(key or b"") + len(value or b"") + _RECORD_OVERHEAD_BYTES


def _append_error(key: TopicPartition, result: AppendResult) -> BrokerError:
    if result.error_code in _NOT_AVAILABLE:
        return CoordinatorNotAvailableError(f"{key} could not be written: error {result.error_code}")
    return NotCoordinatorError(f"{key} could not be written: error {result.error_code}")


def _tell(replies: Sequence[tuple[Reply, Any]], error: BrokerError | None = None) -> None:
    for reply, response in replies:
        try:
            if error is not None:
                reply(None, error)
            elif isinstance(response, BrokerError):
                reply(None, response)
            else:
                reply(response, None)
        except Exception:
            _logger.exception("an answer of a coordinator got lost")


def _nobody(response: Any, error: BrokerError | None) -> None:
    """A timer's command answers nobody."""
