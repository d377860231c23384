"""The simulated disk answers as the operating system does."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.fs import File, FileSystem, RealFileSystem
from ottla.testing.disk import SimulatedDisk

NAMES = st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/c", "a/a/c", "c/a/b"])
BYTES = st.binary(min_size=1, max_size=9)
SMALL = st.integers(0, 12)

STEPS = st.one_of(
    st.tuples(st.just("open"), NAMES, st.booleans(), st.booleans()),
    st.tuples(st.just("pwrite"), SMALL, BYTES, SMALL),
    st.tuples(st.just("pread"), SMALL, SMALL, SMALL),
    st.tuples(st.just("pread_into"), SMALL, SMALL, SMALL),
    st.tuples(st.just("truncate"), SMALL, SMALL),
    st.tuples(st.just("allocate"), SMALL, SMALL),
    st.tuples(st.just("size"), SMALL),
    st.tuples(st.just("sync"), SMALL),
    st.tuples(st.just("map"), SMALL, st.integers(1, 12), BYTES),
    st.tuples(st.just("close"), SMALL),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(
        st.sampled_from(
            [
                "read_bytes",
                "list_dir",
                "exists",
                "is_dir",
                "unlink",
                "make_dir",
                "make_dir",
                "remove_dir",
                "sync_dir",
            ]
        ),
        NAMES,
    ),
)


class Player:
    """Plays steps on one file system and keeps the files it opened."""

    def __init__(self, fs: FileSystem, root: str) -> None:
        self.fs = fs
        self.root = root
        self.files: list[File] = []

    def outcome(self, step: tuple[Any, ...]) -> object:
        """The result of a step, or the kind of its error."""
        try:
            return self.play(*step)
        except OSError as error:
            return type(error).__name__, error.errno
        except ValueError:
            return "ValueError"

    def play(self, name: str, *args: Any) -> object:
        if name == "open":
            if self.fs.is_dir(self.path(args[0])):
                return None  # Linux opens a directory for reading, and refuses the read
            self.files.append(self.fs.open(self.path(args[0]), write=args[1], create=args[2]))
            return None
        if hasattr(self.fs, name) and name != "size":
            result = getattr(self.fs, name)(*[self.path(arg) for arg in args])
            return sorted(result) if name == "list_dir" else result
        if not self.files:
            return None
        file = self.files[args[0] % len(self.files)]
        if name == "pread_into":
            buffer = bytearray(args[1])
            return file.pread_into(buffer, args[2]), bytes(buffer)
        if name in ("map", "sync"):
            file.size()  # of a closed file these say nothing, or something else
        if name == "map":
            return self.map(file, *args[1:])
        return getattr(file, name)(*args[1:])

    def map(self, file: File, size: int, data: bytes) -> object:
        """What a map shows before and after a write."""
        with file.map(size) as view:
            before = bytes(view)
            file.pwrite(data, 1)
            return before, bytes(view), view.readonly

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def sizes(self) -> list[object]:
        return [self.outcome(("size", index)) for index in range(len(self.files))]

    def tree(self) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        stack = [self.root]
        while stack:
            directory = stack.pop()
            for name in self.fs.list_dir(directory):
                path = f"{directory}/{name}"
                is_dir = self.fs.is_dir(path)
                found[path[len(self.root) :]] = None if is_dir else self.fs.read_bytes(path)
                if is_dir:
                    stack.append(path)
                else:
                    assert self.fs.size(path) == len(self.fs.read_bytes(path))
        return found


@settings(max_examples=300)
@given(st.lists(STEPS, max_size=40))
def test_any_sequence_of_operations_gives_the_same_results_as_the_operating_system(
    steps: list[tuple[Any, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as root:
        real = Player(RealFileSystem(), root)
        disk = SimulatedDisk()
        disk.make_dir("/disk")
        simulated = Player(disk, "/disk")
        try:
            for step in steps:
                assert simulated.outcome(step) == real.outcome(step), step
            assert simulated.sizes() == real.sizes()
            assert simulated.tree() == real.tree()
        finally:
            for file in real.files:
                file.close()


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def test_a_file_without_a_name_keeps_its_bytes_while_it_is_open(disk: SimulatedDisk) -> None:
    file = disk.open("/f", create=True)
    file.pwrite(b"kept", 0)
    disk.unlink("/f")
    file.pwrite(b"!", 4)
    assert file.pread(10, 0) == b"kept!"
    assert not disk.exists("/f")


def test_a_map_follows_later_writes_through_any_handle(disk: SimulatedDisk) -> None:
    file = disk.open("/f", create=True)
    file.pwrite(bytes(8), 0)
    view = file.map(6)
    disk.open("/f", write=True).pwrite(b"abcdefgh", 2)
    assert bytes(view) == b"\0\0abcd"
    with pytest.raises(TypeError):
        view[0] = 1


def test_cutting_a_file_under_a_live_map_is_an_error_and_after_its_release_it_is_not(
    disk: SimulatedDisk,
) -> None:
    file = disk.open("/f", create=True)
    file.pwrite(bytes(8), 0)
    view = file.map(6)
    part = view[2:4]
    file.truncate(6)
    with pytest.raises(AssertionError):
        file.truncate(5)
    view.release()
    with pytest.raises(AssertionError):
        file.truncate(5)
    part.release()
    file.truncate(5)
    assert file.size() == 5


def test_a_lock_is_refused_while_it_is_held_and_free_after_close(disk: SimulatedDisk) -> None:
    held = disk.lock("/.lock")
    assert held is not None
    assert disk.lock("/.lock") is None
    held.close()
    assert disk.lock("/.lock") is not None


def test_the_time_of_the_last_change_comes_from_the_clock() -> None:
    clock = [5]
    disk = SimulatedDisk(now_ms=lambda: clock[0])
    file = disk.open("/f", create=True)
    assert disk.modified_ms("/f") == 5
    clock[0] = 9
    file.pread(1, 0)
    assert disk.modified_ms("/f") == 5
    file.pwrite(b"x", 0)
    assert disk.modified_ms("/f") == 9


def test_an_image_makes_an_equal_disk_that_goes_its_own_way(disk: SimulatedDisk) -> None:
    disk.make_dir("/d/e")
    disk.open("/d/f", create=True).pwrite(b"one", 0)
    twin = SimulatedDisk(disk.image())
    assert twin.image() == disk.image()
    twin.open("/d/f", write=True).pwrite(b"two", 0)
    twin.open("/d/new", create=True)
    assert disk.read_bytes("/d/f") == b"one"
    assert disk.list_dir("/d") == ["f", "e"]


@pytest.mark.parametrize(
    ("attempt", "number"),
    [
        (lambda fs: fs.open("/dir"), errno.EISDIR),
        (lambda fs: fs.open("/none/f", create=True), errno.ENOENT),
        (lambda fs: fs.open("/file/f", create=True), errno.ENOTDIR),
        (lambda fs: fs.unlink("/"), errno.EBUSY),
        (lambda fs: fs.remove_dir("/"), errno.ENOTEMPTY),
        (lambda fs: fs.rename("/dir", "/dir/inside/it"), errno.ENOENT),
        (lambda fs: fs.open("/file").pwrite(b"x", 0), errno.EBADF),
        (lambda fs: fs.open("/file", write=True).pwrite(b"x", -1), errno.EINVAL),
    ],
)
def test_what_the_operating_system_refuses_is_refused(
    disk: SimulatedDisk, attempt: Callable[[FileSystem], object], number: int
) -> None:
    disk.make_dir("/dir")
    disk.open("/file", create=True)
    with pytest.raises(OSError, match=os.strerror(number)) as refused:
        attempt(disk)
    assert refused.value.errno == number
