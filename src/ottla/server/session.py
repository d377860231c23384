"""One client's connection: bytes in, requests handled in order of arrival, responses out in the same order.

Requests are handled as soon as they are whole, also while earlier ones of the same connection still wait; their
answers leave in order. Reading pauses while the client does not read, while too many requests wait, or while the
broker's memory for requests is used up, so that no client makes it grow.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final, Protocol, cast

from ottla.api.call import CLOSE_CONNECTION, PENDING, Call
from ottla.names import Bytes
from ottla.protocol.buffers import ReceiveBuffers
from ottla.protocol.codec import MAX_ELEMENTS, DecodeError, TooManyElementsError
from ottla.protocol.connection import FrameReader, ProtocolError
from ottla.protocol.frame import read_header, take_apart
from ottla.protocol.message import Message
from ottla.server.dispatch import Dispatcher, Route, UnknownRequestError
from ottla.server.large_requests import LargeRequest, LargeRequests
from ottla.server.outbox import Outbox
from ottla.server.pauses import ANSWERS, ENTRIES, MEMORY, OTHERS, THROTTLE, WORK, WRITING
from ottla.server.turns import SessionTurns
from ottla.server.unsent import UnsentAnswers
from ottla.slices import Steps
from ottla.stall_watch import RESOLUTION_NS

MAX_WAITING_CALLS: Final = 64
MAX_HELD_BYTES: Final = 256 << 10  # of answers made in one turn before they are given to the transport
MAX_UNSENT_BYTES: Final = 16 << 10  # of answers that wait in memory before no more is read
# Then other connections have theirs: a megabyte of tiny requests takes a minute. When many have much to do, each gets
# one request a turn.
MAX_TURN_NS: Final = 5_000_000
SMALL_FRAME_BYTES: Final = 2048  # there can be no more elements in it than it has bytes
FEW_ELEMENTS: Final = 500  # of a request that is handled at once

log = logging.getLogger(__name__)


class Owner(Protocol):
    """The listener, as its sessions see it: what all of them share."""

    turns: SessionTurns
    large: LargeRequests
    unsent: UnsentAnswers

    def opened(self, session: Session) -> bool: ...

    def closed(self, session: Session) -> None: ...


class Session:
    """A connection. Made by the listener when a client connects."""

    def __init__(
        self, listener: Owner, dispatcher: Dispatcher, buffers: ReceiveBuffers, max_bytes: int
    ) -> None:
        self._listener = listener
        self._dispatcher = dispatcher
        self._clock_ns = dispatcher.clock_ns
        self._watch = dispatcher.services.watch
        self._reader = FrameReader(buffers, max_bytes, self._fed)
        self._unsent = listener.unsent
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[Call] = deque()
        self._outbox = Outbox(buffers.budget)
        self._large: LargeRequest | None = None  # the request with very many entries that is being handled
        self._in_turn = False  # responses made now leave together when the turn ends
        self._paused_for = 0  # the reasons of pauses.py
        self.is_closing = False
        self._has_ended = False
        self.address = "?"
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.producer_ids = 0  # given to this client
        self.active_ns = 0  # when the last bytes came or went
        self.received_bytes = 0
        self.seen_bytes = 0  # of them, when the listener last looked at an unfinished frame
        self.late_ns = 0  # since when its unfinished frame comes too slowly; 0: it does not
        self._done_ns = 0  # when a handler was last through
        self.frame_began_ns = 0  # when the first byte of an incomplete frame came; 0: there is none

    # -- the transport calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass of it
        peer = transport.get_extra_info("peername")
        self.address = f"{peer[0]}:{peer[1]}" if peer else "?"
        self.active_ns = self._clock_ns()
        transport.set_write_buffer_limits(MAX_UNSENT_BYTES)
        if not self._listener.opened(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.buffer_updated(nbytes)
        self.received_bytes += nbytes
        if self.frame_began_ns and self._reader.is_filling:
            self.active_ns = self._clock_ns()
            return  # a megabyte comes in many pieces
        self._watch.enter()
        self.active_ns = self._clock_ns()
        if self._watch.is_long():  # a thousand connections may have something in one turn of the loop
            self._leave_to_others()
        self._take_frames()
        self._watch.leave(self)

    def _take_frames(self) -> None:
        """Handle every request that has come whole, until there is a reason to pause; the rest is kept."""
        reader = self._reader
        self._in_turn = True
        done_ns = self.active_ns
        try:
            while not self._paused_for:
                if not self._take_run():
                    view = reader.next_frame()
                    if view is None or self.is_closing:
                        break
                    self._receive(view, self.active_ns, done_ns)
                done_ns = self._done_ns
                if self._outbox.size_bytes > MAX_HELD_BYTES:
                    self._flush()
                if done_ns - self.active_ns > MAX_TURN_NS or (reader.is_partial and self._watch.is_long()):
                    self._leave_to_others()
                if len(self._waiting) >= MAX_WAITING_CALLS:
                    self._pause(ANSWERS)
            else:
                reader.park()
        except (DecodeError, ProtocolError, UnknownRequestError) as error:
            self.refuse(str(error))
        finally:
            self._in_turn = False
        self._flush()
        if reader.is_starved:
            self._pause(MEMORY)
        if self._paused_for or not reader.is_partial:
            self.frame_began_ns = 0  # while the broker does not read, the client cannot be late
        elif not self.frame_began_ns:
            self.frame_began_ns = self.active_ns

    def pause_writing(self) -> None:
        self._pause(WRITING)

    def resume_writing(self) -> None:
        self._watch.enter()
        self._unsent.let_go(self)
        self._outbox.release()
        self._resume(WRITING)
        self._watch.leave(self)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.enter()
        self._transport = None
        self.is_closing = True
        if self._watch.is_long():  # thousands of connections may end in one turn of the loop
            self._listener.turns.append(self)
        else:
            self._end()
        self._watch.leave(self)

    def _end(self) -> None:
        """Give everything back, and forget the requests that nobody wants to be answered any more."""
        if self._has_ended:
            return
        self._has_ended = True
        self._reader.close()
        if self._paused_for:
            self._unsent.let_go(self)
        self._outbox.release()
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.is_open = False
            on_closed, call.on_closed = call.on_closed, None
            if on_closed is not None:
                on_closed()
        if self._large is not None:
            self._large.end()
            self._large = None
        self._listener.closed(self)

    def __str__(self) -> str:
        return f"the connection from {self.address}"

    # -- requests

    def _receive(self, view: memoryview, now_ns: int, before_ns: int) -> None:
        """Handle one request. The one before it was done at `before_ns`."""
        dispatcher = self._dispatcher
        api_key, version, correlation_id, client_id, position = read_header(view)
        route = dispatcher.route(api_key, version)
        call = Call(api_key, version, correlation_id, client_id, None, self, route)
        call.size_bytes = len(view)
        call.received_ns = now_ns
        max_elements = MAX_ELEMENTS if len(view) <= SMALL_FRAME_BYTES else FEW_ELEMENTS
        try:
            call.request = route.decode(view, position, max_elements)
        except TooManyElementsError:
            self._receive_large(call, view, position)
            return
        self._waiting.append(call)
        self.handle(call, route)
        if call.is_slow and not call.is_answered:
            self._pause(WORK)
        if self._done_ns - before_ns > RESOLUTION_NS:
            self._watch.note(call, self._done_ns - before_ns)

    def handle(self, call: Call, route: Route) -> None:
        """Let a request that is in the line have its effect, and its answer if that is there."""
        call.started_ns = self._clock_ns()
        try:
            response = self._dispatcher.run(route, call)
        except Exception:
            log.exception("%s v%d from %s failed", route.api.name, call.version, self.address)
            response = CLOSE_CONNECTION
        if response is not PENDING:
            call.is_answered = True
            call.peer.answered(call, response)
        elif not call.is_answered:
            call.local_done_ns = self._done_ns = self._clock_ns()

    def _receive_large(self, call: Call, view: memoryview, position: int) -> None:
        """A request with very many entries: it is read and handled in slices, and no other meanwhile."""
        large = self._listener.large
        self._pause(ENTRIES)
        self._done_ns = self._clock_ns()
        if not large.has_room(len(view)):
            self._reader.put_back(view)
            large.wait(lambda: self._resume(ENTRIES))
            return
        self._waiting.append(call)
        self._large = LargeRequest(large, self, call, self._reader.keep(view))
        self._large.begin(self._dispatcher.large(call.route), position)

    def _take_run(self) -> bool:
        """Do the Produce requests at the head of the line that can be done as one, if there are any."""
        runs, reader = self._dispatcher.runs, self._reader
        if runs is None or self._waiting or self.is_closing:
            return False
        started_ns = self._clock_ns()
        taken = runs.take(self, reader.received, reader.start, reader.end, reader.max_frame_bytes)
        if taken is None:
            return False
        size_bytes = len(taken.answers)
        self._done_ns = done_ns = self._clock_ns()
        self._dispatcher.produce_metrics.record_run(
            taken.count, self.active_ns, started_ns, done_ns, reader.skip_to(taken.stop), size_bytes
        )
        self._outbox.add(taken.answers)
        return True

    def answered(self, call: Call, response: Any) -> None:
        """Called once for each call, now or later."""
        call.on_closed = None  # it refers to the call: a cycle that only the collector would free
        if not call.is_open or self.is_closing:
            return
        if response is CLOSE_CONNECTION:
            self.close()
            return
        route: Route = call.route
        try:
            encoded = route.encode(call, response)
        except Exception:
            name = route.api.name
            log.exception("the answer to %s v%d from %s cannot be sent", name, call.version, self.address)
            self.close()
            return
        if isinstance(encoded, list):
            self._encoded(call, encoded)
        else:
            self._encode_slowly(call, encoded, response)

    def _encode_slowly(self, call: Call, steps: Steps, response: Message) -> None:
        """An answer with very many entries becomes bytes in slices; no more is read meanwhile."""
        call.is_slow = True
        self._done_ns = self._clock_ns()
        self._pause(WORK)
        slices = self._dispatcher.services.slices

        def done(parts: list[Bytes]) -> None:
            if call.is_open and not self.is_closing:
                call.held_bytes += sum(map(len, parts))
                self._encoded(call, parts)
            if call.is_large:
                slices.add(take_apart(response), lambda _: None, self.close, call)

        slices.add(steps, done, self.close, call)

    def _encoded(self, call: Call, parts: list[Bytes]) -> None:
        """The answer is there as bytes. It leaves when its turn comes."""
        route: Route = call.route
        self._done_ns = now_ns = self._clock_ns()
        if not self._in_turn:
            self._watch.answered = call
        call.parts = parts
        call.answer_bytes = size_bytes = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        done_ns = call.local_done_ns or now_ns
        route.metrics.record(call.received_ns, call.started_ns, done_ns, now_ns, call.size_bytes, size_bytes)
        if call.throttle_ms > 0:
            self._mute(call.throttle_ms)
        if call is self._waiting[0]:
            self._release_answers()
        if call.is_slow and self._paused_for & WORK and not self._in_turn:
            self._resume(WORK)
        if self._large is not None and self._large.call is call:
            self._large.end()
            self._large = None
            self._resume(ENTRIES)

    def _release_answers(self) -> None:
        """Everything at the head of the line that has its answer leaves."""
        waiting = self._waiting
        while waiting and (parts := waiting[0].parts) is not None:
            self._outbox.put(waiting.popleft(), parts)
        if self._in_turn:
            return
        self._flush()
        if self._paused_for & ANSWERS and len(waiting) < MAX_WAITING_CALLS:
            self._resume(ANSWERS)

    def _flush(self) -> None:
        if not self._outbox.parts:
            return
        sent = self._outbox.flush(None if self.is_closing else self._transport)
        if self._paused_for & WRITING:
            self._unsent.hold(self, sent)
        else:
            self._outbox.release()

    # -- pausing and ending

    def _pause(self, reason: int) -> None:
        if not self._paused_for and self._transport is not None and not self.is_closing:
            self._transport.pause_reading()
        self._paused_for |= reason

    def _resume(self, reason: int) -> None:
        self._paused_for &= ~reason
        if self._paused_for or self._transport is None or self.is_closing:
            return
        self.active_ns = self._clock_ns()
        self._take_frames()  # those that came before the pause
        if not self._paused_for and not self.is_closing:
            self._transport.resume_reading()

    def _leave_to_others(self) -> None:
        self._pause(OTHERS)
        self._listener.turns.append(self)

    def take_turn(self) -> None:
        """The others have had theirs."""
        if self._transport is None:
            self._end()
        else:
            self._resume(OTHERS)

    def _fed(self) -> None:
        """There is memory for the rest of the frame that is coming in."""
        self._resume(MEMORY)

    def _mute(self, throttle_ms: int) -> None:
        self._pause(THROTTLE)
        self._dispatcher.services.runtime.call_later(throttle_ms, lambda: self._resume(THROTTLE))

    def refuse(self, why: str) -> None:
        """End the connection because of what was received."""
        log.warning("closing the connection from %s: %s", self.address, why)
        self.close()

    def close(self) -> None:
        """End the connection; what was answered before still leaves, if the client takes it."""
        if self._transport is not None and not self.is_closing:
            self._flush()
            self.is_closing = True
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self.is_closing = True
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether a request of this connection is still being worked on."""
        return bool(self._waiting)

    @property
    def charged_bytes(self) -> int:
        """The memory that an incomplete frame holds."""
        return self._reader.charged_bytes
