"""Faults that a test puts into a broker's answers: late, lost, or wrong.

They sit around the dispatcher; the broker itself knows nothing of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.api.call import CLOSE_CONNECTION, Call, Peer
from ottla.api.registry import APIS
from ottla.api.services import Services
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.server.dispatch import Dispatcher, Route
from ottla.server.intercepted import Intercepted
from ottla.testing.error_answers import error_answer, fail_topics


@dataclass
class _Rule:
    """What happens to the requests of one API. Of delay, drop and error one is set."""

    api_key: int
    left: int | None  # how many requests more; None for all
    delay_ms: int = 0
    drop: bool = False
    handled: bool = False  # whether a dropped request has had its effect
    error: ErrorCode | None = None


class Faults:
    """The faults of one broker; set from any thread. Each counts its own requests: `count=None` is until `clear`.

    APIs have Kafka's names: "Produce", "Fetch", "Metadata", "CreateTopics".
    """

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def delay(self, api: str, ms: int, *, count: int | None = None) -> None:
        """Answers leave `ms` later. Requests behind them on the same connection have to wait, as ever."""
        self._add(_Rule(_key(api), count, delay_ms=ms))

    def drop(self, api: str, *, count: int | None = 1, handled: bool = False) -> None:
        """The connection is closed instead of an answer.

        With `handled` the request has had its effect first, and only the answer is lost: the case for which there
        are idempotent producers.
        """
        self._add(_Rule(_key(api), count, drop=True, handled=handled))

    def fail(self, api: str, error: int | str, *, count: int | None = 1) -> None:
        """Requests have no effect and are answered with this error, by number or by Kafka's name for it."""
        code = ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
        self._add(_Rule(_key(api), count, error=code))

    def clear(self) -> None:
        """No faults any more."""
        with self._lock:
            self._rules.clear()

    @property
    def pending(self) -> int:
        """How many faults are set that have not been used up."""
        with self._lock:
            return len(self._rules)

    def _add(self, rule: _Rule) -> None:
        with self._lock:
            self._rules.append(rule)

    def take(self, api_key: int) -> tuple[int, _Rule | None]:
        """For the next request of an API: the delay, and the first rule that says how it ends."""
        if not self._rules:
            return 0, None
        delay_ms, end = 0, None
        with self._lock:
            for rule in self._rules:
                if rule.api_key != api_key or (end is not None and not rule.delay_ms):
                    continue
                if rule.delay_ms:
                    delay_ms += rule.delay_ms
                else:
                    end = rule
                if rule.left is not None:
                    rule.left -= 1
            self._rules = [rule for rule in self._rules if rule.left != 0]
        return delay_ms, end


def _key(api: str) -> int:
    for entry in APIS.values():
        if entry.name == api:
            return entry.key
    raise ValueError(
        f"{api!r} is not an API of this broker; it has {', '.join(a.name for a in APIS.values())}"
    )


def faulty_dispatcher(services: Services, clock_ns: Callable[[], int], faults: Faults) -> Dispatcher:
    """Asks `faults` before it lets a handler work."""
    return Dispatcher(services, clock_ns, _FaultyHandlers(services, faults).run, lambda: not faults.pending)


class _FaultyHandlers:
    """Stands before the handlers of a broker."""

    def __init__(self, services: Services, faults: Faults) -> None:
        self._services = services
        self._faults = faults

    def run(self, route: Route, call: Call) -> Any:
        delay_ms, rule = self._faults.take(call.api_key)
        if delay_ms:
            self._hold_answer(call, delay_ms)
        if rule is None:
            return route.handle(self._services, call, call.request)
        if rule.error is not None:
            return self._fail(route, call, rule.error)
        if rule.handled:
            self._replace_answer(call, lambda _: CLOSE_CONNECTION)
            return route.handle(self._services, call, call.request)
        return CLOSE_CONNECTION

    def _fail(self, route: Route, call: Call, code: ErrorCode) -> Any:
        if call.api_key == ApiKey.METADATA:
            self._replace_answer(call, lambda response: fail_topics(response, code))
            return route.handle(self._services, call, call.request)
        if call.api_key == ApiKey.PRODUCE and call.request.acks == 0:
            return CLOSE_CONNECTION
        return error_answer(call.api_key, call.request, code)

    def _hold_answer(self, call: Call, delay_ms: int) -> None:
        def hold(peer: Peer, answered: Call, response: Any) -> None:
            self._services.runtime.call_later(delay_ms, lambda: peer.answered(answered, response))

        Intercepted(call, hold)

    def _replace_answer(self, call: Call, change: Callable[[Any], Any]) -> None:
        Intercepted(call, lambda peer, answered, response: peer.answered(answered, change(response)))
