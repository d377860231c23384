"""A slice of the kills in the middle of transactions: some points of some stories."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.transactions.state import TransactionState
from tests.reliability import transaction_kills
from tests.reliability.scenarios import CaseError, run_cases

CHECK = "transaction_kills"


@pytest.mark.slice
@pytest.mark.parametrize("seed", range(1, 4))
def test_wherever_the_broker_is_killed_every_transaction_ends_in_one_way(seed: int) -> None:
    done = sum(1 for _ in run_cases(CHECK, seed, transaction_kills.cases(seed, share=0.12)))
    assert done > 25


def test_a_coordinator_that_forgets_what_is_prepared_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: this is what it sees if markers are not sent again after a start."""

    loaded = TransactionState.loaded

    def forgetful(self: Any, now_ms: int) -> None:
        known, self.transactions = self.transactions, {}
        loaded(self, now_ms)
        self.transactions = known

    monkeypatch.setattr(TransactionState, "loaded", forgetful)
    with pytest.raises(CaseError):
        list(run_cases(CHECK, 1, transaction_kills.cases(1)))
