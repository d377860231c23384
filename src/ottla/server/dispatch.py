"""From a frame's bytes to its handler, and from the handler's answer to bytes.

A route (decoder, handler, encoder of one API version) is put together at the first request that needs it and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ottla.api import pieces, registry
from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call
from ottla.api.produce.runs import ProduceRuns
from ottla.api.registry import APIS, Api, Handler
from ottla.api.services import Services
from ottla.metrics import RequestMetrics
from ottla.protocol import codec, frame, messages, produce_kernel
from ottla.protocol.decoding import Decode, DecodeSlowly
from ottla.protocol.frame import Respond, RespondSlowly

__all__ = ["CLOSE_CONNECTION", "NO_RESPONSE", "PENDING", "Dispatcher", "Route", "UnknownRequestError"]

_PRODUCE, _FETCH, _METADATA, _OFFSET_COMMIT, _HEARTBEAT = 0, 1, 3, 8, 12
_API_VERSIONS = 18
_HOT = frozenset((_PRODUCE, _FETCH, _METADATA, _OFFSET_COMMIT, _HEARTBEAT))

log = logging.getLogger(__name__)


class UnknownRequestError(Exception):
    """An API or a version of it that is not served: the connection cannot go on."""


class Route:
    """How one version of one API is read, done and answered."""

    __slots__ = (
        "api",
        "decode",
        "handle",
        "is_hot",
        "large",
        "metrics",
        "respond",
        "respond_slowly",
        "version",
    )

    def __init__(
        self,
        api: Api,
        version: int,
        decode: Decode,
        handle: Handler,
        codec_version: int,
        metrics: RequestMetrics,
    ) -> None:
        self.api = api
        self.version = version
        self.decode = decode
        self.handle = handle
        self.respond: Respond = frame.responder(api.key, codec_version)
        self.respond_slowly: RespondSlowly = frame.slow_responder(api.key, codec_version)
        self.is_hot = api.key in _HOT  # the handler says when an answer is large
        self.metrics = metrics
        self.large: LargeRoute | None = None


class LargeRoute:
    """The same for a request with very many entries, made when one comes."""

    __slots__ = ("decode_slowly", "max_elements", "route")

    def __init__(self, route: Route) -> None:
        key, version = route.api.key, route.version
        self.max_elements = pieces.max_elements(key, version)
        self.decode_slowly: DecodeSlowly = codec.slow_decoder(messages.request_class(key), version)
        self.route = Route(
            route.api, version, route.decode, pieces.handler(route.api, version), version, route.metrics
        )


class Dispatcher:
    """Routes requests. The request log, and the faults of tests, put themselves around the handlers.

    What is around them may say that it has nothing to do for now.
    """

    def __init__(
        self,
        services: Services,
        clock_ns: Callable[[], int],
        around: Callable[[Route, Call], Any] | None = None,
        has_nothing_to_do: Callable[[], bool] | None = None,
    ) -> None:
        self.services = services
        self.clock_ns = clock_ns
        self._around = around
        self._routes: dict[tuple[int, int], Route] = {}
        self._runs = ProduceRuns(services) if produce_kernel.COMPILED else None
        self._has_nothing_to_do = has_nothing_to_do
        self.produce_metrics = services.metrics.request(_PRODUCE)

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
                lambda _buffer, _position, _room: None,
                registry.handler(entry),
                0,
                metrics,
            )
        route = Route(
            entry,
            version,
            codec.decoder(messages.request_class(api_key), version),
            registry.handler(entry),
            version,
            metrics,
        )
        self._routes[api_key, version] = route
        return route

    def large(self, route: Route) -> LargeRoute:
        """For a request that has very many entries."""
        if route.large is None:
            route.large = LargeRoute(route)
        return route.large

    @property
    def runs(self) -> ProduceRuns | None:
        """What does several requests as one, unless something is around the handlers that must see each."""
        if self._around is not None and (self._has_nothing_to_do is None or not self._has_nothing_to_do()):
            return None
        return self._runs

    def run(self, route: Route, call: Call) -> Any:
        """Let the handler work: its response, PENDING, or what else a session understands."""
        if self._around is not None:
            return self._around(route, call)
        return route.handle(self.services, call, call.request)
