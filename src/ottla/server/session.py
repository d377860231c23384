"""One client's connection: bytes in, requests handled in order of arrival, responses out in the same order.

Requests are handled as soon as they are whole, also while earlier ones of the same connection still wait; their
answers leave in order. Reading pauses while the client does not read, while too many requests wait, or while the
broker's memory for requests is used up, so that no client makes it grow.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call
from ottla.protocol.buffers import ReceiveBuffers
from ottla.protocol.codec import DecodeError
from ottla.protocol.connection import FrameReader, ProtocolError
from ottla.protocol.frame import RequestHeader
from ottla.protocol.message import Bytes
from ottla.server.dispatch import Dispatcher, Route, UnknownRequestError

if TYPE_CHECKING:
    from ottla.server.listener import Listener

MAX_WAITING_CALLS = 64

log = logging.getLogger(__name__)


class Session(asyncio.BufferedProtocol):
    """A connection. Made by the listener when a client connects."""

    def __init__(
        self, listener: Listener, dispatcher: Dispatcher, buffers: ReceiveBuffers, max_bytes: int
    ) -> None:
        self._listener = listener
        self._dispatcher = dispatcher
        self._reader = FrameReader(buffers, max_bytes, self._fed)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[Call] = deque()
        self._out: list[Bytes] = []
        self._in_turn = False  # responses made now leave together when the turn ends
        self._paused_for: set[str] = set()
        self.address = "?"
        self.principal = "User:ANONYMOUS"
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.active_ns = 0  # when the last bytes came or went
        self.frame_began_ns = (
            0  # when the first byte of a frame that is still incomplete came; 0 if there is none
        )

    # -- the transport calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass of it
        peer = transport.get_extra_info("peername")
        self.address = f"{peer[0]}:{peer[1]}" if peer else "?"
        self.active_ns = self._dispatcher.clock_ns()
        if not self._listener.opened(self):
            transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.buffer_updated(nbytes)
        self.active_ns = self._dispatcher.clock_ns()
        self._take_frames()

    def _take_frames(self) -> None:
        """Handle every request that has come whole, as long as not too many wait for their answers."""
        reader = self._reader
        self._in_turn = True
        try:
            while len(self._waiting) < MAX_WAITING_CALLS:
                view = reader.next_frame()
                if view is None or self._transport is None:
                    break
                self._receive(view, self.active_ns)
            else:
                reader.park()
                self._pause("answers")
        except (DecodeError, ProtocolError, UnknownRequestError) as error:
            self._refuse(str(error))
        finally:
            self._in_turn = False
        if self._out:
            self._flush()
        if not reader.is_partial:
            self.frame_began_ns = 0
        elif not self.frame_began_ns:
            self.frame_began_ns = self.active_ns
        if reader.is_starved:
            self._pause("memory")

    def pause_writing(self) -> None:
        self._pause("writing")

    def resume_writing(self) -> None:
        self.active_ns = self._dispatcher.clock_ns()
        self._resume("writing")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._reader.close()
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.is_open = False
            if call.on_closed is not None:
                call.on_closed()
        self._listener.closed(self)

    # -- requests

    def _receive(self, view: memoryview, now_ns: int) -> None:
        dispatcher = self._dispatcher
        header = RequestHeader.parse(view)
        route = dispatcher.route(header.api_key, header.version)
        request = route.decode(view, header.body_position)
        call = Call(
            header.api_key, header.version, header.correlation_id, header.client_id, request, self, route
        )
        call.size_bytes = len(view)
        call.received_ns = now_ns
        call.started_ns = dispatcher.clock_ns()
        waiting = self._waiting
        waiting.append(call)
        try:
            response = dispatcher.run(route, call)
        except Exception:
            log.exception("%s v%d from %s failed", route.api.name, header.version, self.address)
            response = CLOSE_CONNECTION
        if response is not PENDING:
            call.is_answered = True
            self.answered(call, response)
        elif not call.is_answered:
            call.local_done_ns = dispatcher.clock_ns()

    def answered(self, call: Call, response: Any) -> None:
        """Called once for each call, now or later."""
        if not call.is_open or self._transport is None:
            return
        if response is CLOSE_CONNECTION:
            self.close()
            return
        now_ns = self._dispatcher.clock_ns()
        route: Route = call.route
        route.metrics.record(
            call.received_ns, call.started_ns, call.local_done_ns or now_ns, now_ns, call.size_bytes
        )
        call.parts = [] if response is NO_RESPONSE else route.respond(call.correlation_id, response)
        if call.throttle_ms > 0:
            self._mute(call.throttle_ms)
        if call is self._waiting[0]:
            self._release_answers()

    def _release_answers(self) -> None:
        """Everything at the head of the line that has its answer leaves."""
        waiting = self._waiting
        while waiting and (parts := waiting[0].parts) is not None:
            waiting.popleft()
            self._out += parts
        if self._in_turn:
            return
        if self._out:
            self._flush()
        if "answers" in self._paused_for and len(waiting) < MAX_WAITING_CALLS:
            self._paused_for.discard("answers")
            self._take_frames()
            self._read_on()

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None:
            self._transport.writelines(out)

    # -- pausing and ending

    def _pause(self, reason: str) -> None:
        if not self._paused_for and self._transport is not None:
            self._transport.pause_reading()
        self._paused_for.add(reason)

    def _resume(self, reason: str) -> None:
        if reason in self._paused_for:
            self._paused_for.discard(reason)
            self._read_on()

    def _read_on(self) -> None:
        if not self._paused_for and self._transport is not None:
            self._transport.resume_reading()

    def _fed(self) -> None:
        """There is memory for the rest of the frame that is coming in."""
        self._resume("memory")

    def _mute(self, throttle_ms: int) -> None:
        self._pause("throttle")
        self._dispatcher.services.runtime.call_later(throttle_ms, lambda: self._resume("throttle"))

    def _refuse(self, why: str) -> None:
        log.warning("closing the connection from %s: %s", self.address, why)
        self.close()

    def close(self) -> None:
        """End the connection; what was answered before still leaves."""
        if self._transport is not None:
            if self._out:
                self._flush()
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether a request of this connection is still being worked on."""
        return bool(self._waiting)

    @property
    def partial_bytes(self) -> int:
        """How much of an incomplete frame has come."""
        return self._reader.partial_bytes
