"""The request log: one readable line for every request, when it is answered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call, Peer
from ottla.api.services import Services
from ottla.protocol.errors import ErrorCode
from ottla.server.dispatch import Dispatcher, Route
from ottla.server.intercepted import Intercepted

log = logging.getLogger("ottla.requests")


def logging_dispatcher(services: Services, clock_ns: Callable[[], int]) -> Dispatcher:
    """Tells of every request: who, what, about which topics, how long, and which errors it was answered with."""

    def run(route: Route, call: Call) -> Any:
        def tell(peer: Peer, answered: Call, response: Any) -> None:
            log.info(_line(route, answered, response, clock_ns))
            peer.answered(answered, response)

        Intercepted(call, tell)
        return route.handle(services, call, call.request)

    return Dispatcher(services, clock_ns, run)


def _line(route: Route, call: Call, response: Any, clock_ns: Callable[[], int]) -> str:
    took_ms = (clock_ns() - call.received_ns) / 1e6
    about = _topics(call.request)
    return (
        f"{call.peer.address} {call.client_id or '-'} {route.api.name} v{call.version} #{call.correlation_id}"
        f"{' ' + about if about else ''} -> {_outcome(response)} {took_ms:.2f} ms {call.size_bytes} B"
    )


def _topics(request: Any) -> str:
    """The topics of a request, as far as it has a list of them."""
    for field in ("topic_data", "topics"):
        topics = getattr(request, field, None)
        if topics:
            names = [_name(topic) for topic in topics]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return ",".join(names[:3]) + more
    return ""


def _name(topic: Any) -> str:
    if isinstance(topic, str):
        return topic
    for field in ("name", "topic", "topic_id"):
        found = getattr(topic, field, None)
        if found:
            return str(found)
    return "?"


def _outcome(response: Any) -> str:
    if response in (NO_RESPONSE, PENDING):
        return "no answer"
    if response is CLOSE_CONNECTION:
        return "closed"
    codes: set[int] = set()
    _collect(response, codes)
    codes.discard(0)
    return ",".join(sorted(ErrorCode(code).name for code in codes)) or "OK"


def _collect(message: Any, codes: set[int]) -> None:
    for field in getattr(message, "__slots__", ()):
        value = getattr(message, field)
        if field == "error_code":
            codes.add(value)
        elif isinstance(value, list):
            for item in value:
                _collect(item, codes)
