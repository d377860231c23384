"""Requests with very many entries, from their bytes to their handler: read in slices, a few at a time.

What they take is charged to the memory for requests: the bytes, and the objects that are made of them. While there is
no room for another one, connections that bring one are not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from ottla.api.call import Call
from ottla.protocol.buffers import MemoryBudget
from ottla.protocol.codec import MAX_ELEMENTS, DecodeError
from ottla.server.dispatch import LargeRoute, Route
from ottla.slices import Slices, Steps

_TOO_MANY: Final = "{} has {} entries; a request of this kind may have {}. Send several smaller ones"
ELEMENT_BYTES: Final = 400  # of memory, for an element of a request and what is made for its answer
MAX_BYTES: Final = 64 << 20  # of all of them; one may always be there, whatever its size


class Connection(Protocol):
    """Where such a request came from."""

    def handle(self, call: Call, route: Route) -> None: ...

    def refuse(self, why: str) -> None: ...

    def abort(self) -> None: ...


class LargeRequests:
    """Those of all connections of a loop."""

    def __init__(self, slices: Slices, budget: MemoryBudget) -> None:
        self.slices = slices
        self._budget = budget
        self._charged_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def has_room(self, frame_bytes: int) -> bool:
        return not self._charged_bytes or self._charged_bytes + charge_of(frame_bytes) <= MAX_BYTES

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` when there may be room. Whoever finds none comes back."""
        self._waiting.append(resume)

    def charge(self, size_bytes: int) -> None:
        self._charged_bytes += size_bytes
        self._budget.hold(size_bytes)

    def release(self, size_bytes: int) -> None:
        self._charged_bytes -= size_bytes
        self._budget.let_go(size_bytes)
        for _ in range(len(self._waiting)):
            if self._charged_bytes > MAX_BYTES // 2:
                break
            self._waiting.popleft()()


def charge_of(frame_bytes: int, elements: int = MAX_ELEMENTS) -> int:
    """What a request of this size takes at most, or with so many elements."""
    return frame_bytes + min(frame_bytes, elements) * ELEMENT_BYTES


class LargeRequest:
    """One of them, until it is answered or its client has gone."""

    def __init__(self, large: LargeRequests, connection: Connection, call: Call, frame: memoryview) -> None:
        self.call = call
        self._large = large
        self._connection = connection
        self._frame = frame
        self._charged_bytes = charge_of(len(frame))
        large.charge(self._charged_bytes)

    def begin(self, route: LargeRoute, position: int) -> None:
        connection, call = self._connection, self.call

        def decoded(error: DecodeError | None) -> None:
            if error is not None:
                connection.refuse(str(error))
            elif call.is_open:
                connection.handle(call, route.route)

        self._large.slices.add(self._decode(route, position), decoded, connection.abort, call)

    def _decode(self, route: LargeRoute, position: int) -> Steps:
        """Read the request; nothing more is done for a client that goes meanwhile."""
        call, steps = self.call, route.decode_slowly(self._frame, position)
        while call.is_open:
            try:
                next(steps)
            except StopIteration as end:
                call.request, elements = end.value
                if elements > route.max_elements:
                    return DecodeError(_TOO_MANY.format(call, elements, route.max_elements))
                self._charge_less(charge_of(len(self._frame), elements))
                break
            except DecodeError as error:
                return error
            yield
        return None

    def _charge_less(self, needed_bytes: int) -> None:
        """It is known now what it needs."""
        spare_bytes = self._charged_bytes - needed_bytes
        if spare_bytes > 0:
            self._charged_bytes = needed_bytes
            self._large.release(spare_bytes)

    def end(self) -> None:
        """Give its memory back, and let the next one come."""
        charged_bytes, self._charged_bytes = self._charged_bytes, 0
        if charged_bytes:
            self._large.release(charged_bytes)
