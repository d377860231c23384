"""The clocks of the members of consumer groups: soft state, begun anew by whoever takes over."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ottla.coordinator.result import Command, Shard
from ottla.runtime import Timer


class Clock(Enum):
    """What a member is waited for."""

    SESSION = "session"  # any sign of life
    REBALANCE = "rebalance"  # that it gives up partitions
    JOIN = "join"  # that a classic member joins again
    SYNC = "sync"  # that a classic member fetches its assignment


class MemberTimers:
    """At most one timer for each clock of a member."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._timers: dict[tuple[str, str], dict[Clock, Timer]] = {}

    def start(
        self, clock: Clock, group_id: str, member_id: str, delay_ms: int, command: Command[Any]
    ) -> None:
        """Run a command when the time is over, unless the clock is started again or stopped."""
        self.stop(clock, group_id, member_id)

        def due(state: Any, now_ms: int) -> Any:
            self._drop(clock, group_id, member_id)
            return command(state, now_ms)

        timers = self._timers.setdefault((group_id, member_id), {})
        timers[clock] = self._shard.call_later(delay_ms, due)

    def is_running(self, clock: Clock, group_id: str, member_id: str) -> bool:
        return clock in self._timers.get((group_id, member_id), ())

    def stop(self, clock: Clock, group_id: str, member_id: str) -> None:
        timer = self._drop(clock, group_id, member_id)
        if timer is not None:
            timer.cancel()

    def _drop(self, clock: Clock, group_id: str, member_id: str) -> Timer | None:
        timers = self._timers.get((group_id, member_id), {})
        timer = timers.pop(clock, None)
        if not timers:
            self._timers.pop((group_id, member_id), None)
        return timer

    def forget(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        for timer in self._timers.pop((group_id, member_id), {}).values():
            timer.cancel()

    def forget_all(self) -> None:
        for group_id, member_id in list(self._timers):
            self.forget(group_id, member_id)
