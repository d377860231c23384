"""What a shard has on its way into its partition, and who waits for it.

What the commands of one turn of the loop write goes into the log as one batch: many members of a group commit at once,
and a batch costs more than a record. Whoever waits is told in the order of the writes, when they are safe.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.coordinator.result import Reply
from ottla.errors import BrokerError, CodedError
from ottla.records.builder import build_batch
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult
from ottla.runtime import LoopRuntime
from ottla.storage.layout import TopicPartition
from ottla.storage.validation import Origin

_logger = logging.getLogger(__name__)

GATHERED_BYTES = 128 << 10  # what commands of one turn may write together
_RECORD_OVERHEAD_BYTES = 32  # at most: lengths, offset, time
_HEADER_BYTES = 64  # at most

Encoded = tuple[int, bytes | None, bytes | None, tuple[()]]  # time, key, value, headers
Replies = list[tuple[Reply, Any]]


class _Write:
    """Something on its way into the log, and who is to be told when it is safe."""

    __slots__ = ("after", "is_done", "records", "replies", "size_bytes")

    def __init__(self, replies: Replies, after: Callable[[], None] | None) -> None:
        self.replies = replies
        self.after = after  # a transaction's: what follows once it is in the log
        self.is_done = False
        self.records: list[Encoded] = []  # while it is being gathered
        self.size_bytes = 0


class Writes:
    """The writes of one shard, in their order. `failed`: what was replayed already did not get into the log."""

    def __init__(
        self,
        key: TopicPartition,
        replicas: ReplicaManager,
        runtime: LoopRuntime,
        timeout_ms: int,
        failed: Callable[[AppendResult], None],
    ) -> None:
        self._key = key
        self._replicas = replicas
        self._runtime = runtime
        self._timeout_ms = timeout_ms
        self._failed = failed
        self._in_flight: deque[_Write] = deque()
        self._gathering: _Write | None = None  # the last one in flight, if others may still join it
        self._is_over = False

    def gather(self, records: list[Encoded], size_bytes: int, replies: Replies, max_bytes: int) -> None:
        """Write records, together with others of this turn."""
        write = self._gathering
        if write is not None and write.size_bytes + size_bytes > min(GATHERED_BYTES, max_bytes):
            self._flush()
            write = None
        if write is None:
            write = self._gathering = _Write([], None)
            self._in_flight.append(write)
            self._runtime.call_soon(partial(self._flush_if, write))
        write.records += records
        write.size_bytes += size_bytes
        write.replies += replies

    def append(self, batch: bytearray, replies: Replies, after: Callable[[], None]) -> None:
        """Write a batch of a transaction; `after` when it is in the log. If it fails, only its replies are told."""
        self._flush()
        write = _Write(replies, after)
        self._in_flight.append(write)
        self._send(write, batch)

    def tell_in_order(self, replies: Replies) -> None:
        """Tell now, or after what is on its way: what was seen must be safe before anybody hears of it."""
        if self._in_flight:
            self._in_flight[-1].replies += replies
        else:
            tell(replies)

    def end(self, error: BrokerError) -> None:
        """Nothing is appended any more; whoever waits is told why."""
        self._is_over = True
        self._gathering = None
        writes, self._in_flight = self._in_flight, deque()
        for write in writes:
            tell(write.replies, error)

    # -- the log

    def _flush_if(self, write: _Write) -> None:
        if self._gathering is write:
            self._flush()

    def _flush(self) -> None:
        """Append what was gathered, before anything else gets into the log."""
        write, self._gathering = self._gathering, None
        if write is not None:
            batch = build_batch(write.records)
            write.records = []
            self._send(write, batch)

    def _send(self, write: _Write, batch: bytearray) -> None:
        self._replicas.append(
            acks=-1,
            timeout_ms=self._timeout_ms,
            entries=[(self._key, batch)],
            done=lambda results: self._appended(write, results[0]),
            origin=Origin.COORDINATOR,
        )

    def _appended(self, write: _Write, result: AppendResult) -> None:
        if self._is_over:
            return
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
            tell(self._in_flight.popleft().replies)


def size_of(records: list[Encoded]) -> int:
    """No less than what records take as a batch."""
    return _HEADER_BYTES + sum(
        [len(key or b"") + len(value or b"") + _RECORD_OVERHEAD_BYTES for _, key, value, _ in records]
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
