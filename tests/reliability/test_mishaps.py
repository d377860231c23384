"""A slice of the mishaps, and others that hypothesis thinks of."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reliability import mishaps
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_a_repair_keeps_what_is_healthy_and_is_done_after_one_run() -> None:
    done = list(run_cases("mishaps", 1, mishaps.cases(seed=1, count=60)))
    assert {case.kind for case in done} == {"clean", "killed", "compacted"}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["clean", "killed", "compacted"]), st.randoms(use_true_random=False))
def test_a_repair_never_makes_it_worse(how: str, rng: Random) -> None:
    mishaps.run(how, rng)
