"""Compaction in the background: which log goes first, how many at once, and what a change meanwhile does to it."""

from __future__ import annotations

import pytest

from ottla.config import BrokerConfig, LogConfig
from ottla.names import TopicPartition
from ottla.records.builder import NewRecord, build_batch
from ottla.records.record import read_batches, read_records
from ottla.storage import checkpoint, layout, upkeep
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log_manager import LogManager
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.cleaning.compaction_world import COMPACT
from tests.storage.steps import delete, truncate

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.fixture
def runtime() -> SimulatedRuntime:
    return SimulatedRuntime(queued=True)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def manager(disk: SimulatedDisk, runtime: SimulatedRuntime) -> LogManager:
    return open_manager(disk, runtime)


def open_manager(disk: SimulatedDisk, runtime: SimulatedRuntime) -> LogManager:
    manager = LogManager(disk, runtime, BrokerConfig(log_dirs=("/d",)), defaults=LogConfig(**COMPACT))
    manager.open()
    return manager


def fill(manager: LogManager, partition: TopicPartition, rounds: int) -> Log:
    """`rounds` values for each of three keys, the last ones in a segment that is not active."""
    log = manager.get_or_create(partition)
    for number in range(rounds):
        records = [NewRecord(1_000, b"k%d" % key, b"%d" % number, []) for key in range(3)]
        log.append_as_leader(build_batch(records), 0)
    log.roll()
    log.raise_high_watermark(log.end_offset)
    return log


def values(log: Log) -> dict[bytes | None, list[bytes | None]]:
    found: dict[bytes | None, list[bytes | None]] = {}
    offset = log.start_offset
    while (read := log_reader.read(log, offset, 1 << 20, isolation=Isolation.LOG_END)).slice is not None:
        data = read.slice.read()
        for position, header in read_batches(data):
            for record in read_records(data, position):
                found.setdefault(record.key, []).append(record.value)
            offset = header.next_offset
    return found


def test_the_dirtiest_log_is_cleaned_and_its_checkpoint_written(
    manager: LogManager, disk: SimulatedDisk, runtime: SimulatedRuntime
) -> None:
    log = fill(manager, A, 20)
    assert upkeep.clean_dirtiest(manager) is log
    runtime.run_pending()
    assert values(log) == {b"k0": [b"19"], b"k1": [b"19"], b"k2": [b"19"]}
    assert checkpoint.read_offsets(disk, f"/d/{layout.CLEANER_OFFSETS}") == {A: log.end_offset}
    assert upkeep.clean_dirtiest(manager) is None


def test_the_checkpoint_survives_a_restart(
    manager: LogManager, disk: SimulatedDisk, runtime: SimulatedRuntime
) -> None:
    fill(manager, A, 20)
    upkeep.clean_dirtiest(manager)
    runtime.run_pending()
    manager.close()
    again = open_manager(disk, runtime)
    assert upkeep.clean_dirtiest(again) is None
    fill(again, A, 5)
    assert upkeep.clean_dirtiest(again) is again.get(A)


@pytest.mark.parametrize("threads", [1, 4])
def test_reads_and_writes_stay_below_the_rate(
    manager: LogManager, runtime: SimulatedRuntime, threads: int
) -> None:
    """Both passes read what is dirty, and what is kept is written; each thread has its share of the rate."""
    config = BrokerConfig(
        log_dirs=("/d",), log_cleaner_io_max_bytes_per_second=1000.0, log_cleaner_threads=threads
    )
    manager.configure_broker(config)
    log = fill(manager, A, 20)
    dirty = sum(segment.size for segment in log.segments)
    began_ms = runtime.monotonic_ms()
    assert upkeep.clean_dirtiest(manager) is log
    runtime.run_pending()
    moved = 2 * dirty + sum(segment.size for segment in log.segments)
    assert runtime.monotonic_ms() - began_ms == pytest.approx(moved * threads, abs=20)


def test_the_number_of_threads_can_change_while_it_runs(manager: LogManager) -> None:
    assert manager.cleaner.may_start
    manager.configure_broker(BrokerConfig(log_dirs=("/d",), log_cleaner_threads=0))
    assert not manager.cleaner.may_start


def test_only_as_many_logs_as_threads_are_cleaned_at_once(
    manager: LogManager, runtime: SimulatedRuntime
) -> None:
    first, second = fill(manager, A, 20), fill(manager, B, 20)
    assert {upkeep.clean_dirtiest(manager), upkeep.clean_dirtiest(manager)} < {first, second, None}
    runtime.run_pending()
    assert upkeep.clean_dirtiest(manager) in (first, second)
    runtime.run_pending()
    assert values(first) == values(second) == {b"k0": [b"19"], b"k1": [b"19"], b"k2": [b"19"]}


def test_a_truncation_meanwhile_calls_the_cleaning_off(
    manager: LogManager, disk: SimulatedDisk, runtime: SimulatedRuntime
) -> None:
    log = fill(manager, A, 20)
    upkeep.clean_dirtiest(manager)
    truncate(manager, A, 30)
    runtime.run_pending()
    assert values(log) == {key: [b"%d" % n for n in range(10)] for key in (b"k0", b"k1", b"k2")}
    assert not [name for name in disk.list_dir(log.path) if layout.CLEANED in name or layout.SWAP in name]
    assert A not in manager.cleaner.uncleanable


def test_a_deletion_meanwhile_calls_the_cleaning_off(
    manager: LogManager, disk: SimulatedDisk, runtime: SimulatedRuntime
) -> None:
    fill(manager, A, 20)
    upkeep.clean_dirtiest(manager)
    delete(manager, A)
    runtime.run_pending()
    assert manager.get(A) is None
    assert not disk.exists("/d/a-0")
    assert fill(manager, A, 2).end_offset == 6


def test_a_log_that_cannot_be_cleaned_is_left_alone_and_others_go_on(
    manager: LogManager, disk: SimulatedDisk, runtime: SimulatedRuntime
) -> None:
    bad = fill(manager, A, 40)
    good = fill(manager, B, 20)
    file = disk.open(bad.segments.first.path(layout.LOG), write=True)
    file.pwrite(b"\xff", 100)
    file.close()
    assert upkeep.clean_dirtiest(manager) is bad
    runtime.run_pending()
    assert list(manager.cleaner.uncleanable) == [A]
    assert not bad.dir.offline
    assert upkeep.clean_dirtiest(manager) is good
    runtime.run_pending()
    assert values(good) == {b"k0": [b"19"], b"k1": [b"19"], b"k2": [b"19"]}
