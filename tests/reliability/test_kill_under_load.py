"""A slice of the kills under load: one data directory that lives through three of them."""

from __future__ import annotations

import gc

import pytest

from tests.reliability import kill_under_load
from tests.reliability.scenarios import run_cases


@pytest.mark.slice
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # kafka-python's that found nobody
def test_nothing_acknowledged_is_lost_when_the_broker_is_killed() -> None:
    assert sum(1 for _ in run_cases("kill_under_load", 1, kill_under_load.cases(1, lives=1, kills=3))) == 1
    gc.collect()  # those sockets are told of now, not in another test
