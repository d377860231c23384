"""A broker for the tests of pipelines, and a fresh topic for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ottla.testing.embedded import EmbeddedBroker

_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = f"topic-{next(_numbers)}"
    broker.create_topic(name, 2)
    return name
