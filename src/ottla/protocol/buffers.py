"""The memory that connections receive into: one buffer that all share, buffers for unfinished frames, one budget."""

from __future__ import annotations

import mmap
from collections import deque
from typing import Final, NamedTuple, Protocol

SHARED_BYTES: Final = 1 << 20
STEP_BYTES: Final = 128 << 10  # larger buffers come in multiples of this, so that one fits many frames
# A larger buffer is mapped: its pages cost nothing before something is written there.
LARGE_BYTES: Final = 8 << 20
_POOLED_BYTES: Final = 16 << 20
_EXACT_BYTES: Final = 64 << 10  # up to here a buffer is as large as asked, and not kept
SMALL_FRAME_BYTES: Final = 64 << 10
_SMALL_PART: Final = 4  # of what is common, a fourth is for small frames alone
_SHARES: Final = 8  # of the rest, that a connection may have when memory is short
_WINDOW_BYTES: Final = 4096  # what a connection may still read at a time while the budget is used up


class Waiter(Protocol):
    """Who asked for memory and is told when it is there."""

    def on_granted(self, size_bytes: int) -> None: ...


class _Request(NamedTuple):
    """Memory that somebody waits for."""

    number: int  # in order of arrival
    waiter: Waiter
    size_bytes: int
    limit_bytes: int  # it fits while no more than this is used; 0: only as a loan
    held_bytes: int
    frame_bytes: int


class MemoryBudget:
    """How much memory unfinished frames may hold, over all connections of a loop, and requests that are worked on.

    The size of one largest frame is kept apart and lent to one waiter at a time: without it, connections that each
    hold a part of a frame could wait for each other for ever. Of the rest a part is for small frames alone, and when
    half of it is used no connection gets more than its share: those that hold much wait for the loan, not the others
    for them.
    """

    def __init__(self, limit_bytes: int, largest_frame_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        # A frame that grows is for a moment in two buffers.
        common_bytes = max(0, limit_bytes - largest_frame_bytes - min(LARGE_BYTES, largest_frame_bytes))
        self._common_bytes = common_bytes
        # Of it, what is not for small frames alone.
        self._plain_bytes = common_bytes - common_bytes // _SMALL_PART
        self._share_bytes = max(self._plain_bytes // _SHARES, SMALL_FRAME_BYTES)
        self._held_bytes = 0  # for requests that are worked on
        self._borrower: Waiter | None = None
        self._lent_bytes = 0
        self._own_bytes = 0  # of the borrower, from before the loan
        self._small: deque[_Request] = deque()
        self._plain: deque[_Request] = deque()
        self._large: deque[_Request] = deque()
        self._arrived = 0
        self._is_admitting = False

    @property
    def is_wanted(self) -> bool:
        """Whether anybody waits for memory."""
        return bool(self._small or self._plain or self._large)

    @property
    def _used_in_common(self) -> int:
        """The loan and what requests hold that are worked on have the memory of one largest frame to themselves."""
        return self.used_bytes - self._lent_bytes - self._held_bytes

    @property
    def is_exhausted(self) -> bool:
        return bool(self._plain or self._small) or self._used_in_common >= self._plain_bytes

    def has_room(self, size_bytes: int) -> bool:
        return not self._plain and self._used_in_common + size_bytes <= self._plain_bytes

    def take(self, size_bytes: int) -> None:
        """Charge memory that is needed in any case."""
        self.used_bytes += size_bytes

    def request(self, waiter: Waiter, size_bytes: int, held_bytes: int, frame_bytes: int) -> bool:
        """Charge memory if there is any; if not, `on_granted` is called when it is there and charged.

        `held_bytes` are charged to the waiter already, for a frame of `frame_bytes`.
        """
        if self._borrower is waiter:
            self._lend(size_bytes)
            return True
        used_bytes = self._used_in_common + size_bytes
        if frame_bytes <= SMALL_FRAME_BYTES:
            limit_bytes, queue = self._common_bytes, self._small
        elif held_bytes + size_bytes <= self._share_bytes or used_bytes <= self._plain_bytes // 2:
            limit_bytes, queue = self._plain_bytes, self._plain
        else:
            limit_bytes, queue = 0, self._large
        if not queue and used_bytes <= limit_bytes:
            self.used_bytes += size_bytes
            return True
        self._arrived += 1
        request = _Request(self._arrived, waiter, size_bytes, limit_bytes, held_bytes, frame_bytes)
        if self.is_wanted or not self._can_lend(request):
            queue.append(request)
            return False
        self._begin_loan(request)
        return True

    def _can_lend(self, request: _Request) -> bool:
        apart_bytes = self.limit_bytes - self._common_bytes
        return (
            self._borrower is None and self._held_bytes + min(request.frame_bytes, apart_bytes) <= apart_bytes
        )

    def _begin_loan(self, request: _Request) -> None:
        self._borrower = request.waiter
        self._own_bytes = request.held_bytes
        self._lend(request.size_bytes)

    def _lend(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes
        self._lent_bytes += size_bytes

    def release(self, waiter: Waiter, size_bytes: int, is_last: bool) -> None:
        """Give memory back. With the last of it a loan ends; then those who wait get theirs, in order."""
        self.used_bytes -= size_bytes
        if self._borrower is waiter:
            own_bytes = min(size_bytes, self._own_bytes)
            self._own_bytes -= own_bytes
            self._lent_bytes -= size_bytes - own_bytes
            if is_last:
                self._borrower = None
                self._lent_bytes = 0
        self._admit()

    def hold(self, size_bytes: int) -> None:
        """Charge what a request needs while it is worked on, or its answer until it is sent: it is there already."""
        self.used_bytes += size_bytes
        self._held_bytes += size_bytes

    def let_go(self, size_bytes: int) -> None:
        """It is not needed any more."""
        self.used_bytes -= size_bytes
        self._held_bytes -= size_bytes
        self._admit()

    def _admit(self) -> None:
        if self._is_admitting or not self.is_wanted:  # who is admitted gives back too
            return
        self._is_admitting = True
        try:
            while (queue := self._next_queue()) is not None:
                request = queue.popleft()
                if self._used_in_common + request.size_bytes <= request.limit_bytes:
                    self.used_bytes += request.size_bytes
                else:
                    self._begin_loan(request)
                request.waiter.on_granted(request.size_bytes)
        finally:
            self._is_admitting = False

    def _next_queue(self) -> deque[_Request] | None:
        """The one whose first can be admitted; with the loan, the one whose first came first."""
        oldest: deque[_Request] | None = None
        for queue in (self._small, self._plain, self._large):
            if not queue:
                continue
            if self._used_in_common + queue[0].size_bytes <= queue[0].limit_bytes:
                return queue
            if oldest is None or queue[0].number < oldest[0].number:
                oldest = queue
        return oldest if oldest is not None and self._can_lend(oldest[0]) else None

    def cancel(self, waiter: Waiter) -> None:
        """The waiter has gone."""
        for queue in (self._small, self._plain, self._large):
            kept = [request for request in queue if request.waiter is not waiter]
            if len(kept) < len(queue):
                queue.clear()
                queue.extend(kept)


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
