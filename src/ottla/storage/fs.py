"""The only door to the disk.

Storage opens, writes, maps, renames and deletes through a `FileSystem`, and never through `os` or `open`. The real
one adds nothing but loops for short reads and writes; a test can put one in its place that sees, fails, tears or
forgets any operation. Maps are read-only: a write that goes through `pwrite` fails with an error, one that goes
through a writable map would fail with a signal.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import struct
from collections.abc import Callable
from typing import Protocol

from ottla.names import Bytes

MAP_GRAIN = mmap.ALLOCATIONGRANULARITY
# Pages come into memory and leave it in long runs: one look into each piece of this size tells about all of it.
_PROBE_BYTES = 256 << 10
_CANNOT_SAY = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)  # a file system in memory, or an old kernel
_READ_BYTES = 64 << 10
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def is_full(error: BaseException | None) -> bool:
    """Whether an operation failed only for want of room, or of what the system has too little of for now."""
    return isinstance(error, OSError) and (error.errno in _NO_ROOM or error.errno in _SCARCE)


def is_out_of_space(error: BaseException | None) -> bool:
    """Whether a full disk is the reason of an error, or the reason of its reason."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return error is not None and error.errno in _NO_ROOM


def is_scarce(error: BaseException | None) -> bool:
    """Whether it was descriptors or memory of the system that were wanting: no fault of the disk."""
    return isinstance(error, OSError) and error.errno in _SCARCE


def error_name(error: OSError) -> str:
    """As in ENOSPC; empty where there is none."""
    return "" if error.errno is None else errno.errorcode.get(error.errno, str(error.errno))


def describe(error: OSError) -> str:
    """For people: the error's name, what it means, and the file."""
    if error.errno is None:
        return str(error)
    what = f"{error_name(error)} ({error.strerror or os.strerror(error.errno)})"
    return f"{what} at {error.filename}" if error.filename else what


class ColdPagesError(Exception):
    """What is to be read is not in memory. `warm` brings it there; it may run on any thread."""

    def __init__(self, warm: Callable[[], None]) -> None:
        super().__init__("a read would wait for the disk")
        self.warm = warm


class File(Protocol):
    """An open file. Positions are explicit, so that no hidden cursor is shared."""

    path: str

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        """Fill `buffer` from `position`; the number of bytes read, fewer only at the end of the file."""

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        """As `pread` within the file, but None where that would wait for the disk."""

    def is_cached(self, size: int, position: int) -> bool:
        """Whether these bytes are most likely in memory, so that a map of them can be touched without waiting."""

    def pwrite(self, data: Bytes, position: int) -> None:
        """Write all of `data` at `position`."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None:
        """Cut, or grow with zeros that take no space."""

    def allocate(self, size: int) -> None:
        """Grow to `size` with blocks reserved, so that a full disk is seen now."""

    def sync(self) -> None:
        """fdatasync: data, and the size that is needed to read it, are on disk when this returns."""

    def map(self, size: int, position: int = 0) -> memoryview:
        """`size` bytes (at least 1) from `position` (a multiple of `MAP_GRAIN`) on, read-only, following later writes.

        To be released before the file is cut below `size`: touching a page that is gone ends the process."""

    def close(self) -> None: ...


class FileSystem(Protocol):
    """The operations on names that storage needs, and no more."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File: ...

    def read_bytes(self, path: str) -> bytes: ...

    def list_dir(self, path: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def is_link(self, path: str) -> bool:
        """Whether this is a symbolic link, whatever it leads to."""

    def identity(self, path: str) -> int:
        """A number that changes when another file takes this name."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def rename(self, source: str, target: str) -> None:
        """Replaces `target` if it is there; durable only after `sync_dir`."""

    def unlink(self, path: str) -> None: ...

    def make_dir(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def space(self, path: str) -> tuple[int, int]:
        """(bytes in all, bytes free) of the disk that a directory lies on."""

    def lock(self, path: str) -> File | None:
        """Take the process-wide lock that Apache Kafka also takes, or None if another process has it."""

    def is_locked(self, path: str) -> bool:
        """Whether another process has that lock. Not for one that this process may have: looking would give it up."""


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "_may_tell", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._may_tell = True  # whether pages are in memory; one that said it cannot is not asked again

    def _named(self, error: OSError) -> OSError:
        """Calls on a descriptor do not say which file it was."""
        error.filename = self.path
        return error

    def pread(self, size: int, position: int) -> bytes:
        try:
            data = os.pread(self._fd, size, position)
        except OSError as error:
            raise self._named(error) from None
        if len(data) == size or not data:
            return data
        parts = [data]
        have = len(data)
        while have < size and (data := os.pread(self._fd, size - have, position + have)):
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        try:
            have = os.preadv(self._fd, (buffer,), position)
        except OSError as error:
            raise self._named(error) from None
        while 0 < have < len(buffer):
            more = os.preadv(self._fd, (memoryview(buffer)[have:],), position + have)
            if not more:
                break
            have += more
        return have

    def pread_cached(self, size: int, position: int) -> bytearray | None:
        buffer = bytearray(size)
        if self._may_tell:
            try:
                return buffer if os.preadv(self._fd, (buffer,), position, os.RWF_NOWAIT) == size else None
            except BlockingIOError:
                return None
            except OSError as error:
                self._cannot_tell(error)
        self.pread_into(buffer, position)
        return buffer

    def is_cached(self, size: int, position: int) -> bool:
        # Not mincore: it looks up each page (13 us a MiB), and needs the address of the map. A read of one byte that
        # must not wait costs less than 1 us.
        if not self._may_tell:
            return True
        byte = bytearray(1)
        try:
            for at in (*range(position, position + size, _PROBE_BYTES), position + size - 1):
                if not os.preadv(self._fd, (byte,), at, os.RWF_NOWAIT):
                    return False  # the file ends before: whoever reads it will say so
        except BlockingIOError:
            return False
        except OSError as error:
            self._cannot_tell(error)
        return True

    def _cannot_tell(self, error: OSError) -> None:
        if error.errno not in _CANNOT_SAY:
            raise self._named(error)
        self._may_tell = False

    def pwrite(self, data: Bytes, position: int) -> None:
        try:
            written = os.pwrite(self._fd, data, position)
            while written < len(data):
                written += os.pwrite(self._fd, memoryview(data)[written:], position + written)
        except OSError as error:
            raise self._named(error) from None

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise self._named(error) from None

    def allocate(self, size: int) -> None:
        try:
            os.posix_fallocate(self._fd, 0, size)
        except OSError as error:
            raise self._named(error) from None

    def sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise self._named(error) from None

    def map(self, size: int, position: int = 0) -> memoryview:
        if self._fd < 0:  # mmap would take -1 for "no file" and give zeros
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return memoryview(mmap.mmap(self._fd, size, mmap.MAP_SHARED, mmap.PROT_READ, offset=position))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class RealFileSystem:
    """The operating system's files."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        flags = (os.O_RDWR if write or create else os.O_RDONLY) | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(path, flags, 0o644))

    def read_bytes(self, path: str) -> bytes:
        # Not open(): a start reads three small files of each partition, and that one asks four times as much of them.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while data := os.read(fd, _READ_BYTES):
                parts.append(data)
            return b"".join(parts)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(fd)

    def list_dir(self, path: str) -> list[str]:
        return os.listdir(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)

    def identity(self, path: str) -> int:
        return os.stat(path).st_ino

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(fd)

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail

    def lock(self, path: str) -> RealFile | None:
        file = self.open(path, create=True)
        try:
            # lockf, not flock: Java takes a POSIX record lock, and the two kinds do not see each other.
            fcntl.lockf(file._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file

    def is_locked(self, path: str) -> bool:
        try:
            file = self.open(path)
        except FileNotFoundError:
            return False
        try:
            # struct flock of 64-bit Linux: type, whence, start, length, pid
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = fcntl.fcntl(file._fd, fcntl.F_GETLK, asked)
        finally:
            file.close()
        kind: int = struct.unpack("hhqqi4x", answer)[0]
        return kind != fcntl.F_UNLCK


def size_of(fs: FileSystem, path: str) -> int:
    """The size of a file; 0 where there is none."""
    try:
        return fs.size(path)
    except FileNotFoundError:
        return 0


def empty_file(fs: FileSystem, path: str) -> None:
    """Cut a file down to nothing, durably: what is appended next must not be followed by what was cut."""
    file = fs.open(path, write=True)
    try:
        if file.size():
            file.truncate(0)
            file.sync()
    finally:
        file.close()


def raise_open_file_limit() -> int:
    """Lift the soft limit on open files to the hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
