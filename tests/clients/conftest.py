"""What all tests of client libraries share."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest

from ottla.testing.embedded import EmbeddedBroker
from tests.clients.group_members import Member
from tests.clients.sharing import make_topic


@pytest.fixture
def joined(ottla_broker: EmbeddedBroker) -> Iterator[list[Member]]:
    """Members of a group that reads the shared topic; closes those that are left."""
    make_topic(ottla_broker.bootstrap)
    members: list[Member] = []
    yield members
    for member in members:
        member.close()


@pytest.fixture(autouse=True)
def _forgotten_sockets() -> Iterator[None]:
    """kafka-python forgets sockets of brokers that died: they end here, not as a warning in some later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
