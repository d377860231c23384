"""A partition moves to another log directory while it is used, and no crash on the way loses anything."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.cluster.image import TopicInfo
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import AppendResult, FetchEntry, LogDirInfo
from ottla.storage import losses
from ottla.storage.losses import Loss
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.replica.world import T0, Told, World, leading
from tests.storage.world import offsets


class TwoDirs:
    """A broker with the directories a and b; its partition t-0 lies in a. Threads run when told."""

    def __init__(
        self, root: str, fs: SimulatedDisk | None = None, topic: TopicInfo | None = None, **config: Any
    ) -> None:
        self.a, self.b = f"{root}/a", f"{root}/b"
        self.runtime = SimulatedRuntime(queued=True)
        self.world = World(self.a, self.b, runtime=self.runtime, fs=fs, topic=topic, topic_config=config)
        if topic is None:
            self.world.logs.prefer(T0, self.world.logs.online_dirs[0])
            self.world.make_topic("t", leading(), **config)
            self.runtime.run_pending()

    def fill(self, count: int = 30) -> None:
        for number in range(count):
            self.append(value=b"%05d" % number * 100)

    def append(self, **fields: Any) -> Told[AppendResult]:
        told = self.world.append(T0, **fields)
        self.runtime.run_pending()
        return told

    def move(self, target: str | None = None) -> int:
        return self.world.replicas.alter_replica_log_dirs({T0: target or self.b})[T0]

    @property
    def home(self) -> str:
        return self.world.log().dir.path

    def describe(self) -> dict[str, LogDirInfo]:
        told: list[list[LogDirInfo]] = []
        self.world.replicas.describe_log_dirs(None, told.append)
        self.runtime.run_pending()
        return {info.path: info for info in told[0]}


@pytest.fixture
def two(tmp_path: Path) -> TwoDirs:
    return TwoDirs(str(tmp_path))


@pytest.fixture
def durable(tmp_path: Path) -> TwoDirs:
    return TwoDirs(str(tmp_path), flush_messages=1)


def test_a_partition_moves_with_all_that_belongs_to_it(two: TwoDirs) -> None:
    world = two.world
    two.append(producer_id=7, producer_epoch=0, base_sequence=0)
    two.fill()
    topic_id = world.log().topic_id
    assert two.move() == 0
    two.runtime.run_pending()
    assert two.home == two.b
    assert offsets(world.log()) == list(range(31))
    assert (world.log().high_watermark, world.log().topic_id) == (31, topic_id)
    duplicate = two.append(producer_id=7, producer_epoch=0, base_sequence=0)
    assert duplicate.only.base_offset == 0
    assert two.append().only.base_offset == 31
    assert [path.name[-7:] for path in Path(two.a).iterdir() if path.is_dir()] == ["-delete"]
    assert [path.name for path in Path(two.b).iterdir() if path.is_dir()] == ["t-0"]


@pytest.mark.parametrize("kind", ["two", "durable"])
@pytest.mark.parametrize("seed", range(5))
def test_appends_and_reads_go_on_during_a_move(kind: str, seed: int, request: pytest.FixtureRequest) -> None:
    two: TwoDirs = request.getfixturevalue(kind)
    world = two.world
    two.fill(5)
    chance = random.Random(seed)
    two.move()
    told: list[Told[Any]] = []
    expected = 5
    for _ in range(60):
        if chance.random() < 0.5:
            told.append(world.append(value=b"x" * chance.randrange(1, 300_000)))
            expected += 1
        if chance.random() < 0.3:
            told.append(world.fetch(FetchEntry(T0, None, chance.randrange(5), 1 << 20)))
        for _ in range(chance.randrange(3)):
            two.runtime.run_one()
    two.runtime.run_pending()
    assert two.home == two.b
    assert all(answer.only.error_code == 0 for answer in told)
    appended = [answer.only.base_offset for answer in told if hasattr(answer.only, "base_offset")]
    assert appended == list(range(5, expected))
    assert offsets(world.log()) == list(range(expected))


def test_deleted_records_do_not_come_back(two: TwoDirs) -> None:
    two.append(count=10)
    two.fill(3)
    world = two.world
    world.replicas.delete_records({T0: 5}, 1000, lambda _: None)
    two.runtime.run_pending()
    two.move()
    two.runtime.run_pending()
    assert (two.home, world.log().start_offset) == (two.b, 5)
    world.logs.abandon()
    world.start()
    two.runtime.run_pending()
    assert (two.home, world.log().start_offset, offsets(world.log())) == (two.b, 5, list(range(5, 13)))


def test_retention_that_overtakes_the_copy_begins_it_anew(two: TwoDirs) -> None:
    world = two.world
    two.fill(30)
    world.log().roll()
    two.fill(3)
    two.move()
    two.runtime.run_one()
    two.runtime.run_one()
    world.replicas.delete_records({T0: 31}, 1000, lambda _: None)
    two.runtime.run_pending()
    assert (two.home, world.log().start_offset, offsets(world.log())) == (two.b, 31, [31, 32])
    assert two.append().only.base_offset == 33


def test_what_is_wrong_is_told(two: TwoDirs) -> None:
    alter = two.world.replicas.alter_replica_log_dirs
    unknown = TopicPartition("x", 0)
    assert alter({T0: "/nowhere"}) == {T0: ErrorCode.LOG_DIR_NOT_FOUND}
    assert alter({unknown: two.b}) == {unknown: ErrorCode.REPLICA_NOT_AVAILABLE}
    long = TopicPartition("l" * 240, 0)
    assert alter({long: two.b}) == {long: ErrorCode.INVALID_TOPIC_EXCEPTION}
    two.world.logs.online_dirs[1].fail(OSError("broken"), "a test")
    assert alter({T0: two.b}) == {T0: ErrorCode.KAFKA_STORAGE_ERROR}
    assert alter({T0: two.a}) == {T0: 0}, "it is there already"


def test_a_partition_that_is_not_here_yet_will_be_made_where_it_was_wanted(two: TwoDirs) -> None:
    key = TopicPartition("later", 0)
    for _ in range(3):
        two.world.replicas.alter_replica_log_dirs({key: two.b})
    two.world.make_topic("later")
    two.runtime.run_pending()
    assert two.world.log(key).dir.path == two.b


def test_what_is_lost_and_what_was_kept_of_it_move_too(two: TwoDirs) -> None:
    two.fill(3)
    fs, log_dir = two.world.fs, two.world.log().path
    kept = fs.open(f"{log_dir}/{0:020d}.quarantine", create=True)
    kept.pwrite(b"bytes", 0)
    kept.close()
    losses.note(fs, log_dir, [Loss(losses.RECOVERY, f"{0:020d}.log", 1, 2, "zeros")])
    assert two.move() == ErrorCode.NONE
    two.runtime.run_pending()
    assert two.home == two.b
    assert two.world.log().losses == losses.read(fs, f"{two.b}/t-0").losses != []
    assert fs.read_bytes(f"{two.b}/t-0/{0:020d}.quarantine") == b"bytes"


def test_another_target_calls_the_first_move_off(two: TwoDirs) -> None:
    two.fill()
    two.move()
    two.runtime.run_one()
    two.move(two.a)
    two.runtime.run_pending()
    assert two.home == two.a
    assert [path.name for path in Path(two.b).iterdir() if path.is_dir()] == []


def test_log_dirs_are_described_with_what_is_on_its_way(two: TwoDirs) -> None:
    two.fill(40)
    for _ in range(4):
        two.append(value=b"a" * 900_000)
    before = two.describe()
    assert before[two.a].replicas == [(T0, two.world.log().size_bytes, 0, False)]
    assert 0 < before[two.a].usable_bytes <= before[two.a].total_bytes
    assert before[two.b].replicas == []
    two.move()
    for _ in range(4):
        two.runtime.run_one()
    seen: list[list[LogDirInfo]] = []
    two.world.replicas.describe_log_dirs([T0], seen.append)
    two.runtime.run_pending()
    (future,) = next(info for info in seen[0] if info.path == two.b).replicas
    assert future.is_future
    assert 0 < future.offset_lag <= 44
    after = two.describe()
    assert [replica.is_future for replica in after[two.b].replicas] == [False]
    two.world.logs.online_dirs[0].fail(OSError("broken"), "a test")
    assert two.describe()[two.a] == LogDirInfo(two.a, ErrorCode.KAFKA_STORAGE_ERROR)


@pytest.mark.parametrize("steps", range(14))
def test_a_topic_deleted_at_any_step_leaves_nothing_but_what_is_doomed(two: TwoDirs, steps: int) -> None:
    world = two.world
    two.fill()
    two.move()
    for _ in range(steps):
        two.runtime.run_one()
    world.drop_topic()
    ready: list[bool] = []
    world.replicas.when_ready(lambda: ready.append(True))
    two.runtime.run_pending()
    assert ready
    names = [path.name for path in (*Path(two.a).iterdir(), *Path(two.b).iterdir()) if path.is_dir()]
    assert [name for name in names if not name.endswith("-delete")] == []
    assert not any(log_dir.offline for log_dir in world.logs.online_dirs)
    assert len(world.logs.online_dirs) == 2
    world.make_topic()
    two.runtime.run_pending()
    assert two.append().only.base_offset == 0


@pytest.mark.parametrize("steps", range(16))
def test_a_kill_at_any_step_loses_nothing_and_the_move_goes_on_at_the_next_start(
    two: TwoDirs, steps: int
) -> None:
    world = two.world
    two.fill()
    two.move()
    for _ in range(steps):
        two.runtime.run_one()
    world.logs.abandon()
    two.runtime.forget_pending()
    world.start()
    assert offsets(world.log()) == list(range(30))
    two.runtime.run_pending()
    assert two.home == (two.b if steps >= 2 else two.a), "from when its directory was made"
    assert offsets(world.log()) == list(range(30))
    assert two.append().only.base_offset == 30


def test_two_equal_logs_of_an_interrupted_swap_become_one(two: TwoDirs) -> None:
    """The crash between the two renames."""
    world = two.world
    two.fill()
    shutil.copytree(f"{two.a}/t-0", f"{two.b}/t-0")
    world.logs.abandon()
    two.runtime.forget_pending()
    world.start()
    two.runtime.run_pending()
    assert two.home == two.b
    assert offsets(world.log()) == list(range(30))
    world.logs.close()
    world.start()
    assert offsets(world.log()) == list(range(30))
    world.logs.abandon()


def test_a_power_cut_at_any_moment_of_a_move_loses_nothing_that_was_flushed() -> None:
    disk = SimulatedDisk()
    two = TwoDirs("/data", disk, flush_messages=1)
    two.append(count=10)
    two.fill(3)
    two.world.replicas.delete_records({T0: 5}, 1000, lambda _: None)
    two.runtime.run_pending()
    two.world.logs.checkpoint()
    history = disk.record()
    two.move()
    two.runtime.run_pending()
    assert two.home == two.b
    points = range(0, len(history.operations) + 1, 2)
    homes = set()
    for state in crash_states(history, points=points, samples=1):
        after = TwoDirs("/data", state.disk(), topic=two.world.image.topics["t"], flush_messages=1)
        log = after.world.log()
        assert (log.start_offset, offsets(log)) == (5, list(range(5, 13))), state.describe()
        after.runtime.run_pending()
        assert after.append().only.base_offset == 13, state.describe()
        homes.add(after.home)
        names = [name for root in (after.a, after.b) for name in after.world.fs.list_dir(root)]
        assert names.count("t-0") == 1, state.describe()
    assert homes == {two.a, two.b}
