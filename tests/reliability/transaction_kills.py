"""`kill -9` after every change that a broker makes to its files while transactions go on.

A story is a row of transactions: of clients old and new, committed, aborted or left open, with records in one
partition or both and with a group's offsets. At every point of it the broker is killed and another starts from the
files. Then every transaction is over, in all its partitions, for its group's offsets and for readers in the same way;
what its producer was told of its end is so; and whoever comes next can go on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from ottla.coordinator.groups.coordinator import OFFSETS_TOPIC
from ottla.internal_topics.transaction_records import Status
from ottla.names import TopicPartition
from ottla.records import batch
from ottla.records.control import parse_marker
from ottla.records.record import read_records
from ottla.testing.crash import CrashState, killed_states
from ottla.testing.disk import SimulatedDisk
from tests.coordinator.transacting import NEW, OLD, TIMEOUT_MS, Transacting
from tests.reliability.scenarios import Case

NAMES = ("n0", "n1", "n2")
TRANSACTIONS = 14
DATA = "/data"
SETTINGS: dict[str, Any] = {"log_segment_bytes": "1048576"}
OPEN, COMMIT, ABORT = "open", "commit", "abort"


@dataclass(frozen=True)
class Done:
    """One transaction, as far as it has come."""

    number: int
    name: str
    values: dict[int, list[bytes]]  # by partition
    has_offset: bool = False
    asked: str = OPEN  # what its producer wants of it
    is_told: bool = False  # that it is so


Promise = tuple[Done, ...]


@dataclass
class Story:
    """A seeded row of transactions. `history` is what happened to the disk, its marks number the promises."""

    seed: int
    directory: str
    promises: list[Promise] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = Random(f"transactions {self.seed}")
        self._disk = SimulatedDisk()
        self._world = Transacting(
            DATA, fs=self._disk, store_path=os.path.join(self.directory, "story.db"), **SETTINGS
        )
        self._done: list[Done] = []
        self._producers: dict[str, tuple[int, int]] = {}
        self.history = self._disk.record()
        self._promise()
        for number in range(TRANSACTIONS):
            self._transact(number)
        self.end_ms = self._world.runtime.now_ms()
        self._world.close()

    @property
    def store_path(self) -> str:
        return os.path.join(self.directory, "story.db")

    def _promise(self, now: Done | None = None) -> None:
        if now is not None:
            self._done[now.number :] = [now]
        self.promises.append(tuple(self._done))
        self.history.mark(len(self.promises) - 1)

    def _transact(self, number: int) -> None:
        rng, world = self._rng, self._world
        name, version = rng.choice(NAMES), rng.choice((OLD, NEW))
        now = Done(number, name, {})
        self._promise(now)
        producer = world.begin(name)
        partitions = rng.choice(((0,), (1,), (0, 1)))
        if version == OLD:
            assert set(world.add(producer, partitions, name=name)) == {0}
        for partition in partitions:
            for sequence in range(rng.randint(1, 2)):
                value = b"%d %d %d" % (number, partition, sequence)
                now = replace(now, values={**now.values, partition: [*now.values.get(partition, []), value]})
                self._promise(now)
                produce = 11 if version == OLD else 12
                code = world.produce(producer, partition, sequence, produce, name=name, value=value)
                assert code == 0, code
        if rng.random() < 0.6:
            now = replace(now, has_offset=True)
            self._promise(now)
            if version == OLD:
                assert world.add_offsets(producer, f"group-{name}", name=name) == 0
            code = world.commit_offset(producer, number, version, name, f"group-{name}")
            assert code == 0, code
        asked = rng.choice((COMMIT, COMMIT, COMMIT, ABORT, ABORT, OPEN))
        if asked is OPEN:
            world.runtime.advance(rng.choice((0, 2 * TIMEOUT_MS)))
            return
        now = replace(now, asked=asked)
        self._promise(now)
        answer = world.end(producer, commit=asked is COMMIT, version=version, name=name)
        assert answer.error_code == 0, answer
        self._promise(replace(now, is_told=True))


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """A kill at every point of one story, or at a `share` of its points."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        story = Story(seed, directory)
        rng = Random(f"points {seed}")
        points = [at for at in range(len(story.history.operations) + 1) if rng.random() < share]
        for state in killed_states(story.history, points):
            yield Case("kill", state.name, partial(_check, story, state))


def _check(story: Story, state: CrashState) -> None:
    label = state.label
    promise = story.promises[label if isinstance(label, int) else 0]
    store_path = f"{story.store_path}.{state.name}"
    shutil.copyfile(story.store_path, store_path)
    world = Transacting(DATA, fs=state.disk(), store_path=store_path, **SETTINGS)
    try:
        world.runtime.set_clock(story.end_ms)
        world.runtime.advance(2 * TIMEOUT_MS)
        _check_settled(world)
        _check_outcomes(world, promise)
        _check_goes_on(world)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{state.describe()}\n{promise[-1:]}") from error
    finally:
        world.close()
        os.unlink(store_path)


def _check_settled(world: Transacting) -> None:
    """Nothing hangs: not at the coordinator, not in a partition, not for readers."""
    for name, txn in world.transactions().items():
        assert txn.status in (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT), (name, txn)
    assert world.services.transactions.markers.under_way == 0
    for key in (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition(OFFSETS_TOPIC, 0)):
        hosted = world.replicas.partition(key)
        assert hosted is not None
        assert hosted.log is not None
        assert hosted.log.last_stable_offset == hosted.log.end_offset, f"{key} is open"


def _check_outcomes(world: Transacting, promise: Promise) -> None:
    """Each transaction is committed everywhere or nowhere, and as its producer was told."""
    seen = {partition: committed_values(world.fetched(partition)) for partition in (0, 1)}
    kept: dict[int, bool] = {}
    for done in promise:
        parts = [
            [value for value in seen[partition] if value in values]
            for partition, values in done.values.items()
        ]
        wanted = list(done.values.values())
        kept[done.number] = any(parts)
        assert parts in (wanted, [[] for _ in wanted]), f"{done}: {parts}"
        if done.asked is not COMMIT:
            assert not kept[done.number], f"{done} was never committed"
        elif done.is_told:
            assert parts == wanted, f"{done} is lost"
    for partition, values in seen.items():
        expected = [
            value for done in promise if kept[done.number] for value in done.values.get(partition, [])
        ]
        assert values == expected, f"partition {partition}: {values}, not {expected}"
    for name in NAMES:
        mine = [done for done in promise if done.name == name and done.has_offset and kept[done.number]]
        expected_offset = mine[-1].number if mine else -1
        found = world.committed_offset(f"group-{name}")
        assert found == expected_offset, f"group-{name} is at {found}, not {expected_offset}"


def _check_goes_on(world: Transacting) -> None:
    for name in NAMES:
        producer = world.begin(name)
        assert world.add(producer, (0, 1), name=name) == [0, 0]
        assert world.produce(producer, 0, name=name, value=b"on") == 0
        assert world.end(producer, name=name).error_code == 0
    assert committed_values(world.fetched(0))[-len(NAMES) :] == [b"on"] * len(NAMES)


def committed_values(fetched: Any) -> list[bytes]:
    """The values that a read_committed consumer takes out of an answer to Fetch."""
    data = bytes(fetched.records or b"")
    aborted = sorted((entry.first_offset, entry.producer_id) for entry in fetched.aborted_transactions or [])
    open_aborted: set[int] = set()
    values: list[bytes] = []
    position = 0
    while position < len(data):
        header = batch.parse_header(data, position)
        while aborted and aborted[0][0] <= header.last_offset:
            open_aborted.add(aborted.pop(0)[1])
        if header.attributes & batch.CONTROL:
            marker = parse_marker(data, position)
            if marker is not None and marker.is_abort:
                open_aborted.discard(header.producer_id)
        elif header.producer_id not in open_aborted:
            values += [record.value or b"" for record in read_records(data, position)]
        position += header.size
    return values
