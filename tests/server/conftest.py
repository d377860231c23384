"""Fixtures of the server's tests: a broker with a topic, and a client beside the one that misbehaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import Wire

TOPIC = "t"


@pytest.fixture
def broker(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    ottla_broker.create_topic(TOPIC)
    return ottla_broker


@pytest.fixture
def wire(broker: EmbeddedBroker) -> Iterator[Wire]:
    with Wire(broker) as wire:
        yield wire


@pytest.fixture
def neighbour(broker: EmbeddedBroker) -> Iterator[Wire]:
    """A good client, connected before anything bad happens; at the end it must still be served."""
    with Wire(broker) as wire:
        wire.ping()
        yield wire
        wire.ping()
