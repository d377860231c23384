"""The real file system through its door: short transfers, maps, names, and the pool that bounds open files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ottla.errors import LogDirOfflineError, StorageError
from ottla.storage.fs import RealFileSystem
from ottla.storage.handles import HandlePool
from ottla.storage.log_dir import LogDir
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.world import World, append, offsets


def test_reads_and_writes_go_on_until_all_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pread, pwrite, preadv = os.pread, os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 4), at))
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at: preadv(fd, [memoryview(buffers[0])[:5]], at))
    file = RealFileSystem().open(str(tmp_path / "f"), create=True)
    file.pwrite(b"0123456789abcdef", 0)
    file.pwrite(memoryview(b"XYZW"), 4)
    assert file.pread(100, 0) == b"0123XYZW89abcdef"
    assert file.pread(6, 2) == b"23XYZW"
    buffer = bytearray(20)
    assert file.pread_into(buffer, 1) == 15
    assert buffer == b"123XYZW89abcdef" + bytes(5)
    assert file.pread(1, 99) == b""


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_that_cannot_tell_what_is_in_memory_is_asked_once_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    preadv, asked = os.preadv, []

    def answer(fd: int, buffers: list[bytearray], at: int, flags: int = 0) -> int:
        if flags:
            asked.append(at)
            raise OSError(number, os.strerror(number))
        return preadv(fd, buffers, at)

    file = RealFileSystem().open(str(tmp_path / "f"), create=True)
    file.pwrite(b"0123456789", 0)
    monkeypatch.setattr(os, "preadv", answer)
    assert bytes(file.pread_cached(4, 2) or b"") == b"2345"
    assert bytes(file.pread_cached(4, 3) or b"") == b"3456"
    assert file.is_cached(10, 0)
    assert asked == [2]


def test_another_error_of_a_file_that_is_asked_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = RealFileSystem().open(str(tmp_path / "f"), create=True)
    monkeypatch.setattr(os, "preadv", fail)
    for ask in (lambda: file.pread_cached(4, 2), lambda: file.is_cached(4, 2)):
        with pytest.raises(OSError, match="Input/output error"):
            ask()


def test_a_map_follows_writes_and_is_read_only(tmp_path: Path) -> None:
    file = RealFileSystem().open(str(tmp_path / "f"), create=True)
    file.truncate(10)
    view = file.map(10)
    file.pwrite(b"abc", 2)
    assert bytes(view) == b"\0\0abc\0\0\0\0\0"
    with pytest.raises(TypeError):
        view[0] = 1
    file.close()
    assert bytes(view[2:5]) == b"abc"
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.map(10)


def test_sizes_can_be_set_and_reserved(tmp_path: Path) -> None:
    fs = RealFileSystem()
    file = fs.open(str(tmp_path / "f"), create=True)
    file.allocate(10_000)
    assert file.size() == fs.size(str(tmp_path / "f")) == 10_000
    assert os.stat(tmp_path / "f").st_blocks * 512 >= 10_000
    file.truncate(5)
    file.sync()
    assert fs.read_bytes(str(tmp_path / "f")) == bytes(5)


def test_a_missing_file_is_not_made_by_reading(tmp_path: Path) -> None:
    for write in (False, True):
        with pytest.raises(FileNotFoundError):
            RealFileSystem().open(str(tmp_path / "f"), write=write)
    read_only = RealFileSystem().open(str(tmp_path / "g"), create=True)
    read_only.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        RealFileSystem().open(str(tmp_path / "g")).pwrite(b"x", 0)


def test_names(tmp_path: Path) -> None:
    fs = RealFileSystem()
    path = str(tmp_path)
    fs.make_dir(f"{path}/a/b")
    fs.make_dir(f"{path}/a/b")
    fs.open(f"{path}/a/f", create=True).close()
    fs.open(f"{path}/a/g", create=True).pwrite(b"old", 0)
    fs.rename(f"{path}/a/f", f"{path}/a/g")
    assert sorted(fs.list_dir(f"{path}/a")) == ["b", "g"]
    assert fs.size(f"{path}/a/g") == 0
    assert fs.is_dir(f"{path}/a/b")
    assert not fs.is_dir(f"{path}/a/g")
    fs.unlink(f"{path}/a/g")
    fs.remove_dir(f"{path}/a/b")
    fs.sync_dir(path)
    assert not fs.exists(f"{path}/a/g")
    assert abs(fs.modified_ms(f"{path}/a") - os.stat(f"{path}/a").st_mtime * 1000) < 2


def test_files_are_not_inherited_by_other_programs(tmp_path: Path) -> None:
    file = RealFileSystem().open(str(tmp_path / "f"), create=True)
    assert not os.get_inheritable(file._fd)


# -- bounded handles


class Holder:
    def __init__(self) -> None:
        self.released = 0

    def release(self) -> None:
        self.released += 1


def test_the_one_opened_longest_ago_is_asked_to_let_go() -> None:
    pool = HandlePool(2)
    first, second, third = Holder(), Holder(), Holder()
    pool.opened(first)
    pool.opened(second)
    pool.opened(first)
    pool.opened(third)
    assert (first.released, second.released, third.released) == (0, 1, 0)
    pool.closed(first)
    pool.opened(second)
    assert third.released == 0


def test_a_log_with_many_segments_is_read_with_few_descriptors(
    tmp_path: Path, runtime: SimulatedRuntime
) -> None:
    world = World(RealFileSystem(), str(tmp_path), runtime)
    log = world.load(internal_segment_bytes=200, index_interval_bytes=0)
    pool = HandlePool(4)
    for segment in log.segments:
        segment.use_pool(pool)
    log._handles = pool
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(60):
        append(log, 2)
    assert len(log.segments) > 25
    for _ in range(3):
        assert offsets(log) == list(range(120))
    assert len(os.listdir("/proc/self/fd")) - before <= 12


# -- a log directory


def test_the_first_failure_is_final() -> None:
    log_dir = LogDir(RealFileSystem(), "/d")
    log_dir.check_online()
    first = OSError(errno.EIO, "first")
    assert isinstance(log_dir.fail(first, "writing"), StorageError)
    log_dir.fail(OSError(errno.ENOSPC, "second"), "writing")
    assert log_dir.failure is first
    with pytest.raises(LogDirOfflineError, match="first"):
        log_dir.check_online()


def test_what_is_gone_from_a_file_is_not_in_memory(tmp_path: Path) -> None:
    file = RealFileSystem().open(str(tmp_path / "cut"), create=True)
    file.pwrite(bytes(1 << 20), 0)
    assert file.is_cached(1 << 20, 0)
    file.truncate(1000)
    assert not file.is_cached(1 << 20, 0)
    assert file.is_cached(1000, 0)
