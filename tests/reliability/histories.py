"""Random histories: appends, reads, rolls, cuts, retention, crashes and restarts beside a simple model, always equal.

Those of one log are in tests/storage/log/test_random_history.py; those of a whole directory, with compaction and power
cuts, in living.py. Here they run with as many seeds as there is time for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.reliability.living import Living
from tests.reliability.scenarios import Case
from tests.storage.log.test_random_history import History, TransactionHistory

HISTORIES = 500
STEPS = 200


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """`HISTORIES` of each kind, or a `share` of them."""
    for number in range(int(HISTORIES * share)):
        for kind in (History, TransactionHistory, Living):
            name = f"{kind.__name__} {seed * 1_000_003 + number}"
            yield Case(kind.__name__, name, partial(_check, kind, seed * 1_000_003 + number))


def _check(kind: type[History] | type[Living], seed: int) -> None:
    kind(seed).run(STEPS)
