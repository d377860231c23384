"""The receiving half of a connection, without input or output: bytes in, frames out.

All sessions of a loop receive into one shared buffer, so a connection that waits for its next request holds no
memory. Only a frame that has not arrived whole moves into a buffer of its own. That buffer grows with what arrives,
never with what a length claims, and is charged to a budget that all connections share.

    get_buffer() -> the transport writes n bytes there -> buffer_updated(n) -> next_frame() until it gives None

When the budget is used up, `is_starved` says that the transport must pause; `on_room` is called when it may go on.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ottla.protocol.buffers import SHARED_BYTES, ReceiveBuffers

_FIRST_STEP_BYTES = 16 << 10
_TRUSTED_BYTES = 4 << 20
_PREFIX_BYTES = 4
_LENGTH = Struct(">i")
_NOTHING = memoryview(b"")


class ProtocolError(Exception):
    """A peer that does not speak Kafka's protocol: its connection must be closed."""


class FrameReader:
    """Cuts what one connection receives into frames.

    A frame is a writable view, valid until `next_frame` is called again: who needs its bytes later copies them.
    """

    __slots__ = (
        "_buffer", "_buffers", "_end", "_is_own", "_largest_bytes", "_needed_bytes", "_on_room", "_start",
        "is_starved", "max_frame_bytes",
    )  # fmt: skip

    def __init__(self, buffers: ReceiveBuffers, max_frame_bytes: int, on_room: Callable[[], None]) -> None:
        self._buffers = buffers
        self._on_room = on_room
        self.max_frame_bytes = min(max_frame_bytes, buffers.budget.limit_bytes)
        self.is_starved = False
        self._largest_bytes = 0  # of the frames that came whole, and so may be expected again
        # What has arrived and not been given out: `_buffer[_start:_end]`, in a buffer of our own or in the shared one.
        self._buffer = _NOTHING
        self._is_own = False
        self._start = 0
        self._end = 0
        self._needed_bytes = 0  # of the unfinished frame with its length, as far as known

    @property
    def is_partial(self) -> bool:
        """Whether a frame, or a part of one, has arrived and not been given out."""
        return self._end > self._start

    @property
    def partial_bytes(self) -> int:
        """How much of it."""
        return self._end - self._start

    def get_buffer(self) -> memoryview:
        """Where the next bytes go. Valid until `buffer_updated`; other connections use the same one."""
        if self._is_own:
            return self._buffer[self._end : self._start + self._needed_bytes]
        self._buffer = self._buffers.shared
        return self._buffers.window()

    def buffer_updated(self, size_bytes: int) -> None:
        """So many bytes were written into what `get_buffer` gave."""
        self._end += size_bytes

    def next_frame(self) -> memoryview | None:
        """The next frame, without its length; None when no more has arrived whole."""
        start = self._start
        available = self._end - start
        if available >= _PREFIX_BYTES:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if not 0 <= length <= self.max_frame_bytes:
                raise ProtocolError(self._refusal(length))
            needed = length + _PREFIX_BYTES
            if available >= needed:
                self._start = start + needed
                if length > self._largest_bytes:
                    self._largest_bytes = length
                return self._buffer[start + _PREFIX_BYTES : start + needed]
        elif not available:
            self._let_go()
            return None
        else:
            needed = _PREFIX_BYTES
        self._needed_bytes = needed
        self._make_room()
        return None

    def _refusal(self, length: int) -> str:
        if length < 0:
            return f"a frame of {length} bytes: this is not Kafka's protocol"
        return f"a frame of {length} bytes is larger than socket.request.max.bytes ({self.max_frame_bytes}) allows"

    def park(self) -> None:
        """Keep what has arrived although its frames are not wanted yet: the shared buffer is needed by others.

        The transport must be paused then; `next_frame` goes on where it was.
        """
        if not self._is_own and self._end > self._start:
            self._keep()

    def close(self) -> None:
        """Give all memory back."""
        if self.is_starved:
            self._buffers.budget.cancel(self)
            self.is_starved = False
        self._let_go()

    # -- memory of the unfinished frame

    def _let_go(self) -> None:
        buffer, self._buffer = self._buffer, _NOTHING
        self._start = self._end = 0
        if self._is_own:
            self._is_own = False
            self._buffers.give_back(buffer)
            self._buffers.budget.release(self, len(buffer), is_last=True)

    def _make_room(self) -> None:
        """See that more of the unfinished frame can be received, or say that this must wait."""
        budget = self._buffers.budget
        arrived = self._end - self._start
        if self._is_own:
            if self._end < len(self._buffer):
                return
        elif (
            arrived * 4 >= SHARED_BYTES
            and self._start + self._needed_bytes <= SHARED_BYTES
            and budget.has_room(SHARED_BYTES)
        ):
            # So much has arrived that keeping the buffer is cheaper than copying it.
            budget.take(SHARED_BYTES)
            self._buffer = self._buffers.keep_shared()
            self._is_own = True
            return
        expected = max(_FIRST_STEP_BYTES, 4 * arrived, min(self._largest_bytes, _TRUSTED_BYTES))
        wanted = self._buffers.rounded(min(self._needed_bytes, expected))
        if budget.request(self, wanted):
            self._move(wanted)
            return
        if not self._is_own:
            self._keep()
        self.is_starved = True

    def on_granted(self, size_bytes: int) -> None:
        """The memory that was waited for is there."""
        self.is_starved = False
        self._move(size_bytes)
        self._on_room()

    def _keep(self) -> None:
        """Move what has arrived out of the shared buffer even if the budget is used up: it is read already."""
        size = self._buffers.rounded(self._end - self._start)
        self._buffers.budget.take(size)
        self._move(size)

    def _move(self, size_bytes: int) -> None:
        """Go on in a buffer of this size, which has been charged."""
        old, was_own = self._buffer, self._is_own
        arrived = self._end - self._start
        self._buffer = self._buffers.new(size_bytes)
        self._buffer[:arrived] = old[self._start : self._end]
        self._start, self._end = 0, arrived
        self._is_own = True
        if was_own:
            self._buffers.give_back(old)
            self._buffers.budget.release(self, len(old), is_last=False)
