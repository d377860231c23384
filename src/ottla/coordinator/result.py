"""What coordinators speak in: commands and their results, and what the runtime asks of a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.errors import BrokerError
from ottla.internal_topics.group_records import GroupRecord
from ottla.runtime import Timer

R = TypeVar("R")  # a record of the internal topic
S = TypeVar("S", bound="State")  # a state that is made of them

# Told once: the response, or why there is none.
Reply = Callable[[Any, BrokerError | None], None]


class Producer(NamedTuple):
    """In whose name records are written as part of a transaction."""

    producer_id: int
    producer_epoch: int


LATER = object()  # a response that a later command's `replies` will bring


class CommandResult(Generic[R]):
    """What a command wants: records to be written, and who is to be told what once they are safe.

    State changes by replay of the records. With `replay` False the command has changed it itself: the records are a
    picture of the state, for whoever loads it. A transaction's records (`producer`) are replayed when they are in
    the log, since its producer may turn out to be fenced; all others before, so that the next command sees them.
    """

    __slots__ = ("producer", "records", "replay", "replies", "response", "undo", "whole")

    def __init__(
        self,
        response: Any = None,
        records: Sequence[R] = (),
        replay: bool = True,
        replies: Sequence[tuple[Reply, Any]] = (),
        producer: Producer | None = None,
        whole: bool = True,
        undo: Callable[[], None] | None = None,
    ) -> None:
        self.response = response
        self.records = records
        self.replay = replay
        self.replies = replies
        self.producer = producer
        self.whole = whole  # in one batch: all of the records or none, if the broker dies
        self.undo = undo  # where `replay` is False: the records are too large to be written


GroupResult = CommandResult[GroupRecord]
Command = Callable[[S, int], CommandResult[Any]]  # (state, now_ms)


class Shard(Protocol):
    """What a state may ask of whoever runs it."""

    partition: int
    epoch: int  # the leader epoch of the partition: the coordinator's epoch

    def call_later(self, delay_ms: float, command: Command[Any]) -> Timer:
        """Run a command when time has passed, if the state is still in charge then."""

    def monotonic_ms(self) -> int: ...

    def randrange(self, stop: int) -> int: ...


class State(Protocol):
    """All that a coordinator keeps in one partition of its topic."""

    def replay(self, records: Sequence[Any], first_offset: int, producer_id: int) -> None:
        """Take in records. `producer_id` is -1 outside of transactions; offsets only say what came first."""

    def replay_end_of_txn(self, producer_id: int, committed: bool, offset: int) -> None:
        """A producer's transaction has ended in this partition."""

    def loaded(self, now_ms: int) -> None:
        """Everything is read: from now on commands come."""

    def unloaded(self, error: BrokerError) -> None:
        """Another broker looks after this now, or this one will read it all again: tell whoever waits."""


class RecordCodec(Protocol[R]):
    """How records become keys and values."""

    def write(self, batch: bytearray, records: Sequence[R], time_delta: int, first_delta: int) -> int:
        """Append records to those of a batch: so long after its first, and numbered from `first_delta` on.

        Returns how many they are there: what is one record for a state may be several in the log.
        """

    def decode(self, key: bytes | None, value: bytes | None) -> R | None:
        """None for what is of no use here; MalformedError for what cannot be understood."""
