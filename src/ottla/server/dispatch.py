"""From a frame's bytes to its handler, and from the handler's answer to bytes.

A route (decoder, handler, encoder of one API version) is put together at the first request that needs it and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.api import registry
from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call, Peer
from ottla.api.registry import APIS, Api, Handler
from ottla.api.services import Services
from ottla.metrics import RequestMetrics
from ottla.protocol import codec, frame, messages
from ottla.protocol.message import Bytes

__all__ = ["CLOSE_CONNECTION", "NO_RESPONSE", "PENDING", "Dispatcher", "Route", "UnknownRequestError"]

_API_VERSIONS = 18

log = logging.getLogger(__name__)


class UnknownRequestError(Exception):
    """An API or a version of it that is not served: the connection cannot go on."""


class Route(NamedTuple):
    """How one version of one API is read, done and answered."""

    api: Api
    version: int
    decode: Callable[[Any, int], Any]
    handle: Handler
    respond: Callable[[int, Any], list[Bytes]]
    metrics: RequestMetrics


class Dispatcher:
    """Routes requests. Tests and the request log put themselves around `run`."""

    def __init__(self, services: Services, clock_ns: Callable[[], int]) -> None:
        self.services = services
        self.clock_ns = clock_ns
        self._routes: dict[tuple[int, int], Route] = {}

    def route(self, api_key: int, version: int) -> Route:
        found = self._routes.get((api_key, version))
        return self._make(api_key, version) if found is None else found

    def _make(self, api_key: int, version: int) -> Route:
        entry = APIS.get(api_key)
        metrics = self.services.metrics.request(api_key)
        if entry is None:
            raise UnknownRequestError(f"API {api_key} is not served")
        if not entry.min_version <= version <= entry.max_version:
            if api_key != _API_VERSIONS:
                raise UnknownRequestError(f"{entry.name} v{version} is not served")
            # The one request that must be answered in any version: the client learns from it what to speak.
            return Route(
                entry,
                version,
                lambda _buffer, _position: None,
                registry.handler(entry),
                frame.responder(_API_VERSIONS, 0),
                metrics,
            )
        route = Route(
            entry,
            version,
            codec.decoder(messages.request_class(api_key), version),
            registry.handler(entry),
            frame.responder(api_key, version),
            metrics,
        )
        self._routes[api_key, version] = route
        return route

    def run(self, route: Route, call: Call) -> Any:
        """Let the handler work: its response, PENDING, or what else a session understands."""
        return route.handle(self.services, call, call.request)


class Intercepted:
    """Stands between a call and its connection: what is answered goes through `answer` first, now or later."""

    def __init__(self, call: Call, answer: Callable[[Peer, Call, Any], None]) -> None:
        self._peer = call.peer
        self._answer = answer
        call.peer = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    def answered(self, call: Call, response: Any) -> None:
        self._answer(self._peer, call, response)
