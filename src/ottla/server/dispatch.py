"""From a frame's bytes to its handler, and from the handler's answer to bytes.

A route (decoder, handler, encoder of one API version) is put together at the first request that needs it and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ottla.api import pieces, registry
from ottla.api.call import NO_RESPONSE, Call
from ottla.api.produce.runs import ProduceRuns
from ottla.api.registry import APIS, Api, Handler
from ottla.api.services import Services
from ottla.metrics import RequestMetrics
from ottla.names import Bytes
from ottla.protocol import codec, frame, messages, produce_kernel
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.decoding import Decode, DecodeSlowly
from ottla.protocol.frame import Respond, RespondSlowly
from ottla.slices import Steps

_HOT = frozenset((ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.OFFSET_COMMIT, ApiKey.HEARTBEAT))

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

    def encode(self, call: Call, response: Any) -> list[Bytes] | Steps:
        """The bytes of an answer, or, if it has very many entries, the steps that are left and return them."""
        if type(response) is bytes:
            return [response]
        if response is NO_RESPONSE:
            return []
        if self.is_hot and not call.is_large:
            return self.respond(call.correlation_id, response)
        steps = self.respond_slowly(call.correlation_id, response)
        try:
            next(steps)
        except StopIteration as end:
            parts: list[Bytes] = end.value
            return parts
        return steps


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
    """Routes requests.

    `around` is called in place of each handler, and calls it: the request log, or the faults of a test. It must see
    every request, so several are never handled as one, except while `is_idle` says that it would do nothing.
    """

    def __init__(
        self,
        services: Services,
        clock_ns: Callable[[], int],
        around: Callable[[Route, Call], Any] | None = None,
        is_idle: Callable[[], bool] | None = None,
    ) -> None:
        self.services = services
        self.clock_ns = clock_ns
        self._around = around
        self._routes: dict[tuple[int, int], Route] = {}
        self._runs = ProduceRuns(services) if produce_kernel.COMPILED else None
        self._is_idle = is_idle
        self.produce_metrics = services.metrics.request(ApiKey.PRODUCE)

    def route(self, api_key: int, version: int) -> Route:
        found = self._routes.get((api_key, version))
        return self._make(api_key, version) if found is None else found

    def _make(self, api_key: int, version: int) -> Route:
        entry = APIS.get(api_key)
        metrics = self.services.metrics.request(api_key)
        if entry is None:
            raise UnknownRequestError(f"API {api_key} is not served")
        if not entry.min_version <= version <= entry.max_version:
            if api_key != ApiKey.API_VERSIONS:
                raise UnknownRequestError(f"{entry.name} v{version} is not served")
            # The one request that must be answered in any version: the client learns from it what to speak.
            return Route(
                entry, version, lambda _buffer, _position, _room: None, registry.handler(entry), 0, metrics
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
        """What handles several requests as one; None while `around` must see each of them."""
        if self._around is not None and (self._is_idle is None or not self._is_idle()):
            return None
        return self._runs

    def run(self, route: Route, call: Call) -> Any:
        """Let the handler work: its response, PENDING, or what else a session understands."""
        if self._around is not None:
            return self._around(route, call)
        return route.handle(self.services, call, call.request)
