"""A slice of the attacks: each at a small size."""

from __future__ import annotations

import pytest

from tests.reliability.attacks import stories


@pytest.mark.slice
@pytest.mark.parametrize("name", stories.ATTACKS)
def test_no_turn_of_the_loop_is_long_under_an_attack(name: str) -> None:
    stories.run(name, stories.ATTACKS[name], seed=1, share=0.05)
