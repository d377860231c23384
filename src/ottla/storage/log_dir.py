"""One log directory, as all logs in it see it: its path, its file system, and whether it still works."""

from __future__ import annotations

from ottla.errors import LogDirOfflineError, StorageError
from ottla.storage.fs import FileSystem


class LogDir:
    """Goes offline with its first I/O error and stays so: a disk that failed once is not asked again."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.fs = fs
        self.path = path
        self.failure: OSError | None = None

    @property
    def offline(self) -> bool:
        return self.failure is not None

    def fail(self, error: OSError, doing: str) -> StorageError:
        """Take the directory offline; returns the error to raise."""
        if self.failure is None:
            self.failure = error
        return StorageError(f"{self.path}: {doing} failed ({error}); the log directory is offline")

    def check_online(self) -> None:
        if self.failure is not None:
            raise LogDirOfflineError(f"{self.path} is offline since: {self.failure}")
