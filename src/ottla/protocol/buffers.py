"""The memory that connections receive into: one buffer that all share, buffers for unfinished frames, one budget."""

from __future__ import annotations

import mmap
from collections import deque
from typing import Final, Protocol

SHARED_BYTES: Final = 1 << 20
STEP_BYTES: Final = 128 << 10  # larger buffers come in multiples of this, so that one fits many frames
LARGE_BYTES: Final = (
    8 << 20
)  # a larger buffer is mapped: its pages cost nothing before something is written there
_POOLED_BYTES: Final = 16 << 20
_EXACT_BYTES: Final = 64 << 10  # up to here a buffer is as large as asked, and not kept
_WINDOW_BYTES: Final = 4096  # what a connection may still read at a time while the budget is used up


class Waiter(Protocol):
    """Who asked for memory and is told when it is there."""

    def on_granted(self, size_bytes: int) -> None: ...


class MemoryBudget:
    """How much memory unfinished frames may hold, over all connections of a loop.

    The size of one largest frame is kept apart and lent to one waiter at a time: without it, connections that each
    hold a part of a frame could wait for each other for ever.
    """

    def __init__(self, limit_bytes: int, largest_frame_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        # A frame that grows is for a moment in two buffers.
        self._common_bytes = max(0, limit_bytes - largest_frame_bytes - min(LARGE_BYTES, largest_frame_bytes))
        self._borrower: Waiter | None = None
        self._waiting: deque[tuple[Waiter, int]] = deque()
        self._is_admitting = False

    @property
    def is_exhausted(self) -> bool:
        return bool(self._waiting) or self.used_bytes >= self._common_bytes

    def has_room(self, size_bytes: int) -> bool:
        return not self._waiting and self.used_bytes + size_bytes <= self._common_bytes

    def take(self, size_bytes: int) -> None:
        """Charge memory that is needed in any case."""
        self.used_bytes += size_bytes

    def request(self, waiter: Waiter, size_bytes: int) -> bool:
        """Charge memory if there is any; if not, `on_granted` is called when it is there and charged."""
        if not self.has_room(size_bytes):
            if self._borrower is not waiter and (self._borrower is not None or self._waiting):
                self._waiting.append((waiter, size_bytes))
                return False
            self._borrower = waiter
        self.used_bytes += size_bytes
        return True

    def release(self, waiter: Waiter, size_bytes: int, is_last: bool) -> None:
        """Give memory back. With the last of it a loan ends; then those who wait get theirs, in order."""
        if is_last and self._borrower is waiter:
            self._borrower = None
        self.let_go(size_bytes)

    def hold(self, size_bytes: int) -> None:
        """Charge what a request needs while it is worked on: it is there already."""
        self.used_bytes += size_bytes

    def let_go(self, size_bytes: int) -> None:
        """It is not needed any more."""
        self.used_bytes -= size_bytes
        if self._waiting and not self._is_admitting:  # who is admitted gives back too
            self._is_admitting = True
            try:
                self._admit()
            finally:
                self._is_admitting = False

    def _admit(self) -> None:
        while self._waiting:
            first, wanted = self._waiting[0]
            if self.used_bytes + wanted > self._common_bytes:
                if self._borrower is not None:
                    return
                self._borrower = first
            self._waiting.popleft()
            self.used_bytes += wanted
            first.on_granted(wanted)

    def cancel(self, waiter: Waiter) -> None:
        """The waiter has gone."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not waiter)


class ReceiveBuffers:
    """The buffers of one loop. Those given back are kept for the next frame: fresh pages are dear."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self._pool: dict[int, list[memoryview]] = {}
        self._pooled_bytes = 0

    def window(self) -> memoryview:
        """Where a connection without an unfinished frame receives; small when memory is short."""
        return self.shared[:_WINDOW_BYTES] if self.budget.is_exhausted else self.shared

    @staticmethod
    def rounded(size_bytes: int) -> int:
        """How large the buffer for this size will be, up to `LARGE_BYTES`."""
        return size_bytes if size_bytes <= _EXACT_BYTES else -(-size_bytes // STEP_BYTES) * STEP_BYTES

    def new(self, size_bytes: int) -> memoryview:
        """A buffer of a rounded size, which has been charged already."""
        kept = self._pool.get(size_bytes)
        if kept:
            self._pooled_bytes -= size_bytes
            return kept.pop()
        return memoryview(bytearray(size_bytes))

    @staticmethod
    def mapped(size_bytes: int) -> memoryview:
        """A large buffer, to be charged as it fills."""
        return memoryview(mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))

    def keep_shared(self) -> memoryview:
        """Hand the shared buffer with its content to one connection; the others go on with another."""
        full, self.shared = self.shared, self.new(SHARED_BYTES)
        return full

    def give_back(self, buffer: memoryview) -> None:
        """Keep a buffer for the next who needs one; its charge is the caller's to release."""
        size_bytes = len(buffer)
        if _EXACT_BYTES < size_bytes <= LARGE_BYTES and self._pooled_bytes + size_bytes <= _POOLED_BYTES:
            self._pool.setdefault(size_bytes, []).append(buffer)
            self._pooled_bytes += size_bytes
