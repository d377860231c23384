"""What all tests against real Kafka share: a seed that every run shows, and random numbers from it."""

from __future__ import annotations

import random

import pytest


def _seed(config: pytest.Config) -> int:
    return int(config.getoption("randomly_seed"))


@pytest.fixture(scope="module")
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers of a module's workload."""
    return random.Random(f"{_seed(request.config)} {request.module.__name__}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = _seed(config)
    terminalreporter.write_line(f"to repeat: .venv/bin/pytest tests/interop --randomly-seed={seed}")
