"""Faults happen where and when a test says, once."""

from __future__ import annotations

import errno

import pytest

from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from tests.disks.faults import Fault, FaultyFileSystem, Point


def save(fs: FaultyFileSystem, path: str, data: bytes) -> None:
    file = fs.open(path + ".tmp", create=True)
    file.pwrite(data, 0)
    file.sync()
    file.close()
    fs.rename(path + ".tmp", path)
    fs.sync_dir("/")


def test_a_run_without_a_fault_shows_each_distinct_operation() -> None:
    fs = FaultyFileSystem(SimulatedDisk())
    for number in range(3):
        save(fs, f"/{number:020d}.snapshot", b"x")
    counts = {(point.kind, point.target): count for point, count in fs.seen.items()}
    assert counts == {
        ("create", "*.snapshot.tmp"): 3,
        ("pwrite", "*.snapshot.tmp"): 3,
        ("sync", "*.snapshot.tmp"): 3,
        ("rename", "*.snapshot.tmp"): 3,
        ("sync_dir", ""): 3,
    }
    assert {point.caller for point in fs.seen} == {f"{__name__}.save"}


@pytest.mark.parametrize("kind", ["create", "pwrite", "sync", "rename", "sync_dir"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_the_chosen_operation_fails_once(kind: str, error: int) -> None:
    dry = FaultyFileSystem(SimulatedDisk())
    save(dry, "/a", b"x")
    point = next(point for point in dry.seen if point.kind == kind)
    fs = FaultyFileSystem(SimulatedDisk(), Fault(point, nth=1, error=error))
    save(fs, "/a", b"1st")
    with pytest.raises(OSError, match=r".") as failed:
        save(fs, "/a", b"2nd")
    assert failed.value.errno == error
    assert fs.fired
    save(fs, "/a", b"3rd")
    assert fs.read_bytes("/a") == b"3rd"


@pytest.mark.parametrize("kind", ["read", "pread", "map", "truncate", "allocate", "list_dir", "unlink"])
def test_every_kind_of_operation_can_fail(kind: str) -> None:
    disk = SimulatedDisk()
    disk.open("/f", create=True).pwrite(b"data", 0)
    calls = {
        "read": lambda fs: fs.read_bytes("/f"),
        "pread": lambda fs: fs.open("/f").pread(1, 0),
        "map": lambda fs: fs.open("/f").map(1),
        "truncate": lambda fs: fs.open("/f", write=True).truncate(1),
        "allocate": lambda fs: fs.open("/f", write=True).allocate(9),
        "list_dir": lambda fs: fs.list_dir("/"),
        "unlink": lambda fs: fs.unlink("/f"),
    }
    dry = FaultyFileSystem(SimulatedDisk(disk.image()))
    calls[kind](dry)
    point = list(dry.seen)[-1]
    fs = FaultyFileSystem(disk, Fault(point))
    before = disk.image()
    with pytest.raises(OSError, match=r"f|/"):
        calls[kind](fs)
    assert disk.image() == before


def test_a_full_disk_may_take_a_part_of_a_write() -> None:
    disk = SimulatedDisk()
    point = Point("pwrite", "f", f"{__name__}.test_a_full_disk_may_take_a_part_of_a_write")
    fs = FaultyFileSystem(disk, Fault(point, error=errno.ENOSPC, written_bytes=3))
    file = fs.open("/f", create=True)
    with pytest.raises(OSError, match="No space"):
        file.pwrite(b"abcdef", 0)
    assert disk.read_bytes("/f") == b"abc"


def test_a_sync_after_a_failed_one_saves_nothing() -> None:
    disk = SimulatedDisk()
    disk.open("/f", create=True)
    history = disk.record()
    point = Point("sync", "f", f"{__name__}.test_a_sync_after_a_failed_one_saves_nothing")
    file = (fs := FaultyFileSystem(disk, Fault(point))).open("/f", write=True)
    file.pwrite(b"data", 0)
    with pytest.raises(OSError, match="f"):
        file.sync()
    file.sync()
    assert fs.seen[point] == 2
    end = [len(history.operations)]
    assert {"/f": b""} in [state.image.contents() for state in crash_states(history, points=end)]
