"""A compacted log beside a plain model of it: every record ever appended, and what became of its transaction."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ottla.records import batch as batches
from ottla.records import kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.record import Record, read_batches, read_records
from ottla.storage import layout
from ottla.storage.cleaning import compaction
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log.validation import Origin
from ottla.storage.scan import Scan
from tests.storage.world import World, marker

MAP_BYTES = 1 << 20
COMPACT: dict[str, Any] = {
    "cleanup_policy": frozenset({"compact"}),
    "internal_segment_bytes": 600,
    "index_interval_bytes": 100,
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": 1000,
}


@dataclass
class Appended:
    """A record as it was appended."""

    record: Record
    producer_id: int
    transactional: bool
    aborted: bool = False
    horizon_ms: int | None = None  # of a tombstone, once it was cleaned


@dataclass
class Transaction:
    epoch: int
    offsets: list[int] = field(default_factory=list)


class CompactedLog:
    """Appends to the log and to the model alike, cleans, and compares."""

    def __init__(self, world: World, **config: Any) -> None:
        self.world = world
        self.config = {**COMPACT, **config}
        self.log: Log = world.load(**self.config)
        self.appended: dict[int, Appended] = {}
        self.checkpoint: int | None = None
        self.sequences: dict[int, int] = {}
        self.open: dict[int, Transaction] = {}

    @property
    def now_ms(self) -> int:
        return self.world.runtime.now_ms()

    def append(
        self,
        *records: tuple[str | None, str | None],
        producer_id: int = -1,
        transactional: bool = False,
        codec: Codec = Codec.NONE,
        epoch: int = 0,
    ) -> int:
        """Append one batch of (key, value); the offset of its first record."""
        new = [
            NewRecord(self.now_ms + i, _bytes(key), _bytes(value), [(b"h", b"x")] if i % 3 == 1 else [])
            for i, (key, value) in enumerate(records)
        ]
        fields: dict[str, Any] = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(new)
            fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        data = build_batch(new, codec=codec, transactional=transactional, **fields)
        first = self.log.append_as_leader(data, 0).first_offset
        if transactional:
            self.open.setdefault(producer_id, Transaction(epoch))
        for i, record in enumerate(new):
            seen = Record(first + i, record.timestamp, record.key, record.value, list(record.headers))
            self.appended[first + i] = Appended(seen, producer_id, transactional)
            if transactional:
                self.open[producer_id].offsets.append(first + i)
        self.log.raise_high_watermark(self.log.end_offset)
        return first

    def end(self, producer_id: int, *, commit: bool) -> int:
        """Write the marker of the producer's transaction; its offset."""
        ended = self.open.pop(producer_id, None)
        epoch = ended.epoch if ended else 0
        data = marker(producer_id, epoch, commit=commit, timestamp=self.now_ms)
        offset = self.log.append_as_leader(data, 0, Origin.COORDINATOR).first_offset
        for data_offset in ended.offsets if ended else []:
            self.appended[data_offset].aborted = not commit
        self.log.raise_high_watermark(self.log.end_offset)
        return offset

    def roll(self) -> None:
        if self.log.segments.active.size:
            self.log.roll()

    def clean(self, *, map_bytes: int = MAP_BYTES, load_factor: float = 0.9) -> int | None:
        """Clean what can be cleaned; the new first dirty offset."""
        cleaned_to = compaction.compact(
            self.log,
            self.checkpoint,
            self.now_ms,
            self.world.runtime,
            map_bytes=map_bytes,
            load_factor=load_factor,
        )
        if cleaned_to is not None:
            self.checkpoint = cleaned_to
        return cleaned_to

    def reopen(self, *, clean: bool = True, forget_snapshots: bool = False) -> None:
        """Stop (or kill) and load again."""
        recovery_point, start_offset = self.log.recovery_point, self.log.start_offset
        if clean:
            self.log.close()
        else:
            self.log.abandon()
        if forget_snapshots:
            for name in self.world.names(layout.SNAPSHOT):
                self.world.fs.unlink(f"{self.world.path}/{name}")
        self.log = self.world.load(
            clean=clean, recovery_point=recovery_point, start_offset=start_offset, **self.config
        )
        self.log.raise_high_watermark(self.log.end_offset)

    def on(self, world: World, recovery_point: int) -> CompactedLog:
        """The same model beside what another disk holds."""
        twin = copy.copy(self)
        twin.world = world
        twin.log = world.load(recovery_point=recovery_point, **self.config)
        twin.log.raise_high_watermark(twin.log.end_offset)
        return twin

    def producers(self) -> dict[int, tuple[int, int, int]]:
        """Epoch, last sequence and open transaction of each producer."""
        known = self.log.producers.producers.values()
        return {p.producer_id: (p.epoch, p.last_sequence, p.txn_first_offset) for p in known}

    # -- what is on disk

    def headers(self) -> list[batches.BatchHeader]:
        return [header for data in self._files() for _, header in read_batches(data)]

    def records(self) -> list[Record]:
        """All data records, in the order of the files."""
        return [
            record
            for data in self._files()
            for position, header in read_batches(data)
            if not header.is_control
            for record in read_records(data, position)
        ]

    def markers(self) -> list[batches.BatchHeader]:
        return [header for header in self.headers() if header.is_control]

    def pairs(self) -> list[tuple[int, str | None, str | None]]:
        """(offset, key, value) of all data records."""
        return [(r.offset, _text(r.key), _text(r.value)) for r in self.records()]

    def _files(self) -> list[bytes]:
        return [self.world.fs.read_bytes(segment.path(layout.LOG)) for segment in self.log.segments]

    # -- what must hold

    def check(self) -> None:
        """The files are sound, no record has changed, and whoever reads them all ends with the same values."""
        self._check_files()
        found = self.records()
        assert [record.offset for record in found] == sorted({record.offset for record in found})
        for record in found:
            assert record == self.appended[record.offset].record
        assert self._state(found) == self._state([entry.record for entry in self.appended.values()])
        self._check_aborted(found)
        self._check_reads([header.last_offset for header in self.headers()])

    def _check_files(self) -> None:
        expected = 0
        for segment in self.log.segments:
            data = self.world.fs.read_bytes(segment.path(layout.LOG))
            assert len(data) == segment.size
            assert expected <= segment.base_offset
            expected = segment.base_offset
            scan = Scan(segment.file, segment.size, flags=kernel.CHECK_CRC | kernel.CHECK_RECORDS)
            for window in scan:
                assert kernel.rows_in_order(window.rows, window.count, expected) == window.count
                expected = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
            assert scan.position == segment.size
            for _, header in read_batches(data):
                located = segment.locate(header.base_offset)
                assert located is not None
                assert located.base_offset == header.base_offset
                assert segment.max_timestamp >= header.max_timestamp

    def _check_reads(self, last_offsets: list[int]) -> None:
        """A reader that asks for an offset that is gone gets the next batch."""
        for offset in range(self.log.start_offset, self.log.end_offset + 1, 1 + self.log.end_offset // 50):
            found = log_reader.read(self.log, offset, 1, isolation=Isolation.LOG_END).slice
            following = [last for last in last_offsets if last >= offset]
            if not following:
                assert found is None
            else:
                assert found is not None
                assert next(read_batches(found.read()))[1].last_offset == following[0]

    def _state(self, records: list[Record]) -> dict[bytes, Record]:
        """What a read_committed reader of all records up to the first open transaction ends with."""
        state: dict[bytes, Record] = {}
        for record in records:
            if record.offset >= self.log.last_stable_offset or self.appended[record.offset].aborted:
                continue
            if record.key is not None and record.value is None:
                state.pop(record.key, None)
            elif record.key is not None:
                state[record.key] = record
        return state

    def _check_aborted(self, found: list[Record]) -> None:
        """The transaction indexes name the aborted records that are left, and no others."""
        entries = [txn for segment in self.log.segments for txn in segment.txn_index.entries]
        for record in found:
            entry = self.appended[record.offset]
            named = any(
                txn.producer_id == entry.producer_id and txn.first_offset <= record.offset < txn.last_offset
                for txn in entries
            )
            assert named == entry.aborted

    def expect_after(self, cleaned_to: int) -> list[int]:
        """The offsets that a cleaning up to there must have left; moves the lives of tombstones on."""
        last: dict[bytes, int] = {}
        for offset, entry in self.appended.items():
            if offset < cleaned_to and not entry.aborted and entry.record.key is not None:
                last[entry.record.key] = offset
        return [
            offset
            for offset, entry in self.appended.items()
            if offset >= cleaned_to or (offset in last.values() and self._lives(entry))
        ]

    def _lives(self, entry: Appended) -> bool:
        if entry.record.value is not None:
            return True
        if entry.horizon_ms is None:
            entry.horizon_ms = self.now_ms + self.log.config.delete_retention_ms
        return self.now_ms < entry.horizon_ms


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
