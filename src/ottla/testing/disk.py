"""A disk in memory that answers as the operating system does and remembers the order of all changes.

`SimulatedDisk` is a `FileSystem` for storage. `record()` starts a history; `crash.py` turns that into the
disks that a power cut may leave, and each of them is again a `SimulatedDisk` that real code can open.

It is stricter than Linux in one thing: to cut a file below the size of a map that somebody still holds is an
error here, where Linux kills the process later, when the map is touched.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable

from ottla.names import Bytes
from ottla.storage.fs import MAP_GRAIN
from ottla.testing.history import (
    ROOT,
    FileImage,
    History,
    Image,
    Link,
    Operation,
    Rename,
    Resize,
    Sync,
    SyncDir,
    Unlink,
    Write,
)


class _Block(bytearray):
    """The bytes of one map. A subclass, because plain bytearrays cannot be referred to weakly."""

    position = 0  # in the file

    @property
    def end(self) -> int:
        return self.position + len(self)


class _File:
    __slots__ = ("data", "maps", "modified_ms", "number")

    def __init__(self, number: int, data: bytes, modified_ms: int) -> None:
        self.number = number
        self.data = bytearray(data)
        self.modified_ms = modified_ms
        self.maps: list[weakref.ref[_Block]] = []

    def live_maps(self) -> list[_Block]:
        """The blocks of maps that somebody still has a view of."""
        if not self.maps:
            return []
        blocks = [(ref, ref()) for ref in self.maps]
        self.maps = [ref for ref, block in blocks if block is not None]
        return [block for _, block in blocks if block is not None]

    def write(self, data: bytes, position: int) -> None:
        write_at(self.data, data, position)
        for block in self.live_maps():
            start, end = max(block.position, position), min(block.end, position + len(data))
            if start < end:
                part = data[start - position : end - position]
                block[start - block.position : end - block.position] = part

    def resize(self, size: int) -> None:
        for block in self.live_maps():
            if size < block.end:
                raise AssertionError(f"file cut to {size} bytes while {block.end} bytes of it are mapped")
        resize_to(self.data, size)


class _Dir:
    __slots__ = ("entries", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.entries: dict[str, _File | _Dir] = {}


def write_at(content: bytearray, data: bytes | memoryview, position: int) -> None:
    """Write as pwrite does: a gap behind the end becomes zeros."""
    if data and position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def resize_to(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class SimulatedFile:
    """An open file of a `SimulatedDisk`. It stays usable after its name is gone."""

    def __init__(self, disk: SimulatedDisk, path: str, file: _File, *, write: bool) -> None:
        self.path = path
        self._disk = disk
        self._file = file
        self._write = write
        self._open = True

    def _check(self, *, write_error: int = 0) -> _File:
        if not self._open:
            raise _error(errno.EBADF, self.path)
        if write_error and not self._write:
            raise _error(write_error, self.path)
        return self._file

    def pread(self, size: int, position: int) -> bytes:
        content = self._check().data
        if position < 0:
            raise _error(errno.EINVAL, self.path)
        return bytes(content[position : position + size])

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        return bytearray(self.pread(size, position))

    def is_cached(self, size: int, position: int) -> bool:
        return True

    def pwrite(self, data: Bytes, position: int) -> None:
        file = self._check(write_error=errno.EBADF)
        if position < 0:
            raise _error(errno.EINVAL, self.path)
        copy = bytes(data)
        if copy:
            now_ms = file.modified_ms = self._disk.now_ms()
            file.write(copy, position)
            self._disk.note(Write(file.number, position, copy, now_ms))

    def size(self) -> int:
        return len(self._check().data)

    def truncate(self, size: int) -> None:
        file = self._check(write_error=errno.EINVAL)
        if size < 0:
            raise _error(errno.EINVAL, self.path)
        self._resize(file, size)

    def allocate(self, size: int) -> None:
        file = self._check(write_error=errno.EBADF)
        if size <= 0:
            raise _error(errno.EINVAL, self.path)
        if size > len(file.data):
            self._resize(file, size)

    def _resize(self, file: _File, size: int) -> None:
        now_ms = self._disk.now_ms()
        file.resize(size)
        file.modified_ms = now_ms
        self._disk.note(Resize(file.number, size, now_ms))

    def sync(self) -> None:
        self._disk.note(Sync(self._check().number))

    def map(self, size: int, position: int = 0) -> memoryview:
        file = self._check()
        if not 0 < size <= len(file.data) - position or position % MAP_GRAIN:
            raise ValueError(f"cannot map {size} bytes at {position} of a file of {len(file.data)}")
        block = _Block(file.data[position : position + size])
        block.position = position
        file.maps.append(weakref.ref(block))
        return memoryview(block).toreadonly()

    def close(self) -> None:
        self._open = False


class _LockFile(SimulatedFile):
    def close(self) -> None:
        if self._open:
            self._disk.release(self._file)
        super().close()


class SimulatedDisk:
    """A `FileSystem` in memory. Paths are those of a tree of its own, whose root is there from the start."""

    def __init__(self, image: Image | None = None, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self._history: History | None = None
        self._locked: set[_File] = set()
        start = image or Image()
        self._next_number = max([*start.files, *start.dirs]) + 1
        self._root = _Dir(ROOT)
        self._fill(self._root, start)

    def _fill(self, directory: _Dir, image: Image) -> None:
        for name, number in image.dirs[directory.number].items():
            if number in image.dirs:
                child = _Dir(number)
                directory.entries[name] = child
                self._fill(child, image)
            else:
                directory.entries[name] = _File(number, *image.files[number])

    def record(self) -> History:
        """Begin a new history; what is on the disk now counts as safely written."""
        self._history = History(self.image())
        return self._history

    def note(self, operation: Operation) -> None:
        if self._history:
            self._history.operations.append(operation)

    def image(self) -> Image:
        image = Image()
        stack = [self._root]
        while stack:
            directory = stack.pop()
            image.dirs[directory.number] = {name: child.number for name, child in directory.entries.items()}
            for child in directory.entries.values():
                if isinstance(child, _Dir):
                    stack.append(child)
                else:
                    image.files[child.number] = FileImage(bytes(child.data), child.modified_ms)
        return image

    def _find(self, path: str) -> _File | _Dir:
        node: _File | _Dir = self._root
        for part in _parts(path):
            if isinstance(node, _File):
                raise _error(errno.ENOTDIR, path)
            child = node.entries.get(part)
            if child is None:
                raise _error(errno.ENOENT, path)
            node = child
        return node

    def _find_dir(self, path: str) -> _Dir:
        node = self._find(path)
        if isinstance(node, _File):
            raise _error(errno.ENOTDIR, path)
        return node

    def _parent(self, path: str) -> tuple[_Dir, str]:
        parts = _parts(path)
        if not parts:
            raise _error(errno.EBUSY, path)
        return self._find_dir("/".join(parts[:-1])), parts[-1]

    def _add(self, parent: _Dir, name: str, *, is_dir: bool) -> _File | _Dir:
        number, now_ms = self._next_number, self.now_ms()
        self._next_number += 1
        node = _Dir(number) if is_dir else _File(number, b"", now_ms)
        parent.entries[name] = node
        self.note(Link(parent.number, name, number, is_dir, now_ms))
        return node

    def _open_node(self, path: str, *, create: bool) -> _File:
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None and create:
            node = self._add(parent, name, is_dir=False)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, _Dir):
            raise _error(errno.EISDIR, path)
        return node

    def open(self, path: str, *, write: bool = False, create: bool = False) -> SimulatedFile:
        return SimulatedFile(self, path, self._open_node(path, create=create), write=write or create)

    def read_bytes(self, path: str) -> bytes:
        return bytes(self._open_node(path, create=False).data)

    def list_dir(self, path: str) -> list[str]:
        """The newest first: as on a real disk, in an order that nobody should rely on."""
        return list(reversed(self._find_dir(path).entries))

    def exists(self, path: str) -> bool:
        try:
            self._find(path)
        except OSError:
            return False
        return True

    def is_dir(self, path: str) -> bool:
        return self.exists(path) and isinstance(self._find(path), _Dir)

    def is_link(self, path: str) -> bool:
        return False  # this disk has none

    def identity(self, path: str) -> int:
        return id(self._find(path))

    def size(self, path: str) -> int:
        node = self._find(path)
        return len(node.data) if isinstance(node, _File) else 0

    def modified_ms(self, path: str) -> int:
        node = self._find(path)
        return node.modified_ms if isinstance(node, _File) else 0

    def rename(self, source: str, target: str) -> None:
        source_dir, source_name = self._parent(source)
        target_dir, target_name = self._parent(target)
        node = self._find(source)
        replaced = target_dir.entries.get(target_name)
        if replaced is node:
            return
        if isinstance(node, _Dir):
            if _parts(target)[: len(_parts(source))] == _parts(source):
                raise _error(errno.EINVAL, target)
            if isinstance(replaced, _File):
                raise _error(errno.ENOTDIR, target)
        elif isinstance(replaced, _Dir):
            raise _error(errno.EISDIR, target)
        if isinstance(replaced, _Dir) and replaced.entries:
            raise _error(errno.ENOTEMPTY, target)
        del source_dir.entries[source_name]
        target_dir.entries[target_name] = node
        self.note(Rename(source_dir.number, source_name, target_dir.number, target_name))

    def unlink(self, path: str) -> None:
        self._open_node(path, create=False)
        self._remove(path)

    def remove_dir(self, path: str) -> None:
        if self._find_dir(path).entries:
            raise _error(errno.ENOTEMPTY, path)
        self._remove(path)

    def _remove(self, path: str) -> None:
        parent, name = self._parent(path)
        del parent.entries[name]
        self.note(Unlink(parent.number, name))

    def make_dir(self, path: str) -> None:
        directory = self._root
        parts = _parts(path)
        for index, part in enumerate(parts):
            child = directory.entries.get(part) or self._add(directory, part, is_dir=True)
            if isinstance(child, _File):
                raise _error(errno.EEXIST if index == len(parts) - 1 else errno.ENOTDIR, path)
            directory = child

    def sync_dir(self, path: str) -> None:
        self.note(SyncDir(self._find_dir(path).number))

    def space(self, path: str) -> tuple[int, int]:
        """It is as large as a small disk, and never full."""
        self._find_dir(path)
        return 1 << 40, 1 << 39

    def lock(self, path: str) -> SimulatedFile | None:
        """None while an earlier lock is open: each holder counts as a process of its own."""
        file = self._open_node(path, create=True)
        if file in self._locked:
            return None
        self._locked.add(file)
        return _LockFile(self, path, file, write=True)

    def is_locked(self, path: str) -> bool:
        return self.exists(path) and self._find(path) in self._locked

    def release(self, file: _File) -> None:
        self._locked.discard(file)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
