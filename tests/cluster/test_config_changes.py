"""Settings of topics and brokers: what can be changed, and what a change is refused with."""

from __future__ import annotations

import pytest

from ottla.cluster.config_changes import (
    Alteration,
    Alterations,
    AlterOp,
    BrokerAlterations,
    TopicAlterations,
    alter_configs,
)
from ottla.cluster.controller import NewTopic
from ottla.cluster.image import ClusterImage
from tests.cluster.making import CONFIG, cluster, make

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC = 17
INVALID_CONFIG = 40
INVALID_REQUEST = 42


@pytest.fixture
def image() -> ClusterImage:
    return make(NewTopic("a", config={"retention.ms": "5", "cleanup.policy": "compact"}))(cluster()).image


def test_an_incremental_change_leaves_the_other_settings(image: ClusterImage) -> None:
    changes = [Alteration("segment.ms", "7"), Alteration("retention.ms", None, AlterOp.DELETE)]
    outcome = alter_configs(image, [TopicAlterations("a", changes)], CONFIG)
    assert [result.error_code for result in outcome.results] == [0]
    assert outcome.image.topics["a"].config == {"segment.ms": "7", "cleanup.policy": "compact"}
    assert outcome.image.topics["a"].partitions is image.topics["a"].partitions


def test_a_whole_change_takes_the_place_of_all_settings(image: ClusterImage) -> None:
    changes = TopicAlterations("a", [Alteration("segment.ms", "7")], whole=True)
    assert alter_configs(image, [changes], CONFIG).image.topics["a"].config == {"segment.ms": "7"}


@pytest.mark.parametrize(
    ("op", "value", "policy"),
    [
        (AlterOp.APPEND, "delete", "compact,delete"),
        (AlterOp.APPEND, "compact", "compact"),
        (AlterOp.SUBTRACT, "compact", ""),
        (AlterOp.SUBTRACT, "delete", "compact"),
    ],
)
def test_lists_are_added_to_and_taken_from(image: ClusterImage, op: AlterOp, value: str, policy: str) -> None:
    outcome = alter_configs(image, [TopicAlterations("a", [Alteration("cleanup.policy", value, op)])], CONFIG)
    assert outcome.image.topics["a"].config["cleanup.policy"] == policy


def test_a_list_that_is_not_set_is_added_to_from_its_default(image: ClusterImage) -> None:
    image = make("b")(image).image
    change = Alteration("cleanup.policy", "compact", AlterOp.APPEND)
    outcome = alter_configs(image, [TopicAlterations("b", [change])], CONFIG)
    assert outcome.image.topics["b"].config == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("topic", "change", "code", "message"),
    [
        ("a", Alteration("segment.ms", "x"), INVALID_CONFIG, "segment.ms = 'x'"),
        ("a", Alteration("segment.m", "1"), INVALID_CONFIG, "Unknown topic config name: segment.m"),
        ("a", Alteration("remote.storage.enable", "true"), INVALID_CONFIG, "tiered storage"),
        ("a", Alteration("segment.ms", "1", AlterOp.APPEND), INVALID_CONFIG, "its type is not LIST"),
        ("a", Alteration("nope", "1", AlterOp.SUBTRACT), INVALID_CONFIG, "its type is not LIST"),
        ("a", Alteration("cleanup.policy", "melt", AlterOp.APPEND), INVALID_CONFIG, "cleanup.policy"),
        ("a", Alteration("segment.ms", None), INVALID_REQUEST, "Null value"),
        ("a", Alteration("segment.ms", "1", 4), INVALID_REQUEST, "4 is not an operation"),
        ("nope", Alteration("segment.ms", "1"), UNKNOWN_TOPIC_OR_PARTITION, "nope"),
        ("nope", Alteration("segment.ms", "x"), INVALID_CONFIG, "segment.ms"),
        ("a b", Alteration("segment.ms", "1"), INVALID_TOPIC, "a b"),
        ("", Alteration("segment.ms", "1"), INVALID_REQUEST, "name one"),
    ],
)
def test_a_wrong_change_of_a_topic_is_refused_and_names_the_reason(
    image: ClusterImage, topic: str, change: Alteration, code: int, message: str
) -> None:
    good = Alteration("flush.ms", "1")
    outcome = alter_configs(image, [TopicAlterations(topic, [good, change])], CONFIG)
    [result] = outcome.results
    assert (result.name, result.error_code) == (topic, code)
    assert message in (result.error_message or "")
    assert outcome.image is image


def test_a_change_that_changes_nothing_keeps_the_image(image: ClusterImage) -> None:
    same: list[Alterations] = [
        TopicAlterations(
            "a", [Alteration("retention.ms", "5"), Alteration("flush.ms", None, AlterOp.DELETE)]
        ),
        BrokerAlterations(None, []),
    ]
    assert alter_configs(image, same, CONFIG).image is image
    other = [TopicAlterations("a", [Alteration("retention.ms", "6")])]
    assert alter_configs(image, other, CONFIG, validate_only=True).image is image


def test_brokers_change_for_one_and_for_all(image: ClusterImage) -> None:
    changes = [
        BrokerAlterations(None, [Alteration("log.retention.ms", "9"), Alteration("max.connections", "3")]),
        BrokerAlterations(1, [Alteration("max.connections", "4")]),
    ]
    after = alter_configs(image, changes, CONFIG).image
    assert after.broker_configs == {
        None: {"log.retention.ms": "9", "max.connections": "3"},
        1: {"max.connections": "4"},
    }
    back = [BrokerAlterations(1, [Alteration("max.connections", None, AlterOp.DELETE)])]
    assert alter_configs(after, back, CONFIG).image.broker_configs == {None: after.broker_configs[None]}


@pytest.mark.parametrize(
    ("node_id", "change", "message"),
    [
        (1, Alteration("num.partitions", "4"), "Cannot update these configs dynamically: num.partitions"),
        (1, Alteration("log.retention.hours", "4"), "log.retention.hours"),
        (1, Alteration("nobody.knows", "4"), "nobody.knows"),
        (1, Alteration("max.connections", "-1"), "max.connections"),
        (None, Alteration("max.connections", " 0"), "would let nobody in"),
        (None, Alteration("max.connections.per.ip", "0"), "would not let 127.0.0.1 in"),
        (1, Alteration("max.connections.per.ip.overrides", "::1:0"), "would not let ::1 in"),
        (1, Alteration("log.cleaner.threads", "1000"), "log.cleaner.dedupe.buffer.size"),
        (None, Alteration("log.segment.bytes", "1"), "log.segment.bytes"),
        (2, Alteration("max.connections", "4"), "This is broker 1"),
    ],
)
def test_a_wrong_change_of_a_broker_is_an_invalid_request(
    image: ClusterImage, node_id: int | None, change: Alteration, message: str
) -> None:
    outcome = alter_configs(image, [BrokerAlterations(node_id, [change])], CONFIG)
    [result] = outcome.results
    assert result.error_code == INVALID_REQUEST
    assert message in (result.error_message or "")
    assert outcome.image is image


def test_what_is_not_a_list_cannot_be_added_to_on_a_broker_either(image: ClusterImage) -> None:
    change = Alteration("log.cleaner.threads", "1", AlterOp.APPEND)
    [result] = alter_configs(image, [BrokerAlterations(1, [change])], CONFIG).results
    assert (result.error_code, "its type is not LIST" in str(result.error_message)) == (INVALID_CONFIG, True)


def test_nothing_is_changed_twice_in_one_request(image: ClusterImage) -> None:
    one, two = (TopicAlterations("a", [Alteration("segment.ms", value)]) for value in "12")
    outcome = alter_configs(image, [one, two], CONFIG)
    assert [result.error_code for result in outcome.results] == [INVALID_REQUEST] * 2
    twice = TopicAlterations("a", [Alteration("segment.ms", "1"), Alteration("segment.ms", "2")])
    assert alter_configs(image, [twice], CONFIG).results[0].error_code == INVALID_REQUEST
