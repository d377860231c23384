"""The pytest plugin: the fixtures `ottla_broker` and `ottla_topic`.

pytest loads this in every run of every project that has ottla installed, so it imports nothing of ottla until a
test asks for a broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.embedded import EmbeddedBroker

_INI = "ottla_broker_properties"
_NAME_CHARS = 200  # a topic's name may have 249


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _INI, "settings of the brokers that `ottla_broker` starts, one key=value a line", "linelist"
    )


@pytest.fixture
def ottla_broker_properties(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of the test's broker; from the ini file, unless a conftest or a module has its own."""
    properties = {}
    for line in request.config.getini(_INI):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise pytest.UsageError(f"{_INI}: {line!r} is not key=value")
        properties[key.strip()] = value.strip()
    return properties


@pytest.fixture
def ottla_broker(ottla_broker_properties: dict[str, str]) -> Iterator[EmbeddedBroker]:
    """A running broker of this test's own, on a free port, with empty data that is removed after the test."""
    from ottla.testing.embedded import EmbeddedBroker

    with EmbeddedBroker(ottla_broker_properties) as broker:
        yield broker


@pytest.fixture
def ottla_topic(ottla_broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    """The name of a topic that has been made for this test, with the broker's default number of partitions."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:_NAME_CHARS].strip("-.") or "topic"
    ottla_broker.create_topic(name, partitions=-1)
    return name
