"""A power cut or a failing disk at any point of a cleaning: nothing is lost."""

from __future__ import annotations

import errno

import pytest

from ottla.errors import DiskFullError, StorageError
from ottla.records.compression.codec import Codec
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.cleaning.compaction_world import CompactedLog
from tests.storage.world import World

SAMPLES = 4


def _fill(compacted: CompactedLog) -> None:
    """Two groups to clean, with tombstones, an aborted transaction, gaps of an earlier cleaning and old files."""
    for value in ("1", "2", "3"):
        compacted.append(("a", value), ("b", value), producer_id=1)
        compacted.append((f"only{value}", "v" * 60), ("gone", None), codec=Codec.ZSTD)
        compacted.roll()
    compacted.append(("a", "void"), producer_id=3, transactional=True)
    compacted.end(3, commit=False)
    compacted.roll()
    compacted.clean()
    compacted.world.runtime.advance(2000)
    for value in ("4", "5", "6"):
        compacted.append(("a", value), ("only1", value), ("c", "v" * 200))
        compacted.roll()
    compacted.log.flush()


@pytest.mark.slice
def test_a_power_cut_at_any_point_leaves_a_log_with_the_same_values() -> None:
    runtime = SimulatedRuntime()
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    disk.make_dir("/data")
    compacted = CompactedLog(World(disk, "/data", runtime))
    _fill(compacted)
    disk.sync_dir("/data")
    flushed = compacted.log.recovery_point
    assert flushed == compacted.log.end_offset
    history = disk.record()
    assert compacted.clean() == flushed
    compacted.world.runtime.advance(60_000)
    compacted.log.delete_due_files()
    compacted.check()
    sizes = set()
    for state in crash_states(history, samples=SAMPLES):
        world = World(state.disk(runtime.now_ms), "/data", runtime)
        twin = compacted.on(world, flushed)
        try:
            assert twin.log.end_offset == flushed
            twin.check()
            sizes.add(twin.log.size_bytes)
            twin.reopen()
            twin.check()
        except Exception as error:
            raise AssertionError(state.describe()) from error
    assert len(sizes) > 1  # the old log, the new one


def _points() -> list[Point]:
    """All that a cleaning asks of the disk."""
    compacted, fs = _on_faulty_disk(None)
    _fill(compacted)
    before = dict(fs.seen)
    compacted.clean()
    return sorted(point for point in fs.seen if fs.seen[point] > before.get(point, 0))


def _on_faulty_disk(fault: Fault | None) -> tuple[CompactedLog, FaultyFileSystem]:
    runtime = SimulatedRuntime()
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    disk.make_dir("/data")
    fs = FaultyFileSystem(disk, fault)
    return CompactedLog(World(fs, "/data", runtime)), fs


@pytest.mark.slice
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_at_any_point_goes_offline_and_a_restart_finds_all_values(error: int) -> None:
    """A full one stays online while the cleaned segments are made, and the log can be cleaned again."""
    points = _points()
    assert len(points) > 20
    again = 0
    for point in points:
        compacted, fs = _on_faulty_disk(None)
        _fill(compacted)
        fs.fault = Fault(point, fs.seen[point], error)
        refusal: StorageError | None = None
        try:
            compacted.clean()
        except StorageError as failed:
            refusal = failed
        assert fs.fired
        if error == errno.ENOSPC and (refusal is None or isinstance(refusal, DiskFullError)):
            again += 1
            if refusal is not None:
                assert compacted.clean() is not None
            compacted.check()
        else:
            assert compacted.log.dir.offline
        compacted.log.abandon()
        world = compacted.world
        twin = compacted.on(World(fs, world.root, world.runtime), compacted.log.recovery_point)
        twin.check()
    assert bool(again) == (error == errno.ENOSPC)
