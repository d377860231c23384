"""Logs written by ottla for Kafka to read: one directory with everything a producer, coordinator or follower can do.

What a consumer must then see is noted at every append, from what was sent and not from what ottla reads back.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ottla.config import BrokerConfig, LogConfig
from ottla.names import TopicPartition
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.control import Marker, build_marker
from ottla.records.legacy.conversion import NO_TIMESTAMP, LegacyRecord, build_message_set
from ottla.runtime import Runtime, SystemRuntime
from ottla.storage.cleaning import compaction
from ottla.storage.fs import RealFileSystem
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation, read
from ottla.storage.log.truncation import no_point_on_disk
from ottla.storage.log.validation import Origin
from ottla.storage.log_manager import LogManager
from tests.consuming import as_dict
from tests.storage.steps import apply_retention

SMALL = {"internal.segment.bytes": "3000", "index.interval.bytes": "600", "segment.index.bytes": "16384"}
# The lag keeps Kafka's cleaner away from what ours has done.
COMPACT = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
TOPICS = {
    **{f"codec-{codec.name.lower()}": SMALL for codec in Codec},
    "txn": SMALL,
    "append-time": {**SMALL, "message.timestamp.type": "LogAppendTime"},
    "recompressed": {**SMALL, "compression.type": "zstd"},
    "trimmed": {**SMALL, "file.delete.delay.ms": "0"},
    "truncated": SMALL,
    "converted": SMALL,
    "large": {**SMALL, "internal.segment.bytes": "500000"},
    "replicated": SMALL,
    "far": {**SMALL, **COMPACT},
    "compacted": {**SMALL, **COMPACT, "file.delete.delay.ms": "0"},
    "compacted-txn": {**SMALL, **COMPACT, "file.delete.delay.ms": "0"},
    "empty": SMALL,
}
CONFIGS = {topic: LogConfig.from_properties(properties) for topic, properties in TOPICS.items()}
DEFAULTS = LogConfig.from_properties(SMALL)
WORDS = (
    b"castle process trial metamorphosis ottla milena josefine amerika burrow penal colony judgment".split()
)
# Far above the ids that a young broker hands out.
FIRST_PRODUCER_ID = 900_000
RECORDS_BEGIN_MS = 2 * 3_600_000
FAR_OFFSET = 3_000_000_000
COORDINATOR_EPOCH = 3
# Whether the first and the second of two interleaved transactions are aborted.
OUTCOMES = ((False, True), (True, False), (False, False), (True, True))

Headers = list[tuple[bytes, bytes | None]]


class Ended(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    is_aborted: bool
    timestamp: int


@dataclass
class Producer:
    """An idempotent producer: its id, epoch and next sequence number."""

    id: int
    epoch: int = 0
    transactional: bool = False
    sequence: int = 0

    def fields(self, count: int) -> dict[str, Any]:
        sequence, self.sequence = self.sequence, self.sequence + count
        return {
            "producer_id": self.id,
            "producer_epoch": self.epoch,
            "base_sequence": sequence,
            "transactional": self.transactional,
        }


@dataclass
class Partition:
    """One log, and what was put into it."""

    log: Log
    rng: random.Random
    clock_ms: int
    epoch: int = 0
    stamped: bool = False  # the log sets the timestamps
    records: list[dict[str, Any]] = field(default_factory=list)
    # Offsets of records in transactions that are open, by producer; and of those that will never be committed.
    open: dict[int, list[int]] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    markers: dict[int, Ended] = field(default_factory=dict)
    producers: dict[int, Producer] = field(default_factory=dict)
    cleaned_to: int | None = None
    has_timeless_segment: bool = False  # emptied by compaction, or with records that have no timestamp

    @property
    def committed(self) -> list[dict[str, Any]]:
        """What a read_committed consumer gets."""
        stable = self.last_stable_offset
        return [r for r in self.records if r["offset"] < stable and r["offset"] not in self.aborted]

    @property
    def last_stable_offset(self) -> int:
        return min((offsets[0] for offsets in self.open.values()), default=self.log.end_offset)

    def first_at(self, timestamp: int) -> list[int | None]:
        """The answer to a lookup by time, in the shape that KafkaOps gives it; markers count."""
        stamps = [(r["offset"], r["timestamp"]) for r in self.records]
        stamps += [(o, m.timestamp) for o, m in self.markers.items() if o >= self.log.start_offset]
        return [timestamp, *next((one for one in sorted(stamps) if one[1] >= timestamp), (None, None))]

    def fill(self, batches: int, codec: Codec, producer: Producer | None = None) -> None:
        for _ in range(batches):
            self.append(self.random_records(self.rng.randint(1, 20)), codec, producer)

    def append(self, records: list[NewRecord], codec: Codec, producer: Producer | None = None) -> None:
        """One batch, as a client sends it."""
        fields = producer.fields(len(records)) if producer else {}
        if producer:
            self.producers[producer.id] = producer
        info = self.log.append_as_leader(build_batch(records, codec=codec, **fields), self.epoch)
        assert (info.last_offset - info.first_offset + 1, info.is_duplicate) == (len(records), False)
        for offset, record in enumerate(records, info.first_offset):
            self._note(offset, info.log_append_time if self.stamped else record.timestamp, record)
        if producer and producer.transactional:
            self.open.setdefault(producer.id, []).extend(range(info.first_offset, info.last_offset + 1))

    def append_old(self, records: list[NewRecord], magic: int, codec: Codec) -> None:
        """A message set, as an old client sends it: without headers, and with magic 0 without timestamps."""
        old = [
            LegacyRecord(offset, record.timestamp if magic else NO_TIMESTAMP, 0, record.key, record.value)
            for offset, record in enumerate(records)
        ]
        data = bytearray(build_message_set(old, magic, codec))
        info = self.log.append_as_leader(data, self.epoch)
        for record in old:
            new = NewRecord(record.timestamp, record.key, record.value)
            self._note(info.first_offset + record.offset, record.timestamp, new)

    def end_transaction(self, producer: Producer, *, abort: bool) -> None:
        """What the coordinator writes; from then on the producer goes on with the same epoch."""
        timestamp = self.tick()
        marker = build_marker(Marker(abort, COORDINATOR_EPOCH), producer.id, producer.epoch, timestamp)
        info = self.log.append_as_leader(marker, self.epoch, Origin.COORDINATOR)
        offsets = self.open.pop(producer.id)
        self.markers[info.first_offset] = Ended(producer.id, offsets[0], abort, timestamp)
        if abort:
            self.aborted.update(offsets)

    def replicate(self, leader: Partition) -> None:
        """Fetch all that another log has, a piece at a time, as a follower does."""
        offset = self.log.end_offset
        while offset < leader.log.end_offset:
            found = read(leader.log, offset, 2000, isolation=Isolation.LOG_END).slice
            assert found is not None
            info = self.log.append_as_follower(bytearray(found.read()))
            assert info is not None
            offset = info.last_offset + 1
        self.records = [r for r in leader.records if r["offset"] >= leader.log.start_offset]
        self.open = {producer: list(offsets) for producer, offsets in leader.open.items()}
        self.aborted, self.markers = set(leader.aborted), dict(leader.markers)
        self.producers = leader.producers

    def jump(self, base_offset: int) -> None:
        """A batch far behind the last one, as a follower may get it from a compacted leader."""
        records = self.keyed_records(3)
        data = build_batch(records, base_offset=base_offset, leader_epoch=self.epoch)
        self.log.append_as_follower(data)
        for offset, record in enumerate(records, base_offset):
            self._note(offset, record.timestamp, record)

    def cut(self, offset: int) -> None:
        """Truncate as a follower of a new leader; batches are dropped whole. One producer has written all of it."""
        truncation.truncate_to(self.log, offset, no_point_on_disk)
        for producer in self.producers.values():
            producer.sequence = self.log.end_offset
        self.records = [r for r in self.records if r["offset"] < self.log.end_offset]

    def compact(self, runtime: Runtime) -> None:
        """Clean the log; of every key the last record is left, and all that could not be cleaned yet."""
        self.log.raise_high_watermark(self.log.end_offset)
        # The lag in the settings is for Kafka.
        now_ms = runtime.now_ms() + self.log.config.min_compaction_lag_ms
        cleaned_to = compaction.compact(
            self.log, self.cleaned_to, now_ms, runtime, map_bytes=1 << 20, load_factor=0.9, force=True
        )
        assert cleaned_to is not None
        clean = [r for r in self.records if r["offset"] < cleaned_to and r["offset"] not in self.aborted]
        last = {r["key"]: r["offset"] for r in clean}
        kept = set(last.values())
        self.records = [r for r in self.records if r["offset"] >= cleaned_to or r["offset"] in kept]
        self.cleaned_to = cleaned_to

    def delete_below(self, offset: int) -> None:
        self.log.raise_high_watermark(self.log.end_offset)
        self.log.raise_start_offset(offset)
        self.records = [r for r in self.records if r["offset"] >= offset]

    def random_records(self, count: int) -> list[NewRecord]:
        rng = self.rng
        return [
            NewRecord(
                self.tick(),
                None if rng.random() < 0.2 else b"key-%d" % rng.randint(0, 99),
                None if rng.random() < 0.1 else b" ".join(rng.choices(WORDS, k=rng.randint(0, 12))),
                self._headers(),
            )
            for _ in range(count)
        ]

    def keyed_records(self, count: int) -> list[NewRecord]:
        """Few keys, so that compaction has work."""
        return [r._replace(key=b"key-%d" % self.rng.randint(0, 9)) for r in self.random_records(count)]

    def tick(self) -> int:
        """Mostly forwards, sometimes back, as producers' clocks do."""
        self.clock_ms += 1000
        return self.clock_ms - (self.rng.randint(0, 8000) if self.rng.random() < 0.2 else 0)

    def _headers(self) -> Headers:
        values = (b"", b"x", None, "ž".encode(), b"\x00\xff")
        count = self.rng.choice((0, 0, 1, 3))
        return [("héader".encode() if n else b"", self.rng.choice(values)) for n in range(count)]

    def _note(self, offset: int, timestamp: int, record: NewRecord) -> None:
        kind = "LogAppendTime" if self.stamped else "CreateTime"
        headers = list(record.headers)
        self.records.append(as_dict(offset, timestamp, kind, record.key, record.value, self.epoch, headers))


class Writer:
    """Plays the whole scenario on a new data directory."""

    def __init__(
        self, data_dir: Path, rng: random.Random, configs: Mapping[str, LogConfig] = CONFIGS
    ) -> None:
        self.rng = rng
        self.runtime = SystemRuntime()
        broker = BrokerConfig(log_dirs=(str(data_dir),))
        self.manager = LogManager(
            RealFileSystem(), self.runtime, broker, defaults=DEFAULTS, topic_configs=configs
        )
        self.manager.open()
        self.partitions: dict[str, Partition] = {}
        self._next_producer_id = FIRST_PRODUCER_ID

    def play(self) -> dict[str, Partition]:
        """Two leader epochs, with checkpoints between them; every topic of TOPICS gets its log."""
        for epoch in (0, 1):
            self._codecs(epoch)
            self.transactions("txn", epoch)
            self.partition("append-time", epoch, stamped=True).fill(6, Codec.GZIP)
            recompressed = self.partition("recompressed", epoch)
            recompressed.fill(3, Codec.GZIP)
            recompressed.fill(3, Codec.NONE)
            self._trimmed(epoch)
            self._truncated(epoch)
            self._converted(epoch)
            self._large(epoch)
            self._compacted(epoch)
            self.runtime.drain()
            self.manager.checkpoint()
        far = self.partition("far", 1)
        far.append(far.keyed_records(20), Codec.NONE)
        far.jump(FAR_OFFSET)
        far.append(far.keyed_records(20), Codec.LZ4)
        self.partition("empty", 0)
        self._leave_open()
        self.partition("replicated", 0).replicate(self.partitions["txn"])
        for partition in self.partitions.values():
            partition.log.raise_high_watermark(partition.log.end_offset)
            partition.has_timeless_segment = any(s.max_timestamp < 0 for s in partition.log.segments)
        self.runtime.drain()
        return self.partitions

    def stop(self) -> None:
        """A clean stop."""
        self.manager.close()
        self.runtime.close()

    def die(self) -> None:
        """As by kill -9: what was written is in the files, and nothing else is done."""
        self.manager.abandon()
        self.runtime.close()

    def partition(self, topic: str, epoch: int, *, stamped: bool = False) -> Partition:
        found = self.partitions.get(topic)
        if found is None:
            log = self.manager.get_or_create(TopicPartition(topic, 0))
            rng = random.Random(self.rng.random())
            begin_ms = self.runtime.now_ms() - RECORDS_BEGIN_MS
            found = self.partitions[topic] = Partition(log, rng, begin_ms, stamped=stamped)
        found.epoch = epoch
        return found

    def producer(self, *, transactional: bool = False) -> Producer:
        self._next_producer_id += 1
        return Producer(self._next_producer_id, epoch=self.rng.randint(0, 5), transactional=transactional)

    def _codecs(self, epoch: int) -> None:
        for codec in Codec:
            producer = None if codec in (Codec.GZIP, Codec.LZ4) else self.producer()
            self.partition(f"codec-{codec.name.lower()}", epoch).fill(8, codec, producer)

    def transactions(self, topic: str, epoch: int) -> None:
        """Two interleaved producers, commits and aborts, data outside of transactions between them."""
        partition = self.partition(topic, epoch)
        one, two = self.producer(transactional=True), self.producer(transactional=True)
        for first_aborts, second_aborts in OUTCOMES:
            partition.append(partition.keyed_records(4), Codec.NONE, one)
            partition.append(partition.keyed_records(3), Codec.LZ4, two)
            partition.append(partition.keyed_records(2), Codec.NONE)
            partition.append(partition.keyed_records(30), Codec.NONE, one)
            partition.end_transaction(one, abort=first_aborts)
            partition.append(partition.keyed_records(2), Codec.LZ4, two)
            partition.end_transaction(two, abort=second_aborts)

    def _leave_open(self) -> None:
        partition = self.partitions["txn"]
        partition.append(partition.keyed_records(5), Codec.NONE, self.producer(transactional=True))
        partition.append(partition.keyed_records(3), Codec.SNAPPY)

    def _trimmed(self, epoch: int) -> None:
        partition = self.partition("trimmed", epoch)
        partition.fill(8, Codec.NONE)
        partition.delete_below(partition.log.end_offset * 2 // 3 + 1)
        # Kafka's lookups by time look no further than the first segment: none may lie below the start as a whole.
        apply_retention(self.manager)

    def _truncated(self, epoch: int) -> None:
        partition = self.partition("truncated", epoch)
        partition.fill(6, Codec.SNAPPY, self.producer())
        if epoch == 0:
            partition.cut(partition.log.end_offset // 2)

    def _converted(self, epoch: int) -> None:
        partition = self.partition("converted", epoch)
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            for magic in (1, 0):
                partition.append_old(partition.random_records(self.rng.randint(1, 20)), magic, codec)

    def _compacted(self, epoch: int) -> None:
        partition = self.partition("compacted", epoch)
        producer = self.producer()
        for codec in (Codec.NONE, Codec.GZIP) * 6:
            partition.append(partition.keyed_records(12), codec, producer)
        partition.compact(self.runtime)
        self.transactions("compacted-txn", epoch)
        if epoch == 1:
            self.partitions["compacted-txn"].compact(self.runtime)

    def _large(self, epoch: int) -> None:
        """Batches of more than one block in every codec."""
        partition = self.partition("large", epoch)
        for codec in Codec:
            values = [b" ".join(self.rng.choices(WORDS, k=300)) * 20 for _ in range(3)]
            records = [NewRecord(partition.tick(), b"%d" % i, value) for i, value in enumerate(values)]
            partition.append(records, codec)
