"""What histories of groups share: a world of their own, its end, the passing of time, how long they are."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

from tests.api.world import World
from tests.coordinator.grouping import find


class GroupHistory(RuleBasedStateMachine):
    """A broker whose groups live through a history. Between its steps it may start again."""

    TOPICS: ClassVar[Mapping[str, int]]
    SETTINGS: ClassVar[Mapping[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        self._dir = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.world = World(
            f"{self._dir.name}/data",
            offsets_topic_num_partitions="2",
            offsets_retention_check_interval_ms="60000",
            **self.SETTINGS,
        )
        for name, partitions in self.TOPICS.items():
            self.world.make_topic(name, partitions)
        find(self.world)

    def teardown(self) -> None:
        self.world.close()
        self._dir.cleanup()

    def pass_time(self, ms: int) -> None:
        self.world.runtime.advance(ms)
        self.world.runtime.run_pending()


def length(histories: int, steps: int) -> settings:
    return settings(
        max_examples=histories,
        phases=[Phase.generate],  # to make a whole history shorter takes minutes
        stateful_step_count=steps,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
