"""A slice of the kills of drivers: the small one, some times."""

from __future__ import annotations

import pytest

from tests.reliability import spark_exactly_once
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_every_committed_record_is_copied_once_however_often_the_driver_dies() -> None:
    cases = [case for case in spark_exactly_once.cases(1, kills=6) if case.kind == "driver"]
    assert [case.kind for case in run_cases("spark_exactly_once", 1, cases)] == ["driver"]
