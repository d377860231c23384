"""What the offset index and the time index share: a file of fixed-size entries in ascending order.

The file grows with its entries, and is opened on first use: thousands of partitions that rest cost no descriptor, and
nothing of theirs is touched when a broker starts and stops. Kafka grows the active segment's file to its largest size
first, because it maps it; such a file is read as well.

A lookup reads pages of entries with pread, never through a map: where the disk fails, or somebody cut the file, a map
ends the whole process. Keys grow nearly evenly with their slots, so the page that is guessed first is most often the
right one; the page that was read last stays in memory for the next lookup.

New entries are gathered and written some at a time: when somebody looks one up, when the file is trimmed or synced,
or when there are many. A process that is killed loses those it had gathered, as if it had not yet come to them.

After a crash an index may hold zeros, stale or missing entries. That is harmless: every segment from the recovery
point on has its indexes rebuilt from its log, and an index that fails `sanity_check` is rebuilt as well.
"""

from __future__ import annotations

from ottla.errors import CorruptIndexError, IndexFullError
from ottla.records import kernel
from ottla.storage.fs import File, FileSystem, is_full, size_of
from ottla.storage.handles import HandlePool

_PENDING_BYTES = 1024
_PAGE = 512  # entries
_NO_LIMIT = 2**31  # a rebuilt index holds what its log calls for


class SparseIndex:
    """A file of `ENTRY_SIZE`-byte entries that lies beside one segment's log."""

    ENTRY_SIZE = 0

    __slots__ = (
        "_capacity",
        "_entries",
        "_file",
        "_first_key",
        "_fs",
        "_page",
        "_page_number",
        "_pending",
        "_writable",
        "base_offset",
        "path",
        "pool",
    )

    def __init__(
        self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, *, writable: bool = False
    ) -> None:
        self._fs = fs
        self.path = path
        self.base_offset = base_offset
        self._capacity = max_bytes // self.ENTRY_SIZE
        self._entries = -1  # not known until the file is looked at
        self._file: File | None = None
        self._page = b""  # the entries of the page that was read last
        self._page_number = 0
        self._first_key: int | None = None
        self._pending = bytearray()  # the last entries, not yet in the file
        self._writable = writable
        self.pool: HandlePool | None = None

    @property
    def entries(self) -> int:
        """How many entries there are."""
        if self._entries < 0:
            self._set_entries(size_of(self._fs, self.path))
        return self._entries

    def _set_entries(self, size: int) -> None:
        self._entries = size // self.ENTRY_SIZE
        self._on_load()

    @property
    def room(self) -> int:
        """How many entries may still be added."""
        return self._capacity - self.entries

    @property
    def is_full(self) -> bool:
        return self.room <= 0

    @property
    def size_bytes(self) -> int:
        return self.entries * self.ENTRY_SIZE

    def _on_load(self) -> None:
        self._note_last(self.entry_bytes(self._entries - 1) if self._entries else None)

    def _note_last(self, entry: bytes | bytearray | None) -> None:
        """Remember what the last entry says; None when there is none."""
        raise NotImplementedError

    def _key(self, entry: bytes, at: int = 0) -> int:
        """What entries are ordered by."""
        raise NotImplementedError

    @property
    def _last_key(self) -> int:
        raise NotImplementedError

    def entry_bytes(self, slot: int) -> bytes:
        size = self.ENTRY_SIZE
        at = (slot - self._page_number * _PAGE) * size
        entry = self._page[at : at + size] if at >= 0 else b""
        if not entry:
            entry = self._read(slot, 1)
        if len(entry) < size:
            raise CorruptIndexError(f"{self.path}: entry {slot} of {self._entries} is gone from the file")
        return entry

    def _floor_slot(self, target: int) -> int:
        """The last slot whose key is at or below `target`, or -1. Entries that are gone from the file are not found:
        a lower slot only means a longer way through the log."""
        self.settle()
        entries = self.entries
        if entries == 0:
            return -1
        size = self.ENTRY_SIZE
        # Pages: the first key of `low` is at or below the target, that of `high` is not.
        low, high = -1, (entries - 1) // _PAGE + 1
        number = self._guess(target, entries)
        is_first = True
        while high - low > 1:
            page = self._page_of(number)
            if page and self._key(page) <= target:
                low = number
                if target < self._key(page, len(page) - size):
                    break
            else:
                high = number
            if is_first:  # a guess that is wrong is wrong by little
                number, is_first = (low + 1 if low == number else high - 1), False
            else:
                number = (low + high) // 2
        if low < 0:
            return -1
        page = self._page_of(low)
        return low * _PAGE + kernel.index_floor(page, len(page) // size, size, target)

    def _guess(self, target: int, entries: int) -> int:
        """The page where the target would lie if keys grew evenly."""
        if entries <= _PAGE:
            return 0
        if self._first_key is None:
            first = self._read(0, 1)
            if not first:
                return 0
            self._first_key = self._key(first)
        slot = (target - self._first_key) * entries // max(1, self._last_key - self._first_key)
        return min(max(slot, 0), entries - 1) // _PAGE

    def _page_of(self, number: int) -> bytes:
        size = min(_PAGE, self._entries - number * _PAGE) * self.ENTRY_SIZE
        if number != self._page_number or len(self._page) != size:
            self._page, self._page_number = self._read(number * _PAGE, _PAGE), number
        return self._page

    def _read(self, slot: int, count: int) -> bytes:
        """At most so many entries from a slot on, all of them whole."""
        if self._pending:
            self._write_pending()
        size = self.ENTRY_SIZE
        data = self._opened().pread(min(count, self._entries - slot) * size, slot * size)
        return data if len(data) % size == 0 else data[: len(data) // size * size]

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._fs.open(self.path, write=self._writable, create=self._writable)
            if self.pool is not None:
                self.pool.opened(self)
        return self._file

    def _write_entry(self, entry: bytes) -> None:
        entries = self.entries
        if entries >= self._capacity:
            raise IndexFullError(f"{self.path}: all {self._capacity} entries are used; the segment must roll")
        self._pending += entry
        self._entries = entries + 1

    def write_if_many(self) -> None:
        """After an entry was added: there are not too many that only memory has."""
        if len(self._pending) >= _PENDING_BYTES:
            self.settle()

    def _write_pending(self) -> None:
        if self._pending:
            self._opened().pwrite(self._pending, self._entries * self.ENTRY_SIZE - len(self._pending))
            self._pending.clear()

    def settle(self) -> None:
        """Before a lookup: the last entries are in the file, or, on a full disk, given up. An index may have gaps."""
        if not self._pending:
            return
        try:
            self._write_pending()
        except OSError as error:
            if not is_full(error):
                raise
            self._entries -= len(self._pending) // self.ENTRY_SIZE
            self._pending.clear()
            self._forget_page()
            self._on_load()

    def append_raw(self, entries: bytes | bytearray) -> None:
        """Add entries that the kernel made in order; those that do not fit are left out, an index may have gaps."""
        count = min(len(entries) // self.ENTRY_SIZE, self.room)
        if count > 0:
            fitting = entries[: count * self.ENTRY_SIZE]
            self._pending += fitting
            self._entries += count
            self._note_last(fitting[-self.ENTRY_SIZE :])
            self._write_pending()

    def open_for_append(self, max_bytes: int) -> None:
        """From now on entries may be added, and there is a file for them."""
        entries = self.entries
        self.release()
        self._capacity = max(max_bytes // self.ENTRY_SIZE, entries, 1)
        self._writable = True
        if not entries and not self._fs.exists(self.path):
            self._opened()
            self._close_file()  # opened again with the first entry

    def keep_first(self, entries: int) -> None:
        """Forget all entries from slot `entries` on, zeroing them so that no stale one can be read later."""
        if entries < self.entries:
            self._write_pending()
            dropped = self._entries - entries
            self._opened().pwrite(bytes(dropped * self.ENTRY_SIZE), entries * self.ENTRY_SIZE)
            self._entries = entries
            self._forget_page()
            self._on_load()

    def reset(self) -> None:
        """Forget everything, whatever is in the file; for rebuilding."""
        self._pending.clear()
        self._forget_page()
        self._close_file()
        self._writable = True
        self._opened().truncate(0)
        self._entries = 0
        self._capacity = _NO_LIMIT
        self._on_load()

    def trim(self) -> None:
        """Cut the file to its entries and write no more."""
        entries = self.entries
        self._write_pending()
        if self._writable:
            if size_of(self._fs, self.path) != entries * self.ENTRY_SIZE:
                self._opened().truncate(entries * self.ENTRY_SIZE)
            self._close_file()
            self._writable = False

    def sync(self) -> None:
        self._write_pending()
        if self._file is not None or self._fs.exists(self.path):
            self._opened().sync()

    def sanity_check(self) -> None:
        """Raise CorruptIndexError when the file cannot be a healthy index."""
        size = self._fs.size(self.path)
        if size % self.ENTRY_SIZE:
            raise CorruptIndexError(f"{self.path}: its size {size} is not a multiple of {self.ENTRY_SIZE}")
        if self._entries < 0:
            self._set_entries(size)

    def renamed(self, path: str) -> None:
        """The file has a new name; open handles stay valid."""
        self.path = path

    @property
    def is_open(self) -> bool:
        """Whether it holds a file."""
        return self._file is not None

    def close(self) -> None:
        """Close the files and write nothing: an index that counts was trimmed before."""
        if self.pool is not None:
            self.pool.closed(self)
        self._pending.clear()
        self.release()

    def release(self) -> None:
        """Close the files; the next use opens them again. Writes nothing: the pool asks for this in the middle of what
        another log does, which must not fail for this one."""
        self._forget_page()
        self._close_file()

    def _forget_page(self) -> None:
        self._page, self._first_key = b"", None

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
