"""Slices of `make fuzz`, without the sanitizers."""

from __future__ import annotations

import importlib

import pytest

from tests.fuzz.__main__ import TARGETS

SEED = 0
INPUTS = 4_000


@pytest.mark.slice
@pytest.mark.parametrize("target", TARGETS)
def test_damaged_inputs_do_no_harm(target: str) -> None:
    check = importlib.import_module(f"tests.fuzz.{target}_target").check
    for number in range(INPUTS):
        try:
            check(SEED, number)
        except Exception as error:
            error.add_note(f"python -m tests.fuzz --target {target} --seed {SEED} --first {number} --count 1")
            raise
