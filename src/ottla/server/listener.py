"""Accepts connections, within the limits that are set, and ends those that idle or stall."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from typing import Any, Final, cast

from ottla.config import BrokerConfig
from ottla.protocol.buffers import ReceiveBuffers
from ottla.server.dispatch import Dispatcher
from ottla.server.large_requests import LargeRequests
from ottla.server.session import Session
from ottla.server.turns import SessionTurns
from ottla.server.unsent import UnsentAnswers

SWEEP_MS = 1_000
IDLE_SWEEPS = 5  # of them, one that looks at all connections
# A frame must not come more slowly than this for longer than that: a little in general, more while others wait for the
# memory that it holds.
SLOWEST_BYTES_PER_S = 16 * 1024
FRAME_GRACE_NS = 30 * 10**9
SLOWEST_WANTED_BYTES_PER_S = 128 * 1024
WANTED_GRACE_NS = 3 * 10**9
SYSTEMS_CHOICE = -1
UNSENT_PART: Final = 5  # of the memory for requests, so much may be held by answers that clients do not read
# What a reader on the same machine has not taken yet stays in the processor's cache if it is little: four readers of 1
# MiB at a time cost a quarter less than with the megabytes that the system chooses. Far away, those are needed.
LOCAL_SEND_BYTES = 256 << 10

log = logging.getLogger(__name__)


class Listener:
    """The socket that clients connect to, and all sessions on it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        config: BrokerConfig,
        buffers: ReceiveBuffers,
        *,
        room: int = sys.maxsize,
    ) -> None:
        """room: how many connections there are descriptors for"""
        self._dispatcher = dispatcher
        self._config = config
        self._room = room
        self._buffers = buffers
        self.budget = buffers.budget
        self.unsent = UnsentAnswers(buffers.budget.limit_bytes // UNSENT_PART)
        self.turns = SessionTurns(dispatcher.services.runtime)
        self.large = LargeRequests(dispatcher.services.slices, buffers.budget)
        self._metrics = dispatcher.services.metrics
        self._server: asyncio.Server | None = None
        self._sessions: set[Session] = set()
        self._per_address: dict[str, int] = {}
        self._refused = 0  # since the last sweep: one line is written for all of them
        self._is_over = False
        self._sweeps = 0
        self._swept_ns = dispatcher.clock_ns()
        self._sweeping = dispatcher.services.runtime.call_later(SWEEP_MS, self._sweep)
        self.port = 0

    async def bind(self, host: str, port: int) -> None:
        """Take the port, 0 for any free one (`port` tells which); nobody is let in yet."""
        loop = asyncio.get_running_loop()
        # In bytes if that goes: for text uvloop loads the tables of international names, a megabyte of them.
        names: Any = [host.encode()] if host and host.isascii() else host or None
        self._server = await loop.create_server(
            self._session, names, port, backlog=self._config.socket_listen_backlog_size, start_serving=False
        )
        self.port = self._server.sockets[0].getsockname()[1]
        for listening in self._server.sockets:
            self._set_buffers(listening)

    def _set_buffers(self, listening: socket.socket) -> None:
        """A connection has the buffers of the socket that it was accepted on."""
        config = self._config
        send_bytes = config.socket_send_buffer_bytes
        if send_bytes == SYSTEMS_CHOICE and _is_local(listening.getsockname()[0]):
            send_bytes = LOCAL_SEND_BYTES
        if send_bytes != SYSTEMS_CHOICE:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
        if config.socket_receive_buffer_bytes != SYSTEMS_CHOICE:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)

    async def accept(self) -> None:
        """Let clients in."""
        assert self._server is not None
        await self._server.start_serving()

    def _session(self) -> asyncio.BufferedProtocol:
        """One only in what it does: compiled, a class cannot inherit from one of the interpreter's."""
        session = Session(self, self._dispatcher, self._buffers, self._config.socket_request_max_bytes)
        return cast(asyncio.BufferedProtocol, session)

    @property
    def _now(self) -> BrokerConfig:
        """The settings with those that were changed while the broker runs."""
        return self._dispatcher.services.metadata.broker_config

    @property
    def connections(self) -> int:
        return len(self._sessions)

    def opened(self, session: Session) -> bool:
        """Called by a new session: whether there is room for it."""
        host = session.address.rpartition(":")[0]
        of_host = self._per_address.get(host, 0)
        self._sessions.add(session)
        self._per_address[host] = of_host + 1
        if self._is_over:  # it was accepted in the turn in which all others were ended
            return False
        config = self._dispatcher.services.metadata.broker_config  # these can change while it runs
        if len(self._sessions) > min(
            config.max_connections, self._room
        ) or of_host >= config.max_connections_from(host):
            self._metrics.connections_refused += 1
            self._refused += 1
            if self._refused == 1:
                log.warning("refusing a connection from %s: %d are open, %d of them from there",
                            session.address, len(self._sessions) - 1, of_host)  # fmt: skip
            return False
        self._metrics.connections_accepted += 1
        return True

    def closed(self, session: Session) -> None:
        """Called by a session that has ended."""
        self._sessions.discard(session)
        self._metrics.connections_closed += 1
        host = session.address.rpartition(":")[0]
        left = self._per_address.get(host, 1) - 1
        if left > 0:
            self._per_address[host] = left
        else:
            self._per_address.pop(host, None)

    def _sweep(self) -> None:
        """Now and then look at all connections; when memory is short, at those that hold some, more often."""
        now_ns = self._dispatcher.clock_ns()
        self._sweeps += 1
        is_wanted = self.budget.is_wanted
        if self._sweeps % IDLE_SWEEPS == 0 or now_ns - self._swept_ns > IDLE_SWEEPS * SWEEP_MS * 1_000_000:
            if self._refused > 1:
                log.warning("refused %d more connections", self._refused - 1)
            self._refused = 0
            self._end_idle(now_ns)
            self._end_slow(now_ns, is_wanted)
        elif is_wanted:
            self._end_slow(now_ns, is_wanted)
        self._sweeping = self._dispatcher.services.runtime.call_later(SWEEP_MS, self._sweep)

    def _end_idle(self, now_ns: int) -> None:
        """End connections on which nothing happens."""
        idle_ns = self._now.connections_max_idle_ms * 1_000_000
        for session in list(self._sessions):
            if session.is_closing:  # and has not taken its last answers since the last time, or ever
                session.abort()
            elif (
                not session.frame_began_ns
                and 0 < idle_ns < now_ns - session.active_ns
                and not session.is_waiting
            ):
                log.info("closing the idle connection from %s", session.address)
                session.close()

    def _end_slow(self, now_ns: int, is_wanted: bool) -> None:
        """End connections that send a frame too slowly to mean it. What counts is what came lately, not what they sent
        before: who sent much and then nothing holds the most memory of all."""
        rate = SLOWEST_WANTED_BYTES_PER_S if is_wanted else SLOWEST_BYTES_PER_S
        grace_ns = WANTED_GRACE_NS if is_wanted else FRAME_GRACE_NS
        took_ns, self._swept_ns = now_ns - self._swept_ns, now_ns
        for session in list(self._sessions):
            came_bytes = session.received_bytes - session.seen_bytes
            session.seen_bytes = session.received_bytes
            if not session.frame_began_ns or came_bytes * 10**9 >= rate * took_ns:
                session.late_ns = 0
                continue
            if not session.late_ns:
                session.late_ns = max(session.frame_began_ns, now_ns - took_ns)
            if now_ns - session.late_ns > grace_ns and (not is_wanted or session.charged_bytes):
                log.warning(
                    "closing the connection from %s: a request did not arrive in time%s",
                    session.address,
                    f", and others wait for the {session.charged_bytes} bytes it holds" if is_wanted else "",
                )
                session.abort()

    async def stop(self) -> None:
        """Accept no more, and end every connection after what it has been answered."""
        for session in list(self._sessions):
            session.close()
        await asyncio.sleep(0)
        self.abort()
        if self._server is not None:
            await self._server.wait_closed()

    def abort(self) -> None:
        """Accept no more, and end every connection at once."""
        self._is_over = True
        self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
        for session in list(self._sessions):
            session.abort()


def _is_local(address: str) -> bool:
    """Whether only clients on this machine can come to it."""
    return address.startswith("127.") or address == "::1"
