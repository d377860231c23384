"""The partitions of this broker follow the cluster's image."""

from __future__ import annotations

import errno
import uuid
from itertools import pairwise
from pathlib import Path

import pytest

from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.replica.results import FetchEntry
from ottla.storage import checkpoint, layout
from ottla.storage.fs import RealFileSystem
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.disks.small_disk import SmallFileSystem
from tests.replica.world import T0, T1, World, leading


def directories(world: World, at: int = 0) -> list[str]:
    return sorted(path.name for path in Path(world.config.log_dirs[at]).iterdir() if path.is_dir())


def restart(world: World, *, clean: bool = True) -> None:
    if clean:
        world.logs.close()
    else:
        world.logs.abandon()
    world.start()


def test_a_new_topic_has_its_logs_with_its_id_and_epoch(world: World) -> None:
    topic = world.make_topic("u", leading(epoch=3), leading())
    assert directories(world) == ["t-0", "u-0", "u-1"]
    log = world.log(TopicPartition("u", 0))
    assert log.topic_id == topic.topic_id
    assert checkpoint.read_topic_id(world.fs, f"{log.path}/partition.metadata") == topic.topic_id
    assert log.epochs.entries == [(3, 0)]


def test_partitions_added_later_are_made(world: World) -> None:
    world.make_topic("t", leading(), leading())
    assert world.append(T1).only.error_code == 0


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_back_after_a_restart(world: World, clean: bool) -> None:
    world.append(count=3)
    restart(world, clean=clean)
    assert world.fetch(FetchEntry(T0, None, 0, 1000)).only.high_watermark == 3
    assert world.append().only.base_offset == 3


def test_a_deleted_topic_is_gone_and_may_come_back_empty(world: World) -> None:
    world.append(count=3)
    first = world.image.topics["t"]
    world.drop_topic()
    assert world.append().only.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "t" not in world.metrics.topics
    second = world.make_topic()
    assert second.topic_id != first.topic_id
    assert world.append().only.base_offset == 0


def test_a_topic_made_anew_at_once_waits_until_the_old_one_is_out_of_the_way(tmp_path: Path) -> None:
    world = World(str(tmp_path / "a"), str(tmp_path / "b"), runtime=SimulatedRuntime(queued=True))
    world.make_topic()
    world.runtime.run_pending()
    world.append(count=3)
    old = world.log()
    world.drop_topic()
    world.make_topic()
    ready: list[bool] = []
    world.replicas.when_ready(lambda: ready.append(True))
    assert not ready
    world.runtime.run_pending()
    assert ready
    assert world.log() is not old
    assert world.append().only.base_offset == 0
    assert [name for name in (*directories(world, 0), *directories(world, 1)) if name == "t-0"] == ["t-0"]
    world.logs.abandon()


def test_a_topic_deleted_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    world = World(str(tmp_path), runtime=SimulatedRuntime(queued=True))
    world.make_topic()
    world.drop_topic()
    world.runtime.run_pending()
    assert [name[-7:] for name in directories(world)] == ["-delete"]
    assert world.logs.get(T0) is None
    world.logs.abandon()


def test_logs_of_topics_that_went_meanwhile_are_set_aside(world: World) -> None:
    world.make_topic("u")
    world.append(TopicPartition("u", 0))
    world.logs.close()
    anew = world.image.topics["t"]
    world.image = type(world.image)("cluster")
    world.start()
    names = directories(world)
    assert [name[:4] + name[-6:] for name in names] == ["t-0.-stray", "u-0.-stray"]
    world.set_image({"t": anew})
    assert world.append().only.base_offset == 0


def test_a_log_with_another_topics_id_is_not_served(world: World) -> None:
    world.append(count=3)
    world.logs.close()
    topic = world.image.topics["t"]
    image = type(world.image)("cluster", 5, {}, {"t": type(topic)("t", uuid.UUID(int=5), topic.partitions)})
    world.image = image
    world.start()
    assert world.append().only.base_offset == 0
    assert sum(name.endswith("-stray") for name in directories(world)) == 1


def test_a_partition_whose_directory_could_not_be_opened_is_offline_and_not_made_anew(tmp_path: Path) -> None:
    fs = FaultyFileSystem(RealFileSystem())
    world = World(str(tmp_path / "a"), str(tmp_path / "b"), fs=fs)
    world.make_topic("t", leading(), leading())
    lost = next(key for key in (T0, T1) if world.log(key).path.startswith(world.config.log_dirs[0]))
    (kept,) = {T0, T1} - {lost}
    world.logs.close()
    fs.seen.clear()
    fs.fault = Fault(Point("lock", ".lock", "ottla.storage.recovery.opened_dir.open_dir"), error=errno.EACCES)
    world.start()
    assert world.append(kept).only.error_code == 0
    assert world.append(lost).only.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.make_topic("u")
    assert world.append(TopicPartition("u", 0)).only.error_code == 0
    world.logs.abandon()


def test_a_log_that_cannot_be_made_is_told_as_a_storage_error(tmp_path: Path) -> None:
    fs = FaultyFileSystem(RealFileSystem())
    world = World(str(tmp_path), fs=fs)
    fs.fault = Fault(Point("make_dir", "t-0", "ottla.storage.recovery.loading.load_log"), error=errno.ENOSPC)
    world.make_topic()
    assert world.append().only.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.logs.abandon()


def test_settings_of_a_topic_take_effect_at_once(world: World) -> None:
    assert world.append(count=30).only.error_code == 0
    world.make_topic("t", leading(), max_message_bytes=100)
    assert world.append(count=30).only.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_log_for_which_there_is_no_room_is_made_when_there_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fs = SmallFileSystem(RealFileSystem(), 1 << 20)
    world = World(str(tmp_path), fs=fs)
    fs.capacity_bytes = fs.used_bytes
    world.make_topic()
    assert world.append().only.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.replicas.offline_partitions() == [T0]
    world.runtime.advance(60_000)
    assert len([record for record in caplog.records if "no log for t-0" in record.message]) == 1
    fs.capacity_bytes = 1 << 20
    world.runtime.advance(10_000)
    assert world.append().only.error_code == 0
    assert world.replicas.offline_partitions() == []
    world.logs.abandon()


# -- thousands of partitions


MANY = 300


def test_many_partitions_are_made_and_deleted_a_few_in_each_turn_of_the_loop(tmp_path: Path) -> None:
    world = World(str(tmp_path), runtime=SimulatedRuntime(queued=True))
    world.make_topic("many", *[leading()] * MANY)
    ready: list[bool] = []
    world.replicas.when_ready(lambda: ready.append(True))
    grown: list[int] = []
    while world.runtime.run_one():
        grown.append(len(world.logs.logs))
    assert ready
    assert grown[-1] == MANY
    assert max(after - before for before, after in pairwise([0, *grown])) <= MANY // 3
    world.drop_topic("many")
    assert len(world.logs.logs) > MANY // 2
    world.runtime.run_pending()
    assert not world.logs.logs
    assert sum(name.endswith("-delete") for name in directories(world)) == MANY
    assert checkpoint.read_offsets(world.fs, f"{tmp_path}/{layout.RECOVERY_POINTS}") == {}
    world.logs.abandon()


def test_images_that_come_while_one_is_carried_out_wait_for_their_turn(tmp_path: Path) -> None:
    world = World(str(tmp_path), runtime=SimulatedRuntime(queued=True))
    world.make_topic("many", *[leading()] * MANY)
    world.drop_topic("many")
    again = world.make_topic("many", *[leading()] * MANY)
    world.runtime.run_pending()
    assert {log.topic_id for log in world.logs.logs.values()} == {again.topic_id}
    assert len(world.logs.logs) == MANY
    assert world.append(TopicPartition("many", MANY - 1)).only.error_code == 0
    world.logs.abandon()
