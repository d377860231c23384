"""What `/metrics` says, and that the documentation names every number of it."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.testing.embedded import EmbeddedBroker

PAGE = Path(__file__).parents[2] / "docs/serve.md"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(http=True) as broker:
        broker.create_topic("counted", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(100):
            producer.produce("counted", b"x" * 100, partition=number % 2)
        assert producer.flush(60) == 0
        yield broker


def scrape(broker: EmbeddedBroker, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{broker.broker.http}{path}", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


def value(text: str, metric: str, **labels: str) -> float:
    """One number; labels in alphabetical order."""
    shown = ",".join(f'{name}="{label}"' for name, label in labels.items())
    line = re.search(rf"^{metric}{{{shown}}} (\S+)$" if shown else rf"^{metric} (\S+)$", text, re.MULTILINE)
    assert line is not None, f"{metric} {labels} is not there"
    return float(line[1])


def test_records_and_requests_are_counted(broker: EmbeddedBroker) -> None:
    text = scrape(broker)
    assert value(text, "kafka_server_brokertopicmetrics_messages_in_total", topic="counted") == 100
    assert value(text, "kafka_server_brokertopicmetrics_bytes_in_total", topic="counted") > 10_000
    assert value(text, "kafka_log_end_offset", partition="1", topic="counted") == 50
    produced = value(text, "kafka_network_requests_total", request="Produce")
    assert 1 <= produced <= 100
    assert value(text, "kafka_network_request_total_time_ms_count", request="Produce") == produced
    assert value(text, "kafka_server_topics") == 1


def test_every_number_is_documented_and_no_other(broker: EmbeddedBroker) -> None:
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", scrape(broker), re.MULTILINE))
    reported = {name for name in kinds if not name.endswith("_created")}
    documented = set(re.findall(r"^\| `((?:kafka|ottla)_\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert documented == reported


def test_health_is_told_and_other_paths_are_not_there(broker: EmbeddedBroker) -> None:
    assert scrape(broker, "/healthz") == "ok\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(broker, "/else")
