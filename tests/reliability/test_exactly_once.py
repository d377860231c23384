"""A slice of the read-process-write under kills."""

from __future__ import annotations

import pytest

from tests.reliability import exactly_once
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_each_input_comes_out_once_whoever_is_killed() -> None:
    assert sum(1 for _ in run_cases("exactly_once", 1, exactly_once.cases(1, records=6_000, kills=3))) == 1
