"""A slice of the power cuts: some of the points of one story."""

from __future__ import annotations

import pytest

from tests.reliability import power_loss
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_a_power_cut_takes_nothing_that_was_flushed() -> None:
    done = sum(1 for _ in run_cases("power_loss", 1, power_loss.cases(seed=1, share=0.25)))
    assert done > 200
