"""Answers that clients have asked for and do not take: how much memory they may hold, over all connections.

What the system's buffers have no room for stays in memory until the client reads on. A connection is not read from
meanwhile, so that each holds little; but there can be thousands. When they hold too much, the one that has not moved
for the longest time is closed.

Records are sent from the log's own pages and do not count.
"""

from __future__ import annotations

import logging
import mmap
from typing import Protocol

from ottla.names import Bytes

log = logging.getLogger(__name__)


class Reader(Protocol):
    """A connection, as seen from here."""

    address: str

    def abort(self) -> None: ...


class UnsentAnswers:
    """Of one listener."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._held: dict[Reader, int] = {}  # the one that has waited longest comes first

    def hold(self, reader: Reader, answers: list[Bytes]) -> None:
        """These wait for a client that does not read."""
        size_bytes = sum(map(_memory_of, answers))
        had_bytes = self._held.get(reader, 0)
        self._held[reader] = had_bytes + size_bytes
        self.used_bytes += size_bytes
        while self.used_bytes > self.limit_bytes:
            oldest = next(iter(self._held))
            if oldest is reader and not had_bytes and len(self._held) == 1:
                return  # a single large answer has to leave somehow
            log.warning(
                "closing the connection from %s: clients do not read %d bytes of answers, and %d of them are its own",
                oldest.address, self.used_bytes, self._held[oldest],
            )  # fmt: skip
            self.let_go(oldest)
            oldest.abort()

    def let_go(self, reader: Reader) -> None:
        """They have left, or their client has."""
        self.used_bytes -= self._held.pop(reader, 0)


def _memory_of(part: Bytes) -> int:
    is_mapped = isinstance(part, memoryview) and isinstance(part.obj, mmap.mmap)
    return 0 if is_mapped else len(part)
