"""A slice of the groups under fire: a twentieth of them, for seconds."""

from __future__ import annotations

import pytest

from tests.reliability import groups_under_fire
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
@pytest.mark.timeout(600)
def test_no_partition_has_two_owners_and_no_commit_is_lost() -> None:
    found = groups_under_fire.cases(1, groups_under_fire.SLICE)
    assert len(list(run_cases("groups_under_fire", 1, found))) == 2
