"""The transaction index (`.txnindex`): transactions that were aborted in one segment.

An entry is 34 bytes, big-endian: version (int16, 0), producer id, first offset, last offset (that of the abort
marker) and the last stable offset when the marker was written (int64 each). The file is made with its first entry;
most segments have none. Entries are ordered by last offset.

What a full disk does not take stays in memory until it does: a segment is not closed before that, and until it is
closed its indexes are made anew after a crash.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.errors import CorruptIndexError, StorageError
from ottla.storage.fs import File, FileSystem, is_full, size_of

ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    """A transaction whose records a read_committed consumer must not see."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """The aborted transactions of one segment; read whole, because it is small or absent."""

    __slots__ = ("_entries", "_file", "_fs", "_written", "base_offset", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        self._fs = fs
        self.path = path
        self.base_offset = base_offset
        self._file: File | None = None
        self._entries: list[AbortedTxn] | None = None
        self._written = 0  # entries that are in the file

    @property
    def entries(self) -> list[AbortedTxn]:
        if self._entries is None:
            data = self._fs.read_bytes(self.path) if size_of(self._fs, self.path) else b""
            self._entries = list(self._parse(data))
            self._written = len(self._entries)
        return self._entries

    def _parse(self, data: bytes) -> Iterator[AbortedTxn]:
        if len(data) % ENTRY.size:
            raise CorruptIndexError(f"{self.path}: its size {len(data)} is not a multiple of {ENTRY.size}")
        for version, *fields in ENTRY.iter_unpack(data):
            entry = AbortedTxn(*fields)
            if (
                version != _VERSION
                or not self.base_offset <= entry.last_offset
                or entry.first_offset > entry.last_offset
            ):
                raise CorruptIndexError(f"{self.path}: version {version}, {entry} cannot be")
            yield entry

    def append(self, txn: AbortedTxn) -> None:
        entries = self.entries
        if entries and entries[-1].last_offset >= txn.last_offset:
            raise StorageError(f"{self.path}: {txn} does not lie after {entries[-1]}")
        entries.append(txn)
        try:
            self.write()
        except OSError as error:
            if not is_full(error):
                raise

    def write(self) -> None:
        """Bring to the file what is not there yet."""
        entries = self.entries
        if self._written < len(entries):
            data = b"".join(ENTRY.pack(_VERSION, *txn) for txn in entries[self._written :])
            self._opened().pwrite(data, self._written * ENTRY.size)
            self._written = len(entries)

    def collect(self, from_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """Aborted transactions that overlap [from_offset, upper_bound), and whether no later one can."""
        found = []
        for txn in self.entries:
            if txn.last_offset >= from_offset and txn.first_offset < upper_bound:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose marker lies at or above `offset`."""
        kept = [txn for txn in self.entries if txn.last_offset < offset]
        if len(kept) < len(self.entries):
            self._written = min(self._written, len(kept))
            self._opened().truncate(self._written * ENTRY.size)
            self._entries = kept

    def reset(self) -> None:
        """Forget everything, whatever is in the file; for rebuilding."""
        if self._fs.exists(self.path):
            self._opened().truncate(0)
        self._entries = []
        self._written = 0

    def sync(self) -> None:
        self.write()
        if self._file is not None or self._fs.exists(self.path):
            self._opened().sync()

    def sanity_check(self) -> None:
        self._entries = None
        _ = self.entries

    def renamed(self, path: str) -> None:
        self.path = path

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._fs.open(self.path, create=True)
        return self._file
