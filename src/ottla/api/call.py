"""One request on its way through the broker, and the one answer it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol


class Peer(Protocol):
    """Who is at the other end of a connection, as handlers may see it."""

    address: str
    client_software_name: str
    client_software_version: str
    producer_ids: int

    def answered(self, call: Call, response: Any) -> None:
        """Take the answer to a call."""


class Call:
    """A decoded request and the way to answer it: once, now or later, on the loop's thread.

    A handler either returns the response, or returns PENDING and uses `reply` when the answer is there. A response is
    a message, or bytes: a whole frame with its length. After the connection has gone, `is_open` is False and
    answers go nowhere.
    """

    __slots__ = (
        "answer_bytes", "api_key", "client_id", "correlation_id", "held_bytes", "is_answered", "is_large", "is_open",
        "is_slow", "local_done_ns", "on_closed", "parts", "peer", "received_ns", "request", "route", "size_bytes",
        "started_ns", "throttle_ms", "version",
    )  # fmt: skip

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        request: Any,
        peer: Peer,
        route: Any = None,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request = request
        self.peer = peer
        self.route = route  # the server's: how the answer becomes bytes
        self.parts: list[bytes | bytearray | memoryview] | None = None  # the answer's bytes
        self.answer_bytes = 0
        self.held_bytes = 0  # memory made for the answer, charged until it is sent
        self.is_answered = False
        self.is_open = True
        self.is_large = False  # the answer has very many entries: its bytes are made in slices
        # It holds memory while it waits: no more is read from its connection until it is answered.
        self.is_slow = False
        self.on_closed: Callable[[], None] | None = None  # what to do when the client goes while this waits
        self.throttle_ms = 0
        self.size_bytes = 0
        self.received_ns = 0
        self.started_ns = 0
        self.local_done_ns = 0  # 0 while the handler works

    def __str__(self) -> str:
        """Which request of whom, for a line in the log; what the client chose is escaped."""
        name = self.route.api.name if self.route is not None else f"API {self.api_key}"
        client = f"client {self.client_id!r:.100} ({self.peer.address})"
        return f"{name} v{self.version} of {client}, {self.size_bytes} bytes"

    def reply(self, response: Any) -> None:
        """Answer. The second answer to a call is a defect and raises."""
        if self.is_answered:
            raise RuntimeError(f"request {self.api_key} v{self.version} was answered twice")
        self.is_answered = True
        self.peer.answered(self, response)


NO_RESPONSE: Final = object()
CLOSE_CONNECTION: Final = object()
PENDING: Final = object()  # what a handler returns when it will `reply` later
