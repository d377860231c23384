"""One log directory, as all logs in it see it: its path, its file system, whether it still works, and has room.

A directory is online, full, or offline. Offline is for good: a disk that failed once is not asked again. Full is for
as long as there is no room: what could not be written has been undone, nothing that was acknowledged is touched, reads
go on, and appends are refused without asking the disk until it says that there is room again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from ottla.errors import DiskFullError, LogDirOfflineError, StorageError
from ottla.storage.fs import FileSystem, describe, error_name, is_full, is_scarce
from ottla.words import counted

_logger = logging.getLogger(__name__)

# That must be free before a directory that was full takes records again; of a small disk a twentieth.
ENOUGH_BYTES = 1 << 20
_SMALL_SHARE = 20
_LOOK_MS = 1000
_MAX_LOOK_MS = 60_000
_NAMED = 20  # partitions that a line names
_RAISE_LIMIT = "Raise the limit (ulimit -n), or have fewer clients"


class Trouble(NamedTuple):
    """A log directory that does not do all that it should."""

    path: str
    state: str  # "offline" or "full"
    error: OSError
    doing: str
    partitions: list[str]

    @property
    def reason(self) -> str:
        return f"{describe(self.error)}, {self.doing}"


class LogDir:
    """Goes offline with its first I/O error and stays so, unless that was want of room and could be undone."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.fs = fs
        self.path = path
        self.failure: OSError | None = None
        self.fullness: OSError | None = None
        self.refusal: OSError | None = None  # why nothing is appended: one of the two
        self.doing = ""  # what was being done when that happened
        self.partitions: Callable[[], list[str]] = list  # whose logs lie here; set by who knows
        self._next_look_ms = 0
        self._look_ms = _LOOK_MS
        self._is_seen_full = False

    @property
    def offline(self) -> bool:
        return self.failure is not None

    @property
    def reason(self) -> str:
        """Why it is offline or full, with the file and what was being done."""
        return "" if self.refusal is None else f"{describe(self.refusal)}, {self.doing}"

    def fail(self, error: OSError, doing: str) -> StorageError:
        """Take the directory offline; returns the error to raise. Where the system lacks descriptors or memory, the
        disk is not at fault: then only this operation has failed."""
        if is_scarce(error):
            _logger.error(
                "log directory %s: %s failed: %s. %s", self.path, doing, describe(error), _RAISE_LIMIT
            )
            return StorageError(f"{self.path}: {doing} failed ({describe(error)})")
        if self.failure is None:
            self.failure = self.refusal = error
            self.fullness = None
            self.doing = doing
            _logger.error(
                "log directory %s is offline: %s. %s. Look at the disk, then start the broker again",
                self.path, self.reason, _those(self.partitions()),
            )  # fmt: skip
        return StorageError(f"{self.path}: {doing} failed ({describe(error)}); the log directory is offline")

    def refuse(self, error: OSError, doing: str) -> StorageError:
        """For who has undone what could not be written: take nothing more while there is no room. Any other error takes
        the directory offline."""
        if not is_full(error) or self.failure is not None:
            return self.fail(error, doing)
        if self.fullness is None:
            self.fullness = self.refusal = error
            self.doing = doing
            self._is_seen_full = False
            advice = (
                _RAISE_LIMIT
                if is_scarce(error)
                else "Free space, or lower retention.bytes or retention.ms of a topic"
            )
            _logger.error(
                "log directory %s is full: %s, %s bytes free. Nothing is lost; reads go on, writes are refused until "
                "there is room. %s", self.path, self.reason, self._free_text(), advice,
            )  # fmt: skip
        return _full(error)

    def check_online(self) -> None:
        if self.failure is not None:
            raise LogDirOfflineError(f"{self.path} is offline since: {self.reason}")

    def check_writable(self, monotonic_ms: int) -> None:
        """For appends, when there is a refusal: raise it, unless there is room again."""
        self.check_online()
        self.look_for_room(monotonic_ms)
        if self.fullness is not None:
            raise _full(self.fullness)

    def look_for_room(self, monotonic_ms: int) -> None:
        """If the directory is full, ask the disk now and then whether it still is."""
        if self.fullness is None or monotonic_ms < self._next_look_ms:
            return
        try:
            total_bytes, free_bytes = self.fs.space(self.path)
        except OSError as error:
            self.fail(error, "asking for room")
            return
        if free_bytes < min(ENOUGH_BYTES, total_bytes // _SMALL_SHARE):
            self._is_seen_full = True
            self._look_ms = _LOOK_MS
            self._next_look_ms = monotonic_ms + _LOOK_MS
            return
        # A quota, or too many files: the disk does not tell. Then it is tried again, less and less often.
        self._look_ms = _LOOK_MS if self._is_seen_full else min(2 * self._look_ms, _MAX_LOOK_MS)
        self._next_look_ms = monotonic_ms + self._look_ms
        self.fullness = None
        self.refusal = self.failure
        _logger.warning("log directory %s takes records again: %d bytes are free", self.path, free_bytes)

    def _free_text(self) -> str:
        try:
            return str(self.fs.space(self.path)[1])
        except OSError:
            return "unknown"


def _full(error: OSError) -> DiskFullError:
    """What clients are told too: so no path."""
    return DiskFullError(f"the disk of the broker is full ({error_name(error)}); nothing was written")


def _those(partitions: list[str]) -> str:
    named = ", ".join(partitions[:_NAMED]) + (", ..." if len(partitions) > _NAMED else "")
    are = "is" if len(partitions) == 1 else "are"
    return f"{counted(len(partitions), 'partition')} {are} offline with it{': ' if named else ''}{named}"
