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
from typing import Final

from ottla.protocol.buffers import LARGE_BYTES, SHARED_BYTES, ReceiveBuffers

_FIRST_STEP_BYTES: Final = 16 << 10
_TRUSTED_BYTES: Final = 4 << 20
_MAPPED_STEP_BYTES: Final = 1 << 20
_PREFIX_BYTES: Final = 4
_LENGTH: Final = Struct(">i")
_NOTHING: Final = memoryview(b"")
# What others send first, read as a length: a TLS record that begins a handshake, and the methods of HTTP.
_TLS_HANDSHAKE: Final = 0x1603
_HTTP: Final = tuple(
    int.from_bytes(method, "big") for method in (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI")
)


def _nothing() -> None: ...


class ProtocolError(Exception):
    """A peer that does not speak Kafka's protocol: its connection must be closed."""


class FrameReader:
    """Cuts what one connection receives into frames.

    A frame is a writable view, valid until `next_frame` is called again: who needs its bytes later copies them.
    """

    __slots__ = (
        "_buffer", "_buffers", "_charged_bytes", "_end", "_failure", "_largest_bytes", "_needed_bytes", "_on_room",
        "_start", "is_starved", "max_frame_bytes",
    )  # fmt: skip

    def __init__(self, buffers: ReceiveBuffers, max_frame_bytes: int, on_room: Callable[[], None]) -> None:
        self._buffers = buffers
        self._on_room = on_room
        self.max_frame_bytes = min(max_frame_bytes, buffers.budget.limit_bytes)
        self.is_starved = False
        self._failure = ""  # why no more can be received
        self._largest_bytes = 0  # of the frames that came whole, and so may be expected again
        # What has arrived and not been given out: `_buffer[_start:_end]`, in a buffer of our own or in the shared one.
        self._buffer = _NOTHING
        self._start = 0
        self._end = 0
        self._charged_bytes = 0  # of a buffer of our own; none is charged for the shared one
        self._needed_bytes = 0  # of the unfinished frame with its length, as far as known

    @property
    def is_partial(self) -> bool:
        """Whether a frame, or a part of one, has arrived and not been given out."""
        return self._end > self._start

    @property
    def partial_bytes(self) -> int:
        """How much of it."""
        return self._end - self._start

    @property
    def charged_bytes(self) -> int:
        """The memory that it holds for that."""
        return self._charged_bytes

    @property
    def is_filling(self) -> bool:
        """Whether an unfinished frame has a buffer of its own, with room for more of it."""
        return self._end < self._charged_bytes and self._end - self._start < self._needed_bytes

    def get_buffer(self) -> memoryview:
        """Where the next bytes go. Valid until `buffer_updated`; other connections use the same one."""
        if self._charged_bytes:
            return self._buffer[self._end : min(self._start + self._needed_bytes, self._charged_bytes)]
        self._buffer = self._buffers.shared
        return self._buffers.window()

    def buffer_updated(self, size_bytes: int) -> None:
        """So many bytes were written into what `get_buffer` gave."""
        self._end += size_bytes

    def next_frame(self) -> memoryview | None:
        """The next frame, without its length; None when no more has arrived whole."""
        start = self._start
        available = self._end - start
        if self._failure:
            raise ProtocolError(self._failure)
        if available >= _PREFIX_BYTES:
            length: int = _LENGTH.unpack_from(self._buffer, start)[0]
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

    # -- for whoever looks at several frames at once

    @property
    def received(self) -> memoryview:
        """What has arrived and not been given out lies here, from `start` to `end`."""
        return self._buffer

    @property
    def start(self) -> int:
        return self._start

    @property
    def end(self) -> int:
        return self._end

    def skip_to(self, stop: int) -> int:
        """The frames that end there have been seen to; returns how many bytes they had."""
        size_bytes = stop - self._start
        self._start = stop
        return size_bytes

    def _refusal(self, length: int) -> str:
        if length >> 16 == _TLS_HANDSHAKE:
            return (
                "this looks like TLS; this listener is PLAINTEXT. Set security.protocol=PLAINTEXT in the client, or "
                "give it the address of a listener that speaks TLS"
            )
        if length in _HTTP:
            return (
                "this looks like HTTP; this port speaks Kafka's protocol (/metrics is elsewhere, see --http)"
            )
        if length < 0:
            return f"a frame of {length} bytes: this is not Kafka's protocol"
        return f"a frame of {length} bytes is larger than socket.request.max.bytes ({self.max_frame_bytes}) allows"

    def park(self) -> None:
        """Keep what has arrived although its frames are not wanted yet: the shared buffer is needed by others.

        The transport must be paused then; `next_frame` goes on where it was.
        """
        if not self._charged_bytes and self._end > self._start:
            self._keep()

    def put_back(self, frame: memoryview) -> None:
        """The frame that `next_frame` gave last is not wanted yet."""
        self._start -= len(frame) + _PREFIX_BYTES

    def keep(self, frame: memoryview) -> memoryview:
        """The frame that `next_frame` gave last, for as long as it is needed. Its memory is charged to nobody."""
        if self._start < self._end or len(self._buffer) <= LARGE_BYTES:
            return memoryview(bytearray(frame))
        # A large one has its buffer to itself.
        charged, self._charged_bytes = self._charged_bytes, 0
        self._buffer = _NOTHING
        self._start = self._end = 0
        self._buffers.budget.release(self, charged, is_last=True)
        return frame

    def close(self) -> None:
        """Give all memory back."""
        if self.is_starved:
            self._buffers.budget.cancel(self)
            self.is_starved = False
        self._on_room = _nothing  # it leads back to the connection: garbage that nobody has to look for
        self._let_go()

    # -- memory of the unfinished frame

    def _let_go(self) -> None:
        buffer, self._buffer = self._buffer, _NOTHING
        charged, self._charged_bytes = self._charged_bytes, 0
        self._start = self._end = 0
        if charged:
            self._buffers.give_back(buffer)
            self._buffers.budget.release(self, charged, is_last=True)

    def _make_room(self) -> None:
        """See that more of the unfinished frame can be received, or say that this must wait."""
        if self._end < self._charged_bytes or self._keep_shared():
            return
        wanted = self._step_bytes()
        if self._buffers.budget.request(self, wanted, self._charged_bytes, self._needed_bytes):
            self._grow(wanted)
            return
        if not self._charged_bytes:
            self._keep()
        self.is_starved = True

    def _keep_shared(self) -> bool:
        """Where much of a frame has arrived in the shared buffer, taking that over is cheaper than copying."""
        if self._charged_bytes or (self._end - self._start) * 4 < SHARED_BYTES:
            return False
        budget = self._buffers.budget
        if self._start + self._needed_bytes > SHARED_BYTES or not budget.has_room(SHARED_BYTES):
            return False
        try:
            self._buffer = self._buffers.keep_shared()
        except MemoryError as error:
            raise self._out_of_memory() from error
        budget.take(SHARED_BYTES)
        self._charged_bytes = SHARED_BYTES
        return True

    def _step_bytes(self) -> int:
        """How much memory to ask for: a multiple of what has arrived, more if such frames came whole before."""
        arrived = self._end - self._start
        if arrived >= LARGE_BYTES:
            left = self._needed_bytes - arrived
            step = min(left, _MAPPED_STEP_BYTES)
            return step if self._is_mapped else arrived + step
        expected = max(_FIRST_STEP_BYTES, 4 * arrived, min(self._largest_bytes, _TRUSTED_BYTES))
        return self._buffers.rounded(min(self._needed_bytes, expected, LARGE_BYTES))

    @property
    def _is_mapped(self) -> bool:
        return len(self._buffer) > self._charged_bytes > 0

    def on_granted(self, size_bytes: int) -> None:
        """The memory that was waited for is there."""
        self.is_starved = False
        try:
            self._grow(size_bytes)
        except ProtocolError as error:
            self._failure = str(error)
        self._on_room()

    def _grow(self, size_bytes: int) -> None:
        """Use what has been charged; if the system has none, that is given back."""
        if self._is_mapped:
            self._charged_bytes += size_bytes
            return
        try:
            if size_bytes > LARGE_BYTES:
                buffer = self._buffers.mapped(self._needed_bytes)
            else:
                buffer = self._buffers.new(size_bytes)
        except (MemoryError, OSError) as error:
            self._buffers.budget.release(self, size_bytes, is_last=not self._charged_bytes)
            raise self._out_of_memory() from error
        self._move(buffer, size_bytes)

    def _out_of_memory(self) -> ProtocolError:
        return ProtocolError(f"the system has no memory for a request of {self._needed_bytes} bytes")

    def _keep(self) -> None:
        """Move what has arrived out of the shared buffer even if the budget is used up: it is read already."""
        size_bytes = self._buffers.rounded(self._end - self._start)
        try:
            buffer = self._buffers.new(size_bytes)
        except MemoryError as error:
            raise self._out_of_memory() from error
        self._buffers.budget.take(size_bytes)
        self._move(buffer, size_bytes)

    def _move(self, buffer: memoryview, charged_bytes: int) -> None:
        """Go on in another buffer."""
        old, old_charge = self._buffer, self._charged_bytes
        arrived = self._end - self._start
        buffer[:arrived] = old[self._start : self._end]
        self._buffer, self._charged_bytes = buffer, charged_bytes
        self._start, self._end = 0, arrived
        if old_charge:
            self._buffers.give_back(old)
            self._buffers.budget.release(self, old_charge, is_last=False)
