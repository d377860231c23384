"""A look at answers on their way out, for the request log and for the faults of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.api.call import Call, Peer


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
