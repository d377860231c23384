"""Produce below the api floor: who may append, what is answered, and when."""

from __future__ import annotations

import pytest

from tests.replica.world import T0, World


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_an_append_is_answered_at_once_where_no_other_replica_is_in_sync(world: World, acks: int) -> None:
    told = world.append(acks=acks, count=3)
    assert told.wait is None
    assert told.only == (T0, 0, None, 0, -1, 0, ())
    assert world.append(acks=acks).only.base_offset == 3
    assert world.log().high_watermark == 4
