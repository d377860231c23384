"""A slice of the power cuts: some points of some stories, several states at each."""

from __future__ import annotations

import pytest

from tests.reliability import power_loss
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
@pytest.mark.parametrize("seed", range(4))
def test_what_was_promised_is_there_whenever_the_power_goes(seed: int) -> None:
    done = sum(1 for _ in run_cases("power_loss", seed, power_loss.cases(seed, share=0.05)))
    assert done > 100
