"""Answers that take long to make because they are about very much: they are made in slices (slices.py)."""

from __future__ import annotations

from typing import Any

from ottla.api.call import CLOSE_CONNECTION, PENDING, Call
from ottla.api.services import Services
from ottla.slices import Steps

SLICE = 200  # entries that a handler looks at in one step


def answer_in_slices(services: Services, call: Call, steps: Steps) -> Any:
    """What `steps` return, if one step is enough; else PENDING, and the call is answered when they are done.

    Steps that return PENDING see to the answer themselves. No more is read from the connection until it is there, and
    nothing more is done once the client has gone.
    """
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    call.is_slow = call.is_large = True

    def done(response: object) -> None:
        if response is not PENDING:
            call.reply(response)

    services.slices.add(_while_open(call, steps), done, lambda: call.reply(CLOSE_CONNECTION), call)
    return PENDING


def _while_open(call: Call, steps: Steps) -> Steps:
    while call.is_open:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        yield
    return None
