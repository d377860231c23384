"""What the checks share: a small world on a simulated disk, and batches of every kind to put into it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import NamedTuple

from ottla.config import BrokerConfig, LogConfig
from ottla.names import TopicPartition
from ottla.records.batch import patch_offsets
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.control import Marker, build_marker
from ottla.storage.fs import FileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.validation import Origin
from ottla.storage.log_manager import LogManager
from ottla.testing.history import ROOT, FileImage, Image
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.reliability.model import Replay, Written, replay

LOG_DIR = "/data"
TOPIC_ID = uuid.UUID(int=0x1234)

# Small enough that a handful of batches makes several segments with several index entries each.
SMALL = LogConfig(
    internal_segment_bytes=1500, index_interval_bytes=150, segment_index_bytes=240, file_delete_delay_ms=1000
)


class Case(NamedTuple):
    """One thing to try. `name` is enough to build it again; `kind` is its row in the table of figures."""

    kind: str
    name: str
    run: Callable[[], None]


class CaseError(AssertionError):
    """A case that did not hold, with the command that runs it again."""


def run_cases(check: str, seed: int, cases: Iterable[Case]) -> Iterator[Case]:
    """Run the cases; yields each one done."""
    for case in cases:
        try:
            case.run()
        except Exception as error:
            command = f"python -m tests.soak --only {check} --seed {seed} --case '{case.name}'"
            raise CaseError(
                f"{check}, seed {seed}, {case.kind} {case.name}: {error!r}\nreplay: {command}"
            ) from error
        yield case


def with_file(image: Image, path: str, data: bytes) -> Image:
    """The same disk with other bytes in one file."""
    number = ROOT
    for part in path.strip("/").split("/"):
        number = image.dirs[number][part]
    return Image({**image.files, number: FileImage(data, image.files[number].modified_ms)}, image.dirs)


def open_manager(
    fs: FileSystem,
    runtime: SimulatedRuntime,
    topics: dict[str, LogConfig] | None = None,
    dirs: tuple[str, ...] = (LOG_DIR,),
) -> LogManager:
    manager = LogManager(fs, runtime, BrokerConfig(log_dirs=dirs), defaults=SMALL, topic_configs=topics)
    manager.open()
    return manager


class Writer:
    """Makes batches of all kinds for one log, and keeps what it should hold."""

    def __init__(self, rng: Random, runtime: SimulatedRuntime, *, keyed: bool = False) -> None:
        self._rng = rng
        self._runtime = runtime
        self._keyed = keyed
        self.leader_epoch = 0
        self.batches: list[Written] = []

    def records(self, count: int) -> list[NewRecord]:
        rng = self._rng
        return [
            NewRecord(
                self._runtime.now_ms() - rng.randrange(50),
                rng.choice([b"a", b"b", b"c", b"a longer key"] if self._keyed else [None, b"", b"key"]),
                rng.choice([None, rng.randbytes(rng.randrange(40)), b"value " * rng.randrange(6)]),
                rng.choice([(), (), ((b"header", b"x"), (b"none", None))]),
            )
            for _ in range(count)
        ]

    def plain(self) -> bytearray:
        return build_batch(self.records(self._rng.randint(1, 4)), codec=self._rng.choice(list(Codec)))

    def from_producer(
        self, producer_id: int, *, transactional: bool = False, base_sequence: int | None = None
    ) -> bytearray:
        """The next batch of an idempotent producer, by what it has in the log."""
        known = self.state().producers.get(producer_id)
        if base_sequence is None:
            base_sequence = known.last_sequence + 1 if known else 0
        return build_batch(
            self.records(self._rng.randint(1, 3)),
            codec=self._rng.choice(list(Codec)),
            producer_id=producer_id,
            producer_epoch=known.epoch if known else 0,
            base_sequence=base_sequence,
            transactional=transactional,
        )

    def marker(self, producer_id: int, *, is_abort: bool) -> bytearray:
        known = self.state().producers.get(producer_id)
        epoch = known.epoch if known else 0
        return build_marker(Marker(is_abort, 0), producer_id, epoch, self._runtime.now_ms())

    def append(self, log: Log, data: bytearray, origin: Origin = Origin.CLIENT) -> Written:
        """Append as leader; the log patches offset and epoch into `data`, which is then what it holds."""
        log.append_as_leader(data, self.leader_epoch, origin)
        return self.note(data)

    def append_fetched(self, log: Log, batches: list[bytearray]) -> None:
        """Append as follower, with the offsets that the leader gave."""
        offset = log.end_offset
        for data in batches:
            patch_offsets(data, 0, offset, self.leader_epoch)
            offset = self.note(data).last + 1
        log.append_as_follower(b"".join(batches))

    def note(self, data: bytearray) -> Written:
        written = Written(bytes(data))
        self.batches.append(written)
        return written

    def state(self) -> Replay:
        return replay(self.batches)

    def open_transactions(self) -> list[int]:
        return [number for number, p in self.state().producers.items() if p.txn_first >= 0]


def small_partition(
    manager: LogManager, runtime: SimulatedRuntime, seed: int, partition: TopicPartition
) -> Writer:
    """Three segments with all five codecs; transactions that are committed, aborted and open; two epochs."""
    log = manager.get_or_create(partition, TOPIC_ID)
    writer = Writer(Random(f"partition {seed}"), runtime)
    for number, codec in enumerate([*Codec, *Codec]):
        writer.append(log, build_batch(writer.records(2), codec=codec))
        writer.append(log, writer.from_producer(7))
        writer.append(log, writer.from_producer(100 + number % 3, transactional=True))
        if number % 2:
            ended = writer.open_transactions()[0]
            writer.append(log, writer.marker(ended, is_abort=number % 4 == 1), Origin.COORDINATOR)
        if number in (3, 7):
            log.roll()
        if number == 5:
            writer.leader_epoch = 3
        runtime.advance(1000)
    log.raise_high_watermark(log.end_offset)
    return writer


__all__ = [
    "LOG_DIR",
    "SMALL",
    "START_MS",
    "Case",
    "CaseError",
    "Writer",
    "open_manager",
    "run_cases",
    "small_partition",
    "with_file",
]
