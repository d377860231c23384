"""How many producers the partitions of a broker may remember, all together.

A client can write with as many made-up producer ids as it likes, and each is remembered for a day. So there is a level
that no partition may be above: it is as high as it can be while all partitions together stay below the limit, which
only those feel that remember the most. Whoever is above it forgets the producers that have not written for the longest
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ProducerQuota:
    """Shared by the partitions of a broker. Logs are at home on several threads: a count may be a little old."""

    def __init__(self, limit: int, logs: Mapping[Any, Any]) -> None:
        self._limit = limit
        self._logs = logs  # each with its `producers`
        self._step = max(1, limit // 100)
        self._left = self._step  # producers that may come before everything is counted again
        self.level = limit

    def allows(self, count: int) -> bool:
        """A partition has one more producer than before: whether it may keep all of them."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._step
            self.level = self._measured()
        return count <= self.level

    def _measured(self) -> int:
        """The level up to which all partitions may be filled, if the fullest share what is left by the others."""
        # A list first: logs come and go on another thread.
        sizes = sorted(len(log.producers.producers) for log in list(self._logs.values()))
        left = self._limit
        for place, size in enumerate(sizes):
            share = left // (len(sizes) - place)
            if size > share:
                return max(1, share)
            left -= size
        return self._limit
