"""All logs of a broker: opening, making, deleting, checkpoints, clean and unclean stops, failing directories."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from ottla.config import BrokerConfig, LogConfig
from ottla.errors import LogDirLockedError, LogDirOfflineError, StorageError
from ottla.names import TopicPartition
from ottla.runtime import SystemRuntime
from ottla.storage import checkpoint, layout, upkeep
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.steps import apply_retention, delete, truncate
from tests.storage.world import SMALL, append, offsets

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("b", 1)


class Broker:
    """A file system with one or more log dirs; `open` starts a manager over them."""

    def __init__(self, fs: FileSystem, *dirs: str, runtime: SimulatedRuntime | None = None) -> None:
        self.fs = fs
        self.dirs = dirs
        self.runtime = runtime or SimulatedRuntime()

    def open(self, fs: FileSystem | None = None, **config: Any) -> LogManager:
        manager = LogManager(
            fs or self.fs,
            self.runtime,
            BrokerConfig(log_dirs=self.dirs),
            defaults=LogConfig(**{**SMALL, **config}),
        )
        manager.open()
        return manager

    def checkpoint(self, name: str, number: int = 0) -> dict[TopicPartition, int]:
        return checkpoint.read_offsets(self.fs, f"{self.dirs[number]}/{name}")


@pytest.fixture
def broker() -> Broker:
    return Broker(SimulatedDisk(), "/d1")


@pytest.fixture
def two() -> Broker:
    return Broker(SimulatedDisk(), "/d1", "/d2")


@pytest.fixture(params=["simulated", "real"])
def any_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Broker:
    if request.param == "real":
        return Broker(RealFileSystem(), str(tmp_path / "d1"), str(tmp_path / "d2"))
    return Broker(SimulatedDisk(), "/d1", "/d2")


def get(manager: LogManager, partition: TopicPartition) -> Log:
    log = manager.get(partition)
    assert log is not None
    return log


# -- opening and making


def test_a_new_directory_gets_its_identity(any_broker: Broker) -> None:
    any_broker.open().close()
    found = [checkpoint.read_properties(any_broker.fs, f"{path}/meta.properties") for path in any_broker.dirs]
    assert {entry["version"] for entry in found} == {"1"}
    assert {entry["node.id"] for entry in found} == {"1"}
    assert len({entry["cluster.id"] for entry in found}) == 1  # Kafka refuses directories of two clusters
    assert len({entry["directory.id"] for entry in found}) == 2
    any_broker.open().close()
    assert found == [
        checkpoint.read_properties(any_broker.fs, f"{path}/meta.properties") for path in any_broker.dirs
    ]


def test_a_directory_that_is_added_joins_the_cluster_of_the_others(broker: Broker) -> None:
    broker.open().close()
    both = Broker(broker.fs, "/new", "/d1")
    both.open().close()
    found = [
        checkpoint.read_properties(broker.fs, f"{path}/meta.properties")["cluster.id"] for path in both.dirs
    ]
    assert found[0] == found[1]


def test_logs_come_back_after_a_clean_stop(any_broker: Broker) -> None:
    manager = any_broker.open()
    for partition in (A, B, C):
        append(manager.get_or_create(partition), 3)
    manager.close()
    manager = any_broker.open()
    assert set(manager.logs) == {A, B, C}
    assert [offsets(log) for log in manager.logs.values()] == [[0, 1, 2]] * 3
    assert {log.recovery_point for log in manager.logs.values()} == {3}


def test_logs_come_back_after_a_kill(any_broker: Broker) -> None:
    manager = any_broker.open()
    append(manager.get_or_create(A), 3)
    manager.abandon()
    path = get(manager, A).path
    file = any_broker.fs.open(f"{path}/{0:020d}.log", write=True)
    file.pwrite(b"torn", file.size())
    file.close()
    assert offsets(get(any_broker.open(), A)) == [0, 1, 2]


def test_new_logs_go_to_the_emptiest_directory(two: Broker) -> None:
    manager = two.open()
    for number in range(7):
        manager.get_or_create(TopicPartition("t", number))
    counts = [sum(log.dir.path == path for log in manager.logs.values()) for path in two.dirs]
    assert sorted(counts) == [3, 4]


def test_a_log_is_made_once(broker: Broker) -> None:
    manager = broker.open()
    topic_id = uuid.uuid4()
    log = manager.get_or_create(A, topic_id)
    assert manager.get_or_create(A) is log
    assert manager.get(B) is None
    manager.close()
    assert get(broker.open(), A).topic_id == topic_id


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "x" * 250])
def test_a_topic_name_that_makes_no_directory_is_refused(broker: Broker, topic: str) -> None:
    manager = broker.open()
    with pytest.raises(StorageError):
        manager.get_or_create(TopicPartition(topic, 0))
    assert not get_offline(manager)


def get_offline(manager: LogManager) -> bool:
    return not manager.online_dirs


def test_topics_have_their_own_settings_and_can_be_changed(broker: Broker) -> None:
    own = LogConfig(**{**SMALL, "retention_ms": 5})
    manager = LogManager(
        broker.fs, broker.runtime, BrokerConfig(log_dirs=broker.dirs), topic_configs={"a": own}
    )
    manager.open()
    assert manager.get_or_create(A).config.retention_ms == 5
    assert manager.get_or_create(B).config.retention_ms == LogConfig().retention_ms
    manager.configure("b", own)
    assert get(manager, B).config.retention_ms == 5
    assert manager.get_or_create(C).config.retention_ms == 5


def test_progress_is_reported_for_every_log(broker: Broker) -> None:
    manager = broker.open()
    for partition in (A, B, C):
        manager.get_or_create(partition)
    manager.close()
    seen: list[tuple[int, int, str]] = []
    manager = LogManager(broker.fs, broker.runtime, BrokerConfig(log_dirs=broker.dirs))
    manager.open(lambda done, total, name: seen.append((done, total, name)))
    assert [(done, total) for done, total, _ in seen] == [(1, 3), (2, 3), (3, 3)]
    assert {name for _, _, name in seen} == {"a-0", "b-0", "b-1"}


# -- strange directories


def test_a_foreign_directory_is_refused_and_nothing_is_held(broker: Broker) -> None:
    broker.open().close()
    broker.fs.make_dir("/d1/lost+found")
    with pytest.raises(StorageError, match=r"lost\+found"):
        broker.open()
    broker.fs.remove_dir("/d1/lost+found")
    broker.open()  # the lock was given back


def test_foreign_files_are_left_alone(broker: Broker) -> None:
    broker.open().close()
    checkpoint.replace_file(broker.fs, "/d1/notes.txt", b"x")
    broker.open().close()
    assert broker.fs.exists("/d1/notes.txt")


def test_the_log_of_a_controller_is_skipped(broker: Broker) -> None:
    broker.fs.make_dir("/d1/__cluster_metadata-0")
    checkpoint.replace_file(broker.fs, "/d1/__cluster_metadata-0/00000000000000000000.log", b"not ours")
    manager = broker.open()
    assert manager.logs == {}
    manager.close()
    assert broker.fs.read_bytes("/d1/__cluster_metadata-0/00000000000000000000.log") == b"not ours"


def test_a_partition_in_two_directories_is_refused(two: Broker) -> None:
    manager = two.open()
    log = manager.get_or_create(A)
    manager.close()
    other = next(path for path in two.dirs if path != log.dir.path)
    two.fs.make_dir(f"{other}/a-0")
    with pytest.raises(StorageError, match="a-0"):
        two.open()


def test_directories_marked_for_deletion_are_removed_and_strays_kept(any_broker: Broker) -> None:
    manager = any_broker.open()
    for partition in (A, B):
        append(manager.get_or_create(partition))
    manager.close()
    for log, mark in ((get(manager, A), "-delete"), (get(manager, B), "-stray")):
        any_broker.fs.rename(log.path, f"{log.path}.{'0' * 32}{mark}")
    manager = any_broker.open()
    assert manager.logs == {}
    apply_retention(manager)
    left = [
        name
        for path in any_broker.dirs
        for name in any_broker.fs.list_dir(path)
        if name.startswith(("a-", "b-"))
    ]
    assert left == [f"b-0.{'0' * 32}-stray"]


# -- deleting


@pytest.mark.parametrize("topic", ["a", "x" * 249])
def test_a_deleted_log_is_renamed_at_once_and_removed_after_the_delay(any_broker: Broker, topic: str) -> None:
    manager = any_broker.open(file_delete_delay_ms=1000)
    partition = TopicPartition(topic, 0)
    log = manager.get_or_create(partition)
    append(log)
    append(manager.get_or_create(B))
    delete(manager, partition)
    assert manager.get(partition) is None
    assert not any_broker.fs.exists(log.path)
    marked = [name for name in any_broker.fs.list_dir(log.dir.path) if name.endswith("-delete")]
    assert len(marked) == 1
    assert partition not in any_broker.checkpoint(layout.RECOVERY_POINTS, any_broker.dirs.index(log.dir.path))
    apply_retention(manager)
    assert any_broker.fs.exists(f"{log.dir.path}/{marked[0]}")
    any_broker.runtime.advance(1000)
    apply_retention(manager)
    assert not any_broker.fs.exists(f"{log.dir.path}/{marked[0]}")
    assert len(manager.online_dirs) == 2
    fresh = manager.get_or_create(partition)
    assert fresh.end_offset == 0
    assert offsets(get(manager, B)) == [0]


# -- checkpoints


def test_checkpoints_hold_recovery_points_high_watermarks_and_log_starts(broker: Broker) -> None:
    manager = broker.open()
    log = manager.get_or_create(A)
    append(manager.get_or_create(B), 2)
    append(log, 5)
    log.flush()
    append(log, 5)
    log.raise_high_watermark(7)
    log.raise_start_offset(3)
    manager.checkpoint()
    assert broker.checkpoint(layout.RECOVERY_POINTS) == {A: 5, B: 0}
    assert broker.checkpoint(layout.HIGH_WATERMARKS) == {A: 7, B: 0}
    assert broker.checkpoint(layout.LOG_START_OFFSETS) == {A: 3}  # only those above their first segment
    manager.abandon()
    again = get(broker.open(), A)
    assert (again.start_offset, again.high_watermark, again.end_offset) == (3, 7, 10)


def test_a_high_watermark_past_the_end_is_brought_down(broker: Broker) -> None:
    manager = broker.open()
    append(manager.get_or_create(A), 5)
    manager.close()
    checkpoint.write_offsets(broker.fs, "/d1/replication-offset-checkpoint", {A: 99})
    assert get(broker.open(), A).high_watermark == 5


def test_a_cut_writes_the_recovery_point_at_once(broker: Broker) -> None:
    manager = broker.open()
    log = manager.get_or_create(A)
    append(log, 5)
    append(log, 5)
    log.flush()
    manager.checkpoint()
    truncate(manager, A, 5)
    assert broker.checkpoint(layout.RECOVERY_POINTS) == {A: 5}
    truncate(manager, A, 9)  # cuts nothing
    assert log.end_offset == 5


def test_recovery_is_written_down_so_that_it_is_not_done_again(broker: Broker) -> None:
    manager = broker.open()
    append(manager.get_or_create(A), 5)
    manager.abandon()
    broker.open().abandon()
    assert broker.checkpoint(layout.RECOVERY_POINTS) == {A: 5}


def test_what_was_found_after_a_kill_is_on_disk_before_it_is_served(broker: Broker) -> None:
    manager = broker.open()
    append(manager.get_or_create(A), 5)
    append(manager.get_or_create(B), 3)
    manager.abandon()
    manager = broker.open()
    assert {str(key): log.recovery_point for key, log in manager.logs.items()} == {"a-0": 5, "b-0": 3}
    manager.abandon()


def test_a_log_that_was_made_holds_no_file_until_it_is_taken_in(broker: Broker) -> None:
    manager = broker.open()
    log = manager.plan_new(A, uuid.uuid4(), 0)()
    assert not log.segments.active.is_open
    append(manager.add(log), 1)
    manager.close()


@pytest.mark.parametrize("name", [layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOG_START_OFFSETS])
def test_a_damaged_checkpoint_costs_time_not_records(broker: Broker, name: str) -> None:
    manager = broker.open()
    append(manager.get_or_create(A), 5)
    manager.abandon()
    checkpoint.replace_file(broker.fs, f"/d1/{name}", b"nonsense")
    assert offsets(get(broker.open(), A)) == [0, 1, 2, 3, 4]


# -- stopping


def test_the_marker_is_there_only_between_a_clean_stop_and_the_next_start(any_broker: Broker) -> None:
    markers = [f"{path}/{layout.CLEAN_SHUTDOWN}" for path in any_broker.dirs]
    manager = any_broker.open()
    append(manager.get_or_create(A))
    assert not any(any_broker.fs.exists(marker) for marker in markers)
    manager.close()
    assert all(any_broker.fs.exists(marker) for marker in markers)
    manager = any_broker.open()
    assert not any(any_broker.fs.exists(marker) for marker in markers)
    manager.abandon()
    assert not any(any_broker.fs.exists(marker) for marker in markers)


def test_a_directory_whose_log_could_not_be_closed_is_not_marked(two: Broker) -> None:
    manager = two.open()
    for partition in (A, B):
        append(manager.get_or_create(partition))
    broken = get(manager, A)
    point = Point("sync", "*.log", "ottla.storage.log.flusher._sync_file")
    broken.dir.fs = FaultyFileSystem(two.fs, Fault(point))
    manager.close()
    marked = {path for path in two.dirs if two.fs.exists(f"{path}/{layout.CLEAN_SHUTDOWN}")}
    assert marked == set(two.dirs) - {broken.dir.path}


# -- one directory fails


def test_the_other_directories_go_on_when_one_fails(two: Broker) -> None:
    manager = two.open()
    for partition in (A, B):
        append(manager.get_or_create(partition))
    broken, whole = get(manager, A), get(manager, B)
    assert broken.dir is not whole.dir
    broken.dir.fail(OSError(errno.EIO, "gone"), "testing")
    with pytest.raises(LogDirOfflineError):
        append(broken)
    append(whole)
    assert set(manager.logs) == {B}
    assert manager.get_or_create(C).dir is whole.dir
    upkeep.run_once(manager, two.runtime)
    manager.close()
    assert [two.fs.exists(f"{path}/{layout.CLEAN_SHUTDOWN}") for path in two.dirs] == [
        path != broken.dir.path for path in two.dirs
    ]


def test_a_directory_that_fails_while_loading_leaves_the_others(two: Broker) -> None:
    manager = two.open()
    for partition in (A, B):
        append(manager.get_or_create(partition))
    manager.abandon()
    point = Point("truncate", "*.index", "ottla.storage.indexes.sparse_index.reset")
    manager = two.open(FaultyFileSystem(two.fs, Fault(point, error=errno.EIO)))
    assert len(manager.online_dirs) == 1
    assert len(manager.logs) == 1


def test_a_directory_that_cannot_be_opened_leaves_the_others(two: Broker) -> None:
    two.open().close()
    point = Point("lock", ".lock", "ottla.storage.recovery.opened_dir.open_dir")
    manager = two.open(FaultyFileSystem(two.fs, Fault(point, error=errno.EACCES)))
    assert set(manager.failed_dirs) == {"/d1"}
    assert [log_dir.path for log_dir in manager.online_dirs] == ["/d2"]


def test_without_any_directory_there_is_no_broker(broker: Broker) -> None:
    point = Point("lock", ".lock", "ottla.storage.recovery.opened_dir.open_dir")
    with pytest.raises(StorageError, match="no log directory"):
        broker.open(FaultyFileSystem(broker.fs, Fault(point, error=errno.EACCES)))


def test_a_failed_checkpoint_takes_its_directory_offline(two: Broker) -> None:
    manager = two.open()
    manager.close()
    point = Point("rename", "recovery-point-offset-checkpoint.tmp", "ottla.storage.checkpoint.put_in_place")
    manager = two.open(FaultyFileSystem(two.fs, Fault(point, nth=2)))
    manager.get_or_create(A)
    manager.checkpoint()
    assert len(manager.online_dirs) == 1


def test_a_failed_deletion_takes_its_directory_offline(two: Broker) -> None:
    two.open().close()
    point = Point("rename", "a-0", "ottla.storage.removal.rename")
    manager = two.open(FaultyFileSystem(two.fs, Fault(point)))
    manager.get_or_create(A)
    with pytest.raises(StorageError):
        delete(manager, A)
    assert len(manager.online_dirs) == 1


# -- the lock


def test_two_managers_cannot_have_the_same_directory(broker: Broker) -> None:
    manager = broker.open()
    with pytest.raises(LogDirLockedError):
        broker.open()
    manager.close()
    broker.open()


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_held_by_another_process_is_respected(tmp_path: Path) -> None:
    broker = Broker(RealFileSystem(), str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LogDirLockedError, match="another process"):
            broker.open()
        holder.communicate()
    manager = broker.open()
    probe = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'a+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    taken = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path / ".lock")], capture_output=True, check=False
    )
    assert b"BlockingIOError" in taken.stderr
    manager.close()
    with open(tmp_path / ".lock", "a+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


# -- background work


def test_logs_are_flushed_after_flush_ms() -> None:
    broker = Broker(SimulatedDisk(), "/d1", runtime=SimulatedRuntime(queued=True))
    manager = broker.open(flush_ms=1000)
    log = manager.get_or_create(A)
    append(log)
    broker.runtime.advance(999)
    upkeep.run_once(manager, broker.runtime)
    assert broker.runtime.run_pending() == 0
    broker.runtime.advance(1)
    upkeep.run_once(manager, broker.runtime)
    broker.runtime.run_pending()
    assert log.recovery_point == 1
    broker.runtime.advance(1000)
    upkeep.run_once(manager, broker.runtime)
    assert broker.runtime.run_pending() == 0  # nothing is unflushed


def test_retention_goes_over_all_logs(broker: Broker) -> None:
    manager = broker.open(retention_ms=1000, file_delete_delay_ms=0)
    for partition in (A, B, C):
        append(manager.get_or_create(partition))
        get(manager, partition).raise_high_watermark(1)
    broker.runtime.advance(1001)
    upkeep.run_once(manager, broker.runtime)
    assert [log.start_offset for log in manager.logs.values()] == [1, 1, 1]
    assert not [name for name in broker.fs.list_dir("/d1/a-0") if name.endswith(".deleted")]


def test_producers_expire(broker: Broker) -> None:
    manager = broker.open()
    log = manager.get_or_create(A)
    append(log, producer_id=1, producer_epoch=0, base_sequence=0)
    broker.runtime.set_clock(START_MS + 86_400_000)
    upkeep.run_once(manager, broker.runtime)
    assert log.producers.producers == {}


def test_many_logs_are_recovered_on_threads(tmp_path: Path) -> None:
    config = BrokerConfig(log_dirs=(str(tmp_path / "d1"), str(tmp_path / "d2")))
    runtime = SystemRuntime()
    manager = LogManager(RealFileSystem(), runtime, config, defaults=LogConfig(**SMALL))
    manager.open()
    for number in range(30):
        append(manager.get_or_create(TopicPartition("t", number)), number + 1, timestamp=runtime.now_ms())
    runtime.drain()
    manager.abandon()
    manager = LogManager(RealFileSystem(), runtime, config, defaults=LogConfig(**SMALL))
    manager.open()
    assert {tp.partition: log.end_offset for tp, log in manager.logs.items()} == {n: n + 1 for n in range(30)}
    manager.close()
    runtime.close()


# -- many logs that rest


def operations_of_a_stop(logs: int) -> int:
    disk = SimulatedDisk()
    broker = Broker(disk, "/d1")
    manager = broker.open()
    for number in range(logs):
        append(manager.get_or_create(TopicPartition("a", number)), 5)
    manager.close()
    manager = broker.open()
    history = disk.record()
    manager.close()
    return len(history.operations)


def test_a_stop_touches_no_log_that_has_not_changed_since_the_last_one() -> None:
    assert operations_of_a_stop(20) == operations_of_a_stop(1)


@pytest.mark.parametrize("change", ["append", "roll", "truncate"])
def test_a_stop_writes_down_whatever_has_changed(broker: Broker, change: str) -> None:
    manager = broker.open()
    append(manager.get_or_create(A), 5)
    append(manager.get_or_create(A), 5)
    manager.close()
    manager = broker.open()
    log = manager.logs[A]
    assert log.is_as_closed
    if change == "append":
        append(log, 1)
    elif change == "roll":
        log.roll()
    else:
        truncate(manager, A, 5)
    assert not log.is_as_closed
    end_offset = log.end_offset
    manager.close()
    manager = broker.open()
    assert manager.was_clean
    assert manager.logs[A].end_offset == end_offset
    assert manager.logs[A].is_as_closed


def test_a_log_that_was_recovered_is_not_taken_for_one_that_was_closed(broker: Broker) -> None:
    manager = broker.open()
    append(manager.get_or_create(A), 5)
    manager.close()
    broker.open().abandon()
    assert not broker.open().logs[A].is_as_closed


def test_logs_are_taken_out_together_with_one_sync_of_their_names(broker: Broker) -> None:
    manager = broker.open()
    keys = [TopicPartition("a", number) for number in range(20)]
    for key in keys:
        manager.get_or_create(key)
    assert isinstance(broker.fs, SimulatedDisk)
    history = broker.fs.record()
    manager.plan_removal(keys)()
    assert sum(type(operation).__name__ == "SyncDir" for operation in history.operations) == 1
    assert not manager.logs
    broker.runtime.advance(60_000)
    doomed = manager.take_doomed()
    assert len(doomed) == 20
    assert manager.take_doomed() == []
