"""What a log should hold, worked out slowly from its batches: the other side of every comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ottla.records import batch, control
from ottla.records.record import Record, read_records
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation


@dataclass(frozen=True)
class Written:
    """One batch, as it lies in the log."""

    data: bytes

    @cached_property
    def header(self) -> batch.BatchHeader:
        return batch.parse_header(self.data)

    @cached_property
    def records(self) -> list[Record]:
        return list(read_records(self.data))

    @property
    def first(self) -> int:
        return self.header.base_offset

    @property
    def last(self) -> int:
        return self.header.last_offset

    def __repr__(self) -> str:
        return f"<batch {self.first}-{self.last} epoch {self.header.leader_epoch} {len(self.data)} bytes>"


@dataclass
class ProducerModel:
    epoch: int = -1
    last_sequence: int = -1
    txn_first: int = -1


@dataclass
class Replay:
    """Producers and aborted transactions after some batches."""

    producers: dict[int, ProducerModel] = field(default_factory=dict)
    aborted: list[AbortedTxn] = field(default_factory=list)

    def apply(self, written: Written) -> None:
        header = written.header
        if header.producer_id < 0:
            return
        producer = self.producers.setdefault(header.producer_id, ProducerModel())
        if header.producer_epoch != producer.epoch:
            producer.epoch, producer.last_sequence = header.producer_epoch, -1
        if not header.is_control:
            producer.last_sequence = (header.base_sequence + header.last_offset_delta) % 2**31
            if header.is_transactional and producer.txn_first < 0:
                producer.txn_first = written.first
            return
        marker = control.parse_marker(written.data)
        first, producer.txn_first = producer.txn_first, -1
        if marker is not None and marker.is_abort and first >= 0:
            still_open = [p.txn_first for p in self.producers.values() if p.txn_first >= 0]
            stable = min(still_open, default=written.last + 1)
            self.aborted.append(AbortedTxn(header.producer_id, first, written.last, stable))


def replay(batches: Iterable[Written]) -> Replay:
    state = Replay()
    for written in batches:
        state.apply(written)
    return state


def first_unstable(batches: Iterable[Written]) -> int | None:
    return min((p.txn_first for p in replay(batches).producers.values() if p.txn_first >= 0), default=None)


def split(data: bytes) -> Iterator[Written]:
    """The whole batches in what a read gave."""
    at = 0
    while at + batch.HEADER_SIZE <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + batch.OVERHEAD_SIZE
        if at + size > len(data):
            return
        yield Written(data[at : at + size])
        at += size


def read_all(log: Log, max_bytes: int = 1 << 20) -> list[Written]:
    """Everything from the log's start to its end, as a follower would fetch it."""
    batches: list[Written] = []
    offset = log.start_offset
    while offset < log.end_offset:
        found = log_reader.read(log, offset, max_bytes, isolation=Isolation.LOG_END)
        if found.slice is None:
            break
        batches += split(found.slice.read())
        assert batches[-1].last >= offset, f"a read at {offset} gave nothing new"
        offset = batches[-1].last + 1
    return batches


def first_at(batches: Iterable[Written], timestamp: int, start_offset: int) -> tuple[int, int, int] | None:
    """(timestamp, offset, leader epoch) of the first record at or after a timestamp."""
    for written in batches:
        for record in written.records:
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return record.timestamp, record.offset, written.header.leader_epoch
    return None


def check_log(
    log: Log, batches: list[Written], before: Sequence[Written] = (), *, exact: bool = True
) -> None:
    """The log holds exactly these batches, and everything derived from them is right.

    `before`: batches in front of them that the log held once; what they said may be known still, or not. Not
    `exact`: batches may be missing in between, and what they said may be known as well.
    """
    assert read_all(log) == batches
    assert read_all(log, max_bytes=1) == batches
    if batches and exact:
        assert log.end_offset == batches[-1].last + 1
    for written in batches:
        for offset in {max(written.first, log.start_offset), written.last}:
            found = log_reader.read(log, offset, 1, isolation=Isolation.LOG_END)
            assert found.slice is not None
            assert found.slice.read() == written.data, f"a read at offset {offset} gave another batch"
    _check_times(log, batches)
    _check_epochs(log, batches)
    least = replay(written for written in batches if written.first >= log.start_offset)
    _check_producers(log, replay([*before, *batches]) if exact else None, least)


def _check_times(log: Log, batches: list[Written]) -> None:
    timestamps = sorted({record.timestamp for written in batches for record in written.records})
    largest = max(timestamps, default=-1)
    for timestamp in [*timestamps[:: len(timestamps) // 8 + 1], largest, largest + 1]:
        expected = first_at(batches, timestamp, log.start_offset)
        assert log_reader.find_timestamp(log, timestamp) == expected, f"first record at {timestamp}"


def _check_epochs(log: Log, batches: list[Written]) -> None:
    known_from = log.epochs.entries[0][1] if log.epochs.entries else log.end_offset
    for written in batches:
        if written.first >= known_from:
            assert log.epochs.epoch_for(written.first) == written.header.leader_epoch


def _check_producers(log: Log, truth: Replay | None, least: Replay) -> None:
    """`least` is what the batches say that are left; `truth`, if it is known, what all batches ever said."""
    found = {(txn.producer_id, txn.last_offset) for txn in _aborted(log)}
    assert found >= {(txn.producer_id, txn.last_offset) for txn in least.aborted}
    if truth is None:
        return
    for producer_id, known in least.producers.items():
        producer, expected = log.producers.producers[producer_id], truth.producers[producer_id]
        assert producer.epoch == expected.epoch
        if known.last_sequence >= 0:
            assert producer.last_sequence == expected.last_sequence
        assert expected.txn_first <= producer.txn_first_offset <= known.txn_first
    assert found <= {(txn.producer_id, txn.last_offset) for txn in truth.aborted}
    if truth.aborted == least.aborted:
        assert _aborted(log) == truth.aborted


def _aborted(log: Log) -> list[AbortedTxn]:
    return log_reader.aborted_in(log, log.start_offset, log.end_offset)
