"""What `/metrics` says, and that the documentation names every number of it."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.internal_topics.group_records import OffsetCommit
from ottla.server import group_lag
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import PRODUCE, Wire, produce, records

PAGE = Path(__file__).parents[2] / "docs/serve.md"
DASHBOARD = PAGE.parent / "grafana-dashboard.json"


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
    assert value(text, "kafka_server_topics") == len(broker.broker.metadata.image.topics)


def test_the_sum_over_all_topics_outlives_a_topic_and_counts_what_nobody_made() -> None:
    with EmbeddedBroker(http=True) as broker:
        broker.create_topic("short-lived")
        with Wire(broker) as wire:
            data = records(b"value")
            wire.ask(PRODUCE, 9, produce("short-lived", data))
            wire.ask(PRODUCE, 9, produce("short-lived", data, partition=7))
            wire.ask(PRODUCE, 9, produce("nobody-made-this", data))
            text = scrape(broker)
            name = "kafka_server_brokertopicmetrics_produce_requests_total"
            assert value(text, name, topic="short-lived") == 2
            assert "nobody-made-this" not in text
            broker.delete_topic("short-lived")
        text = scrape(broker)
        assert "short-lived" not in text
        total = "kafka_server_brokertopicmetrics_alltopics"
        assert value(text, f"{total}_produce_requests_total") == 3
        assert value(text, f"{total}_bytes_in_total") == len(data)
        assert value(text, f"{total}_messages_in_total") == 1


def test_how_far_a_group_is_behind(broker: EmbeddedBroker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": 'a "quoted" group'})
    consumer.commit(offsets=[TopicPartition("counted", 1, 20)], asynchronous=False)
    consumer.close()
    labels = {"consumergroup": r"a \\\"quoted\\\" group", "partition": "1", "topic": "counted"}
    text = scrape(broker)
    assert value(text, "kafka_consumergroup_current_offset", **labels) == 20
    assert value(text, "kafka_consumergroup_lag", **labels) == 30
    assert value(text, "ottla_consumergroup_left_out") == 0


def test_a_scrape_of_many_groups_leaves_the_loop_to_others_and_has_an_end() -> None:
    with EmbeddedBroker(http=True) as broker:
        broker.create_topic("t", partitions=1)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False)
        consumer.close()
        broker.call(lambda: _commit_many(broker, group_lag.MAX_SERIES + 700))
        turns = 0

        async def count() -> int:
            nonlocal turns
            task = asyncio.ensure_future(
                group_lag.render(broker.broker.services.groups, broker.broker.replicas)
            )
            while not task.done():
                turns += 1
                await asyncio.sleep(0)
            return len(re.findall(rb"^kafka_consumergroup_current_offset", await task, re.MULTILINE))

        assert broker._wait(count()) == group_lag.MAX_SERIES
        assert turns > 50
        assert value(scrape(broker), "ottla_consumergroup_left_out") == 701


def _commit_many(broker: EmbeddedBroker, count: int) -> None:
    """Put offsets of that many partitions into the coordinator's state, as if they had been read from its log."""
    (state,) = (state for state in broker.broker.services.groups.states() if state.offsets.of("g"))
    ((_, stored),) = state.offsets.of("g").items()
    for number in range(count):
        state.offsets.replay(OffsetCommit("many", "t", number, stored), 0, -1)


def test_every_number_is_documented_and_no_other(broker: EmbeddedBroker) -> None:
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", scrape(broker), re.MULTILINE))
    reported = {name for name in kinds if not name.endswith("_created")}
    documented = set(re.findall(r"^\| `((?:kafka|ottla|process)_\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert documented == reported


def test_the_dashboard_names_only_what_is_there_and_labels_that_it_has(broker: EmbeddedBroker) -> None:
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", scrape(broker), re.MULTILINE))
    there = {*kinds, *(f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram")}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    named = {name for text in shown for name in re.findall(r"(?:kafka|ottla|process)_\w+", text)}
    assert len(named) > 20
    assert named <= there


def test_health_is_told_and_other_paths_are_not_there(broker: EmbeddedBroker) -> None:
    assert scrape(broker, "/healthz") == "ok\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(broker, "/else")
