"""Answers on their way to one client: gathered while requests are handled, and given to the transport together."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.api.call import Call
from ottla.names import Bytes
from ottla.protocol.buffers import MemoryBudget

MAX_COPIED_BYTES: Final = 16 << 10  # of small answers that leave together


class Outbox:
    """The answers of one session that are encoded and have not been given to its transport."""

    __slots__ = ("_budget", "_held_bytes", "parts", "size_bytes")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._held_bytes = 0  # of answers that the client has not taken yet, in memory made for them
        self.parts: list[Bytes] = []
        self.size_bytes = 0

    def add(self, answers: bytes) -> None:
        """Take the answers of a run, which are one piece already."""
        self.parts.append(answers)
        self.size_bytes += len(answers)

    def put(self, call: Call, parts: list[Bytes]) -> None:
        """Take the answer of a call."""
        self.parts += parts
        self.size_bytes += call.answer_bytes
        call.parts = None
        if call.held_bytes:
            self._held_bytes += call.held_bytes
            self._budget.hold(call.held_bytes)

    def flush(self, transport: asyncio.Transport | None) -> list[Bytes]:
        """Give all of it to the transport, if there still is one; what that was."""
        parts, size_bytes = self.parts, self.size_bytes
        self.parts, self.size_bytes = [], 0
        if transport is not None:
            if size_bytes <= MAX_COPIED_BYTES:
                transport.write(b"".join(parts))  # cheaper than handing them over one by one
            else:
                transport.writelines(parts)
        return parts

    def release(self) -> None:
        """What was made for this client's answers has gone."""
        if self._held_bytes:
            held_bytes, self._held_bytes = self._held_bytes, 0
            self._budget.let_go(held_bytes)
