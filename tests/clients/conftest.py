"""What all tests of client libraries share."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _forgotten_sockets() -> Iterator[None]:
    """kafka-python forgets sockets of brokers that died: they end here, not as a warning in some later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
