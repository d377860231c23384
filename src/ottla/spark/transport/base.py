"""Where raw batches come from: what a transport can do, and what it gives. open_transport.py chooses one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from typing_extensions import Buffer

from ottla.names import TopicPartition
from ottla.records import kernel
from ottla.records.batch import CONTROL, MAGIC_V2, OVERHEAD_SIZE
from ottla.spark.offsets import Offsets

MAX_OFFSET = 2**63 - 1
ROWS = 2048


class Aborted(NamedTuple):
    """An aborted transaction. A broker does not say where it ends: blocks() finds out."""

    producer_id: int
    first_offset: int
    last_offset: int = MAX_OFFSET


class Mark(NamedTuple):
    """An offset at which a partition can be cut well, and how many bytes lie between the first mark and it."""

    offset: int
    size_bytes: int


@dataclass(slots=True)
class Block:
    """Whole, checked batches found together. `rows` and `data` are reused: done with before the next one comes."""

    rows: array[int]  # as kernel.scan() writes them
    count: int
    data: Buffer
    shift: int  # what was added to positions: where data[0] lies
    where: str  # a file or a broker, for messages
    aborted: array[int]  # of abort_ranges()

    def part(self, start: int, stop: int) -> Block:
        """Only its batches of these numbers."""
        rows = self.rows[start * kernel.ROW : stop * kernel.ROW]
        return Block(rows, stop - start, self.data, self.shift, self.where, self.aborted)


@dataclass(frozen=True, slots=True)
class BadBytes:
    """Bytes that are not good batches, where those of the offsets [from_offset, to_offset) should be."""

    where: str
    position: int  # in the file, or in the response
    from_offset: int
    to_offset: int
    meaning: str
    data: bytes

    def __str__(self) -> str:
        return (
            f"{self.where}: at position {self.position}, offset {self.from_offset}: {self.meaning}"
            f" ({len(self.data)} bytes)"
        )


@dataclass(frozen=True, slots=True)
class Undecided(BadBytes):
    """A good batch of which it cannot be known whether its transaction was committed: no row may be made of it."""

    def __str__(self) -> str:
        return f"{self.where}: at position {self.position}, offset {self.from_offset}: {self.meaning}"


class Lost(NamedTuple):
    """Offsets that were asked for and are gone."""

    from_offset: int
    to_offset: int


class Transport(Protocol):
    """Partitions of topics, by name: where they begin and end, what lies at a time, and their bytes.

    Partitions that are not there (any more) are left out of what is returned.
    """

    def partitions(self) -> list[TopicPartition]:
        """Those that the options choose, as they are now."""

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """A name for this very topic, other than that of one that was deleted; those without one are left out."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets: ...

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where a read with the options' isolation level ends now."""

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose record is as late as that time or later; None where there is none."""

    def marks(self, partition: TopicPartition, start: int, end: int, step_bytes: int) -> list[Mark]:
        """Places to cut [start, end) at, about `step_bytes` apart; the first is `start` with 0, the last `end` with
        all bytes between. Where bytes are not known, an estimate."""

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Block | BadBytes | Lost]:
        """The batches that hold offsets of [start, end), in order; some around them may come too."""

    def close(self) -> None: ...


def abort_ranges(aborted: Iterable[Aborted]) -> array[int]:
    """Aborted transactions as the kernel wants them: three numbers each, sorted, those of a producer apart."""
    ranges = array("q")
    for producer_id, first_offset, last_offset in sorted(aborted):
        if ranges and ranges[-3] == producer_id and first_offset <= ranges[-1]:
            ranges[-1] = max(ranges[-1], last_offset)
        else:
            ranges.extend((producer_id, first_offset, last_offset))
    return ranges


def blocks(
    data: Buffer, rows: array[int], where: str, aborted: Iterable[Aborted] = ()
) -> Iterator[Block | BadBytes]:
    """The batches in the answer of a broker, which may end inside a batch: for transports that have no files."""
    view = memoryview(data)
    ranges = abort_ranges(_until_their_markers(view, rows, list(aborted)))
    at, status = 0, kernel.OK
    while at < len(view) and status != kernel.TRUNCATED:
        count, at, status = kernel.scan(view, at, len(view), rows, kernel.CHECK_CRC)
        if count:
            yield Block(rows, count, view, 0, where, ranges)
        if status not in (kernel.OK, kernel.TRUNCATED):
            after = _after_bad(view, at)
            offset = int.from_bytes(view[at : at + 8], "big", signed=True)
            next_offset = int.from_bytes(view[after : after + 8], "big", signed=True)
            to_offset = next_offset if after < len(view) else MAX_OFFSET
            meaning = kernel.STATUS_MEANING[status]
            yield BadBytes(where, at, offset, to_offset, meaning, bytes(view[at:after]))
            at = after


def _after_bad(view: memoryview, at: int) -> int:
    """Where the batch after a bad one begins; all the rest is bad if its length is."""
    length = int.from_bytes(view[at + 8 : at + OVERHEAD_SIZE], "big", signed=True)
    return at + OVERHEAD_SIZE + length if length > 0 else len(view)


def _until_their_markers(view: memoryview, rows: array[int], aborted: list[Aborted]) -> Iterator[Aborted]:
    """A broker says where an aborted transaction begins; it ends with the producer's next marker, if that is here."""
    markers: dict[int, list[int]] = {}
    at, status = 0, kernel.OK
    while aborted and at < len(view) and status == kernel.OK:
        count, at, status = kernel.scan(view, at, len(view), rows, 0)
        for row in range(0, count * kernel.ROW, kernel.ROW):
            if rows[row + kernel.MAGIC] == MAGIC_V2 and rows[row + kernel.ATTRIBUTES] & CONTROL:
                of_producer = markers.setdefault(rows[row + kernel.PRODUCER_ID], [])
                of_producer.append(rows[row + kernel.BASE_OFFSET])
    for txn in aborted:
        ends = (marker for marker in markers.get(txn.producer_id, ()) if marker >= txn.first_offset)
        yield txn._replace(last_offset=min(ends, default=txn.last_offset))
