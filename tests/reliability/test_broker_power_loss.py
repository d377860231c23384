"""A slice of the power cuts under a broker: some points of some stories, several states at each."""

from __future__ import annotations

import pytest

from ottla.testing.disk import SimulatedDisk
from ottla.testing.history import Operation, Sync
from tests.reliability import broker_power_loss
from tests.reliability.broker_story import BrokerStory
from tests.reliability.scenarios import CaseError, run_cases

CHECK = "broker_power_loss"


@pytest.mark.slice
@pytest.mark.parametrize("seed", range(1, 5))
def test_what_was_acknowledged_is_on_disk_when_the_power_goes(seed: int) -> None:
    done = sum(1 for _ in run_cases(CHECK, seed, broker_power_loss.cases(seed, share=0.08)))
    assert done > 100


class LyingDisk(SimulatedDisk):
    """Says that data is on disk, and has it in its cache."""

    def note(self, operation: Operation) -> None:
        if not isinstance(operation, Sync):
            super().note(operation)


def test_a_disk_that_lies_about_its_syncs_is_found_out() -> None:
    """The check can fail: this is what it would see if the broker acknowledged before it flushed."""
    story = BrokerStory(1, LyingDisk)
    story.run(broker_power_loss.ACTIONS)
    with pytest.raises(CaseError, match=r"was promised, the log ends at"):
        list(run_cases(CHECK, 1, broker_power_loss.cases_of(story, 1, share=0.1)))
