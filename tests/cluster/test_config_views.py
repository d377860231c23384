"""Settings as clients see them, held against what Apache Kafka 4.2.0 answered to the same questions."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from ottla.cluster.config_views import (
    ConfigSource,
    ConfigView,
    broker_config_views,
    broker_properties,
    cluster_config_views,
    topic_config_views,
)
from ottla.cluster.image import ClusterImage, TopicInfo
from ottla.config import UNSUPPORTED_TOPIC_KEYS

# What was set in the file, for the brokers and on the topic, and Kafka's DescribeConfigs with synonyms.
KAFKA = json.loads((Path(__file__).parents[1] / "data/kafka-4.2.0-described.json").read_text())
OURS = "ottla.decompression.max.bytes"
# Kafka derives broker.id, changes listeners while it runs, and has other defaults for these or none.
DIFFERENT = {
    "broker.id",
    "controller.listener.names",
    "group.consumer.max.size",
    "group.max.size",
    "listeners",
    "log.dirs",
    "node.id",
    "offsets.topic.replication.factor",
    "queued.max.request.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}


@pytest.fixture(scope="module")
def image() -> ClusterImage:
    topic = TopicInfo("t", uuid.UUID(int=5), (), KAFKA["topic"])
    configs = {int(node) if node else None: config for node, config in KAFKA["broker_configs"].items()}
    return ClusterImage("cluster", topics={"t": topic}, broker_configs=configs)


def as_kafka_says_it(views: list[ConfigView]) -> dict[str, list[Any]]:
    return {
        view.name: [
            *(view.value, view.source, view.read_only, view.sensitive, view.type),
            [[synonym.name, synonym.value, synonym.source] for synonym in view.synonyms],
        ]
        for view in views
    }


def test_a_topics_settings_are_described_as_kafka_describes_them(image: ClusterImage) -> None:
    ours = as_kafka_says_it(topic_config_views(image, "t", 1, KAFKA["static"]))
    assert ours.pop(OURS)[1] == ConfigSource.DEFAULT
    kafkas = {k: v for k, v in KAFKA["described"]["topic"].items() if k not in UNSUPPORTED_TOPIC_KEYS}
    assert ours == kafkas


def test_a_brokers_settings_are_described_as_kafka_describes_them(image: ClusterImage) -> None:
    ours = as_kafka_says_it(broker_config_views(image, 1, KAFKA["static"]))
    assert ours.pop("ottla.serve.open")[1:4] == [ConfigSource.DEFAULT, True, False]
    for limit in ("partitions", "groups", "committed.offsets", "producer.ids", "transactional.ids"):
        assert ours.pop(f"ottla.max.{limit}")[1:4] == [ConfigSource.DEFAULT, True, False]
    del ours[OURS]
    kafkas = KAFKA["described"]["broker"]
    assert ours.keys() == kafkas.keys()
    assert {key for key in ours if ours[key] != kafkas[key]} == DIFFERENT


def test_what_is_set_for_all_brokers_is_described_alone(image: ClusterImage) -> None:
    assert as_kafka_says_it(cluster_config_views(image)) == KAFKA["described"]["cluster"]
    assert [view.name for view in cluster_config_views(image, ["message.max.bytes", "nope"])] == [
        "message.max.bytes"
    ]
    assert cluster_config_views(ClusterImage("other")) == []


def test_only_the_keys_asked_for_are_described(image: ClusterImage) -> None:
    asked = ["segment.ms", "retention.ms", "nope"]
    assert [view.name for view in topic_config_views(image, "t", 1, {}, asked)] == [
        "retention.ms",
        "segment.ms",
    ]
    assert [view.name for view in broker_config_views(image, 1, {}, ["node.id"])] == ["node.id"]
    assert topic_config_views(image, "t", 1, {}, []) == []


def test_internal_settings_show_where_they_are_set() -> None:
    topic = TopicInfo("t", uuid.UUID(int=5), (), {"internal.segment.bytes": "7"})
    image = ClusterImage("cluster", topics={"t": topic})
    names = {view.name: view.value for view in topic_config_views(image, "t", 1, {})}
    assert names["internal.segment.bytes"] == "7"
    assert "internal.segment.bytes" not in {view.name for view in topic_config_views(image, "new", 1, {})}
    assert "log.initial.task.delay.ms" not in {view.name for view in broker_config_views(image, 1, {})}
    [view] = broker_config_views(image, 1, {"log.initial.task.delay.ms": "5"}, ["log.initial.task.delay.ms"])
    assert (view.value, view.source) == ("5", ConfigSource.STATIC_BROKER)


def test_every_setting_is_explained(image: ClusterImage) -> None:
    views = [*topic_config_views(image, "t", 1, {}), *broker_config_views(image, 1, {})]
    assert all(view.documentation.endswith(".") for view in views)
    assert {view.source == ConfigSource.DEFAULT for view in views} == {True, False}


def test_one_brokers_settings_beat_those_of_all_and_those_of_the_file(image: ClusterImage) -> None:
    static = {"log.segment.bytes": "1", "message.max.bytes": "1", "num.partitions": "1"}
    properties = broker_properties(image, 1, static)
    assert [properties[key] for key in static] == ["4000000", "2000000", "1"]
    assert broker_properties(image, 2, static)["log.segment.bytes"] == "3000000"
