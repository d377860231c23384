"""A slice of the bit rot: a seeded share of all bytes of all files."""

from __future__ import annotations

import pytest

from tests.reliability import bit_rot
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
def test_a_changed_byte_is_never_served_and_always_named() -> None:
    kinds = {case.kind for case in run_cases("bit_rot", 1, bit_rot.cases(seed=1, share=0.01))}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"} <= kinds
