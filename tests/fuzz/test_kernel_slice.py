"""A slice of `make fuzz`, without the sanitizer."""

from __future__ import annotations

import pytest

from tests.fuzz.kernel_target import check

SEED = 0
INPUTS = 5_000


@pytest.mark.slice
def test_damaged_batches_give_a_status_or_a_documented_error() -> None:
    for number in range(INPUTS):
        try:
            check(SEED, number)
        except Exception as error:
            error.add_note(f"python -m tests.fuzz --seed {SEED} --first {number} --count 1")
            raise
