"""A slice of the crowds: a tenth of each."""

from __future__ import annotations

import pytest

from tests.reliability import crowds
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_many_at_once_are_served_within_a_little_memory() -> None:
    done = [case.name for case in run_cases("crowds", 1, crowds.cases(1, share=0.1))]
    assert len(done) == 4
