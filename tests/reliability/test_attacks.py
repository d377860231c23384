"""A slice of the attacks: each at a small size, and all of them at once."""

from __future__ import annotations

import pytest

from tests.reliability.attacks import stories

SHARE = 0.02  # of the full sizes


@pytest.mark.slice
@pytest.mark.parametrize("name", stories.ATTACKS)
def test_no_turn_of_the_loop_is_long_under_an_attack_and_then_all_is_as_before(name: str) -> None:
    stories.run(name, stories.ATTACKS[name], seed=1, share=SHARE)


@pytest.mark.slice
def test_all_attacks_at_once_stay_within_the_memory_that_is_configured_and_leave_nothing_behind() -> None:
    quick = {name: attack for name, attack in stories.ATTACKS.items() if not stories.moves_the_clock(attack)}
    stories.run_outside(quick, seed=1, share=SHARE)
