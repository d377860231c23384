"""A slice of the kills of pipeline drivers: each kind of table lives through a few of them."""

from __future__ import annotations

import pytest

from tests.reliability import pipeline_exactly_once
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_a_killed_driver_leaves_each_committed_record_once() -> None:
    cases = pipeline_exactly_once.cases(1, kills=6, drivers=("plain",))
    assert sum(1 for _ in run_cases("pipeline_exactly_once", 1, cases)) == 3
