"""What a shard has on its way into its partition, and who waits for it.

What the commands of one turn of the loop write goes into the log as one batch: many members of a group commit at once,
and a batch costs more than a record. Whoever waits is told in the order of the writes, when they are safe.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic

from ottla.coordinator.result import Producer, R, RecordCodec, Reply
from ottla.errors import BrokerError, CodedError
from ottla.names import TopicPartition
from ottla.records.batch import HEADER_SIZE, NO_EPOCH, NO_PRODUCER_ID
from ottla.records.builder import seal_batch
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult
from ottla.runtime import LoopRuntime
from ottla.storage.log.validation import Origin
from ottla.timers import Timers

_logger = logging.getLogger(__name__)

GATHERED_BYTES: Final = 128 << 10  # what commands of one turn may write together
_ALL: Final = -1
_TOLD_AT_ONCE: Final = 64

Replies = list[tuple[Reply, Any]]


class _Write:
    """A batch on its way into the log, and who is to be told when it is safe."""

    __slots__ = ("after", "batch", "count", "first_ms", "is_done", "latest_ms", "producer", "replies")

    def __init__(self, replies: Replies, now_ms: int) -> None:
        self.replies = replies
        self.batch = bytearray(HEADER_SIZE)  # with room for its header, while records come
        self.count = 0
        self.first_ms = now_ms
        self.latest_ms = now_ms
        self.producer: Producer | None = None  # a transaction's: nothing else may join it
        self.after: Callable[[], None] | None = None  # called once the batch is in the log
        self.is_done = False


class Writes(Generic[R]):
    """The writes of one shard, in their order. `failed`: what was replayed already did not get into the log."""

    def __init__(
        self,
        key: TopicPartition,
        codec: RecordCodec[R],
        replicas: ReplicaManager,
        runtime: LoopRuntime,
        timers: Timers,
        timeout_ms: int,
        failed: Callable[[AppendResult], None],
    ) -> None:
        self._key = key
        self._codec = codec
        self._replicas = replicas
        self._runtime = runtime
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._failed = failed
        self._in_flight: deque[_Write] = deque()
        # The newest writes in flight, not appended yet; new records may join the last.
        self._unsent: deque[_Write] = deque()
        self._is_over = False
        self.next_offset = 0  # of the next record

    # -- what comes in

    def gather(self, records: Sequence[R], now_ms: int, replies: Replies, max_bytes: int) -> bool:
        """Write records, together with others of this turn. False: they are too large for a batch."""
        unsent = self._unsent
        if unsent:
            write = unsent[-1]
            if write.producer is None and self._put(write, records, now_ms, min(GATHERED_BYTES, max_bytes)):
                write.replies += replies
                return True
        write = _Write(replies, now_ms)
        if not self._put(write, records, now_ms, max_bytes):
            return False
        self._in_flight.append(write)
        unsent.append(write)
        if len(unsent) == 1:
            self._runtime.call_soon(self._flush)
        return True

    def append(
        self,
        records: Sequence[R],
        now_ms: int,
        producer: Producer,
        replies: Replies,
        max_bytes: int,
        after: Callable[[], None],
    ) -> bool:
        """Write a transaction's records; `after` when they are in the log. If that fails, only its replies are told."""
        write = _Write(replies, now_ms)
        if not self._put(write, records, now_ms, max_bytes):
            return False
        write.producer = producer
        self._send_after(write, after)
        return True

    def append_marker(
        self, marker: bytearray, producer: Producer, replies: Replies, after: Callable[[], None]
    ) -> None:
        """Write the end of a transaction, in the same way."""
        write = _Write(replies, 0)
        write.batch = marker
        write.producer = producer
        self.next_offset += 1
        self._send_after(write, after)

    def tell_in_order(self, replies: Replies) -> None:
        """Tell now, or after what is on its way: what was seen must be safe before anybody hears of it."""
        if self._in_flight:
            self._in_flight[-1].replies += replies
        else:
            self.tell(replies)

    def end(self, error: BrokerError) -> None:
        """Nothing is appended any more; whoever waits is told why."""
        self._is_over = True
        self._unsent.clear()
        writes, self._in_flight = self._in_flight, deque()
        for write in writes:
            tell(write.replies, error)

    def _put(self, write: _Write, records: Sequence[R], now_ms: int, max_bytes: int) -> bool:
        """Put records behind those that are there, if the batch does not get too large."""
        batch = write.batch
        size_bytes = len(batch)
        try:
            count = self._codec.write(batch, records, now_ms - write.first_ms, write.count)
        except Exception:
            del batch[size_bytes:]  # take back what was written of these records
            raise
        if len(batch) > max_bytes:
            del batch[size_bytes:]
            return False
        write.count += count
        self.next_offset += count
        write.latest_ms = max(write.latest_ms, now_ms)
        return True

    # -- the log

    def _send_after(self, write: _Write, after: Callable[[], None]) -> None:
        """At once: whoever ends a transaction or adds to it waits for nobody else."""
        write.after = after
        self._in_flight.append(write)
        self._unsent.append(write)
        self._flush()

    def _flush(self) -> None:
        """Append what was gathered. Whoever is told of it may bring more, which then comes after."""
        while self._unsent:
            write = self._unsent.popleft()
            if write.count:
                _seal(write)
            self._replicas.append(
                acks=_ALL,
                timeout_ms=self._timeout_ms,
                entries=[(self._key, write.batch)],
                done=partial(self._appended, write),
                origin=Origin.COORDINATOR,
            )

    def _appended(self, write: _Write, results: list[AppendResult]) -> None:
        if self._is_over:
            return
        result = results[0]
        if result.error_code and write.after is None:
            self._failed(result)
            return
        write.is_done = True
        if result.error_code:
            replies, write.replies = write.replies, []
            tell(replies, CodedError(result.error_code, result.error_message))
        elif write.after is not None:
            write.after()
        while self._in_flight and self._in_flight[0].is_done:
            self.tell(self._in_flight.popleft().replies)

    def tell(self, replies: Replies, first: int = 0) -> None:
        """Tell everybody from the first on. Many (a whole group, say) are told some in each turn of the loop."""
        end = first + _TOLD_AT_ONCE
        if end < len(replies):
            self._timers.call_soon(partial(self.tell, replies, end))
            replies = replies[first:end]
        elif first:
            replies = replies[first:]
        tell(replies)


def _seal(write: _Write) -> None:
    producer = write.producer
    seal_batch(
        write.batch,
        write.count,
        write.first_ms,
        latest_time=write.latest_ms,
        producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
        producer_epoch=NO_EPOCH if producer is None else producer.producer_epoch,
        transactional=producer is not None,
    )


def tell(replies: Sequence[tuple[Reply, Any]], error: BrokerError | None = None) -> None:
    """Tell everybody what they were to hear, or why not."""
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
