"""Random logs, written batch by batch, and what a reader must find in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.listing import list_partition
from ottla.logtools.offline import reindex
from ottla.records import batch, kernel
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.control import Marker, build_marker
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from ottla.spark.options import ReadOptions, read_options
from ottla.spark.read import plan
from ottla.storage.fs import RealFileSystem
from ottla.storage.layout import LOG, segment_file

FS = RealFileSystem()
_LAST_MS = (2**63 - 1) // 1000


class Step(NamedTuple):
    """One thing that happens to a log. Records come from a seed: to draw each of them would take most of the time."""

    kind: str  # batch, legacy, marker, roll
    count: int = 1  # type: ignore[assignment]  # hides tuple.count
    codec: Codec = Codec.NONE
    producer: int = -1  # of a transaction
    flag: bool = False  # marker: abort; batch: log-append time; legacy: magic 1
    seed: int = 0

    @property
    def records(self) -> list[NewRecord]:
        random = Random(self.seed)
        return [_record(random) for _ in range(self.count)]


def _record(random: Random) -> NewRecord:
    def field() -> bytes | None:
        return None if random.random() < 0.2 else random.randbytes(random.choice((0, 1, 30, 100, 130, 400)))

    timestamp = random.choice((-1, 0, 1_700_000_000_000, 2**62 - 1)) + random.randrange(2000)
    names = (b"", b"trace", "größe".encode(), b"\xff\xfe")
    headers = [(random.choice(names), field()) for _ in range(random.choice((0, 0, 1, 3)))]
    return NewRecord(timestamp, field(), field(), headers)


_seeds = st.integers(0, 999)
_batches = st.builds(
    Step,
    st.just("batch"),
    st.integers(1, 6),
    st.sampled_from(Codec),
    st.sampled_from((-1, -1, 1, 2, 3)),
    st.booleans(),
    _seeds,
)
_legacies = st.builds(
    Step,
    st.just("legacy"),
    st.integers(1, 4),
    st.sampled_from((Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)),
    st.just(-1),
    st.booleans(),
    _seeds,
)
_markers = st.builds(
    Step, st.just("marker"), st.just(1), st.just(Codec.NONE), st.integers(1, 3), st.booleans()
)
steps = st.lists(
    st.one_of(_batches, _batches, _batches, _legacies, _markers, st.just(Step("roll"))), max_size=30
)
# The disk's syncs would take longer than the test.
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class MadeLog:
    """A log on disk, and who is in which state in it."""

    directory: Path
    next_offset: int = 0
    open_txns: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first, last offset
    files: list[Any] = field(default_factory=list)

    def write(self, steps: Sequence[Step]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._roll()
        for step in steps:
            {"batch": self._batch, "legacy": self._legacy, "marker": self._marker, "roll": self._roll}[
                step.kind
            ](step)
        for file in self.files:
            file.close()

    def _roll(self, step: Step | None = None) -> None:
        path = self.directory / segment_file(self.next_offset, LOG)
        if not path.exists():
            self.files.append(path.open("wb"))

    def _put(self, data: bytes | bytearray, next_offset: int) -> None:
        self.files[-1].write(data)
        self.next_offset = next_offset

    def _batch(self, step: Step) -> None:
        random, records = Random(step.seed), step.records
        deltas, delta = [], -1
        for _ in records:
            delta += 1 + random.choice((0, 0, 0, 1, 3))  # what compaction leaves
            deltas.append(delta)
        is_txn = step.producer >= 0
        if is_txn:
            self.open_txns.setdefault(step.producer, self.next_offset)
        data = build_batch(
            records,
            base_offset=self.next_offset,
            codec=step.codec,
            producer_id=step.producer,
            producer_epoch=0 if is_txn else -1,
            base_sequence=0 if is_txn else -1,
            transactional=is_txn,
            log_append_time=records[0].timestamp if step.flag else None,
            offset_deltas=deltas,
            last_offset_delta=delta + 1,
        )
        self._put(data, self.next_offset + delta + 2)

    def _legacy(self, step: Step) -> None:
        magic = 1 if step.flag else 0
        old = [
            LegacyRecord(
                self.next_offset + index, record.timestamp if magic else -1, 0, record.key, record.value
            )
            for index, record in enumerate(step.records)
        ]
        self._put(build_message_set(old, magic, step.codec), self.next_offset + len(old))

    def _marker(self, step: Step) -> None:
        first = self.open_txns.pop(step.producer, None)
        if first is None:
            return
        if step.flag:
            self.aborted.append((step.producer, first, self.next_offset))
        marker = build_marker(Marker(step.flag, 0), step.producer, 0, 1_000, base_offset=self.next_offset)
        self._put(marker, self.next_offset + 1)

    def index(self, interval: int = 300) -> None:
        reindex(FS, list_partition(FS, str(self.directory)), interval=interval, write=True)

    @property
    def stable_offset(self) -> int:
        return min(self.open_txns.values(), default=self.next_offset)

    def is_aborted(self, producer: int, offset: int) -> bool:
        return any(producer == p and first <= offset <= last for p, first, last in self.aborted)


def append_batches(
    directory: Path, start: int, count: int, *, new_segment: bool = False, codec: Codec = Codec.NONE
) -> MadeLog:
    """Records whose value is their offset and whose time is as many milliseconds, ten a batch."""
    directory.mkdir(parents=True, exist_ok=True)
    bases = sorted(int(path.stem) for path in directory.glob("*.log"))
    base = start if new_segment or not bases else bases[-1]
    with (directory / segment_file(base, LOG)).open("ab") as file:
        for first in range(start, start + count, 10):
            made = [NewRecord(offset, None, b"%d" % offset) for offset in range(first, first + 10)]
            file.write(build_batch(made, base_offset=first, codec=codec))
    return MadeLog(directory)


def options_for(path: Path | str, **more: str) -> ReadOptions:
    return read_options(
        {"path": str(path), **{name.replace("_", "."): value for name, value in more.items()}}
    )


def read_all(options: ReadOptions) -> list[dict[str, Any]]:
    """Every row that the splits give, in the order of the splits."""
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    return [row for split in splits for found in plan.read_split(options, split) for row in rows_of(found)]


def rows_of(found: pa.RecordBatch) -> list[dict[str, Any]]:
    found.validate(full=True)
    columns = {}
    for name, column in zip(found.schema.names, found.columns, strict=True):
        columns[name] = (column.cast(pa.int64()) if name == "timestamp" else column).to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def plain_rows(directory: Path, *, headers: bool = True) -> list[tuple[int, dict[str, Any]]]:
    """(producer id of a transaction or -1, row) of every record that the plain reader finds."""
    partition = list_partition(FS, str(directory))
    assert partition.topic_partition is not None
    found = []
    for each in dump_records(FS, partition, Query()):
        assert not isinstance(each, FoundDamage)
        row, record = each[0].row, each[1]
        attributes, magic = row[kernel.ATTRIBUTES], row[kernel.MAGIC]
        if magic == batch.MAGIC_V2 and attributes & batch.CONTROL:
            continue
        is_txn = magic == batch.MAGIC_V2 and attributes & batch.TRANSACTIONAL
        expected: dict[str, Any] = {
            "key": record.key,
            "value": record.value,
            "topic": partition.topic_partition.topic,
            "partition": partition.topic_partition.partition,
            "offset": record.offset,
            "timestamp": max(-_LAST_MS, min(_LAST_MS, record.timestamp)) * 1000,
            "timestampType": -1 if magic == 0 else (attributes & batch.LOG_APPEND_TIME) >> 3,
        }
        if headers:
            pairs = [{"key": k.decode(errors="replace"), "value": v} for k, v in record.headers]
            expected["headers"] = pairs or None
        found.append((row[kernel.PRODUCER_ID] if is_txn else -1, expected))
    return found
