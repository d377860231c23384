"""Random histories, chosen and shrunk by hypothesis: after every step the log equals its model."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.reliability.living import Living
from tests.storage.log.test_random_history import History, TransactionHistory

pytestmark = pytest.mark.slice


class LogMachine(RuleBasedStateMachine):
    """Each rule is one thing that can happen to a log; what it happens to is drawn from the seed."""

    history: History

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.history = self.kind(seed)
        self.moves = [move for _, move in self.history.moves()]

    kind: type[History] = History

    @rule(number=st.integers(0, 63))
    def move(self, number: int) -> None:
        move = self.moves[number % len(self.moves)]
        self.history.done.append(move.__name__)
        move()

    @invariant()
    def equals_its_model(self) -> None:
        if hasattr(self, "history"):
            self.history.check()


class TransactionLogMachine(LogMachine):
    kind = TransactionHistory


class DirectoryMachine(RuleBasedStateMachine):
    """The same for a directory with several logs, one of them compacted, whose power may be cut."""

    story: Living

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.story = Living(seed)

    @rule(action=st.sampled_from(sorted(Living(0).actions)))
    def act(self, action: str) -> None:
        self.story.act(action)  # and compare


_SETTINGS = settings(
    max_examples=60,
    stateful_step_count=40,
    print_blob=True,  # how to run a failure again
)
LogMachine.TestCase.settings = _SETTINGS
TransactionLogMachine.TestCase.settings = _SETTINGS
DirectoryMachine.TestCase.settings = _SETTINGS
TestLogs = LogMachine.TestCase
TestTransactionLogs = TransactionLogMachine.TestCase
TestDirectories = DirectoryMachine.TestCase
