"""A broker's life on a simulated disk: produce requests, fetches, regular work, moves between two log directories.

The replica manager with its lanes runs on one thread, where work of other threads is done piece by piece and its
results come later, so that requests arrive in every state. One topic has flush.messages=1: what is acknowledged, or
shown to a consumer, is promised to be on disk. The promises are marks in the disk's history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, NamedTuple, TypeVar

from ottla.cluster.image import ClusterImage
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.replica.results import AppendResult, DeleteResult, FetchEntry, FetchParams, FetchResult
from ottla.runtime import Done
from ottla.storage.fs import FileSystem
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.reliability.ledger import Entry, Sender, value_of
from tests.reliability.reading import entries_in
from tests.replica.world import World, leading

T = TypeVar("T")

DIRS = ("/a", "/b")
SMALL = {"internal_segment_bytes": 2000, "index_interval_bytes": 200, "segment_index_bytes": 240}
DURABLE, PLAIN = "durable", "plain"
DURABLE_KEYS = [TopicPartition(DURABLE, number) for number in range(3)]
KEYS = [*DURABLE_KEYS, TopicPartition(PLAIN, 0)]
PRODUCERS = 3
_UNDER_WAY = 5  # of a producer in a partition, as clients allow themselves
_OFTEN: dict[str, Any] = {
    "log_initial_task_delay_ms": 100,
    "log_flush_offset_checkpoint_interval_ms": 300,
    "log_flush_start_offset_checkpoint_interval_ms": 400,
    "log_retention_check_interval_ms": 500,
    "replica_high_watermark_checkpoint_interval_ms": 250,
}


class SteppedRuntime(SimulatedRuntime):
    """Blocking work and what follows it are two steps: between them, the loop does other things."""

    def run_blocking(self, work: Callable[[], T], done: Done[T]) -> None:
        def step() -> None:
            try:
                result, error = work(), None
            except Exception as failure:  # noqa: BLE001 - whatever it is, it is the caller's result
                self.call_soon(partial(done, None, failure))
            else:
                self.call_soon(partial(done, result, error))

        self.call_soon(step)


class StoryBroker(World):
    """A broker on a given disk, in a cluster whose topics are known already."""

    def __init__(
        self,
        fs: FileSystem,
        runtime: SimulatedRuntime,
        image: ClusterImage,
        configs: dict[str, dict[str, int]],
    ) -> None:
        self._known = image, configs
        super().__init__(*DIRS, runtime=runtime, fs=fs, **_OFTEN)

    def start(self) -> None:
        self.image, self.configs = self._known
        super().start()


class Batch(NamedTuple):
    """One batch of an idempotent producer."""

    first_number: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    data: bytes


@dataclass
class Producing:
    """What one producer does to one partition."""

    name: str
    producer_id: int
    key: TopicPartition
    batches: list[Batch] = field(default_factory=list)
    answered: int = 0  # so many of them, from the first

    @property
    def sent(self) -> int:
        return sum(batch.count for batch in self.batches)

    def next_batch(self, rng: Random, now_ms: int) -> Batch:
        first_number = self.batches[-1].first_number + self.batches[-1].count if self.batches else 0
        count = rng.randint(1, 4)
        records = [
            NewRecord(now_ms, None, value_of(self.name, first_number + index, b"." * rng.randrange(120)))
            for index in range(count)
        ]
        data = build_batch(
            records,
            codec=rng.choice((Codec.NONE, Codec.NONE, Codec.LZ4)),
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=first_number,
        )
        batch = Batch(first_number, count, bytes(data))
        self.batches.append(batch)
        return batch


class Promise(NamedTuple):
    """What holds for the disk from some moment on."""

    # What is below is on disk: it was acknowledged, or a consumer has seen it.
    ends: dict[TopicPartition, int]
    deleted: dict[TopicPartition, int]  # but for what is below this
    produced: dict[str, tuple[int, int]]  # of each producer and partition: batches sent, batches acknowledged
    senders: dict[TopicPartition, dict[str, Sender]]


class BrokerStory:
    """One seeded life. `history` is what happened to the disk, `promises` what its marks stand for."""

    def __init__(self, seed: int, make_disk: type[SimulatedDisk] = SimulatedDisk) -> None:
        self._rng = Random(f"broker story {seed}")
        self.runtime = SteppedRuntime(seed, queued=True)
        self.disk = make_disk(now_ms=self.runtime.now_ms)
        self.broker = StoryBroker(self.disk, self.runtime, ClusterImage("cluster"), {})
        self.broker.make_topic(DURABLE, *[leading()] * len(DURABLE_KEYS), **SMALL, flush_messages=1)
        self.broker.make_topic(PLAIN, leading(), **SMALL)
        self.runtime.run_pending()
        self.producing = {
            f"p{number}@{key}": Producing(f"p{number}@{key}", 100 + number, key)
            for number in range(PRODUCERS)
            for key in KEYS
        }
        self._ends = dict.fromkeys(KEYS, 0)
        self._deleted = dict.fromkeys(KEYS, 0)
        self._acked: dict[str, dict[int, int | None]] = {name: {} for name in self.producing}
        self.promises: list[Promise] = []
        self.history = self.disk.record()
        self._promise()
        self.told = 0  # answers to produce requests
        self.shown = 0  # answers to fetches with records in them

    def run(self, actions: int) -> None:
        choices: list[tuple[Callable[[], None], int]] = [
            (self._produce, 40),
            (self._produce_again, 5),
            (self._step, 60),
            (self._fetch, 10),
            (self._let_time_pass, 8),
            (self._delete_records, 1),
            (self._move, 2),
        ]
        moves, weights = zip(*choices, strict=True)
        for _ in range(actions):
            self._rng.choices(moves, weights)[0]()
            self._check_watermarks()
        self.runtime.run_pending()
        self._check_watermarks()

    def everything(self) -> dict[TopicPartition, list[Entry]]:
        """All that was ever appended and not deleted, as it is when the story ends."""
        return {key: read_all(self.broker, key) for key in KEYS}

    # -- what happens

    def _step(self) -> None:
        for _ in range(self._rng.randint(1, 4)):
            self.runtime.run_one()

    def _let_time_pass(self) -> None:
        self.runtime.advance(self._rng.randint(1, 400))

    def _produce(self) -> None:
        """A request with new batches of one producer for some partitions."""
        number = self._rng.randrange(PRODUCERS)
        entries = []
        for key in self._rng.sample(KEYS, self._rng.randint(1, 3)):
            producing = self.producing[f"p{number}@{key}"]
            if len(producing.batches) - producing.answered < _UNDER_WAY:
                entries.append((producing, producing.next_batch(self._rng, self.runtime.now_ms())))
        if entries:
            self._send(entries)

    def _produce_again(self) -> None:
        """A client that lost its connection sends what was not answered once more, in order."""
        producing = self._rng.choice(list(self.producing.values()))
        for batch in producing.batches[producing.answered :]:
            self._send([(producing, batch)])

    def _send(self, entries: list[tuple[Producing, Batch]]) -> None:
        self.broker.replicas.append(
            acks=self._rng.choice((1, -1)),
            timeout_ms=30_000,
            entries=[(producing.key, batch.data) for producing, batch in entries],
            done=partial(self._told, entries),
        )
        self._promise()

    def _told(self, entries: list[tuple[Producing, Batch]], results: list[AppendResult]) -> None:
        for (producing, batch), result in zip(entries, results, strict=True):
            assert result.error_code == 0, f"{producing.name}: {ErrorCode(result.error_code).name}"
            key, last = producing.key, result.base_offset + batch.count
            while producing.answered < len(producing.batches):
                if producing.batches[producing.answered].first_number > batch.first_number:
                    break
                producing.answered += 1
            for index in range(batch.count):
                self._acked[producing.name][batch.first_number + index] = result.base_offset + index
            if key.topic == DURABLE:
                self._ends[key] = max(self._ends[key], last)
        self.told += 1
        self._promise()

    def _fetch(self) -> None:
        key = self._rng.choice(KEYS)
        log = self.broker.log(key)
        offset = self._rng.randint(log.start_offset, log.high_watermark)
        wait_ms = self._rng.choice((0, 0, 200))
        self.broker.replicas.fetch(
            FetchParams(max_wait_ms=wait_ms), [FetchEntry(key, None, offset, 1 << 20)], self._shown
        )

    def _shown(self, results: list[FetchResult]) -> None:
        (result,) = results
        if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # deleted while the fetch waited
            return
        assert result.error_code == 0, ErrorCode(result.error_code).name
        seen = entries_in(joined(result.records))
        self.shown += bool(seen)
        if result.partition.topic == DURABLE:
            end = max([result.high_watermark, *(entry.offset + 1 for entry in seen)])
            self._ends[result.partition] = max(self._ends[result.partition], end)
            self._promise()

    def _delete_records(self) -> None:
        key = self._rng.choice(KEYS)
        log = self.broker.log(key)
        offset = self._rng.randint(log.start_offset, log.high_watermark)
        self._deleted[key] = max(self._deleted[key], offset)
        self._promise()  # before it is begun: from now on it may be gone
        self.broker.replicas.delete_records({key: offset}, 30_000, self._was_deleted)

    def _was_deleted(self, results: dict[TopicPartition, DeleteResult]) -> None:
        assert all(result.error_code == 0 for result in results.values()), results

    def _move(self) -> None:
        key = self._rng.choice(KEYS)
        codes = self.broker.replicas.alter_replica_log_dirs({key: self._rng.choice(DIRS)})
        assert codes == {key: 0}, codes

    # -- what must hold

    def _check_watermarks(self) -> None:
        for key in DURABLE_KEYS:
            log = self.broker.log(key)
            assert log.high_watermark <= log.recovery_point, (
                f"{key}: high watermark {log.high_watermark}, flushed up to {log.recovery_point}"
            )

    def _promise(self) -> None:
        senders: dict[TopicPartition, dict[str, Sender]] = {key: {} for key in KEYS}
        for name, producing in self.producing.items():
            senders[producing.key][name] = Sender(True, producing.sent, dict(self._acked[name]))
        produced = {name: (len(p.batches), p.answered) for name, p in self.producing.items()}
        self.promises.append(Promise(dict(self._ends), dict(self._deleted), produced, senders))
        self.history.mark(len(self.promises) - 1)


def joined(records: list[memoryview] | bytes | None) -> bytes:
    return b"".join(records) if isinstance(records, list) else records or b""


def read_all(broker: World, key: TopicPartition) -> list[Entry]:
    """Every record of a partition, as a consumer gets it, on a broker that does blocking work when told."""
    entries: list[Entry] = []
    offset = broker.log(key).start_offset
    while offset < broker.log(key).high_watermark:
        told = broker.fetch(FetchEntry(key, None, offset, 1 << 20))
        broker.runtime.run_pending()
        assert told.only.error_code == 0, f"{key}: {ErrorCode(told.only.error_code).name}"
        entries += (entry for entry in entries_in(joined(told.only.records)) if entry.offset >= offset)
        offset = entries[-1].offset + 1
    return entries
