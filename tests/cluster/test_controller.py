"""Topics and brokers: what is made, what is refused with which of Kafka's errors, and what stays as it was."""

from __future__ import annotations

import base64
import dataclasses
import random
import uuid

import pytest

from ottla.cluster.controller import (
    DoomedTopic,
    MorePartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    random_topic_id,
    register_broker,
    unregister_broker,
)
from ottla.cluster.image import ClusterImage
from ottla.config import BrokerConfig
from tests.cluster.making import CONFIG, broker, cluster, make

NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
POLICY_VIOLATION = 44
TOPIC_DELETION_DISABLED = 73
UNKNOWN_TOPIC_ID = 100
BROKER_ID_NOT_REGISTERED = 102


def created(
    image: ClusterImage, *topics: NewTopic, validate_only: bool = False
) -> tuple[ClusterImage, list[int]]:
    outcome = create_topics(image, topics, CONFIG, random.Random(1).randrange, validate_only=validate_only)
    assert all(result.ok == (result.error_message is None) for result in outcome.results)
    return outcome.image, [result.error_code for result in outcome.results]


# -- making topics


def test_a_topic_gets_the_brokers_defaults_an_id_and_its_settings() -> None:
    outcome = make(NewTopic("orders", config={"retention.ms": "5"}))(cluster())
    [result] = outcome.results
    topic = outcome.image.topics["orders"]
    assert result.topic is topic
    assert (result.name, result.topic_id, result.ok) == ("orders", topic.topic_id, True)
    assert [p.leader for p in topic.partitions] == [1, 1]
    assert topic.partitions[0].replicas == topic.partitions[0].isr == (1,)
    assert topic.config == {"retention.ms": "5"}
    assert outcome.image.topic_by_id(topic.topic_id) is topic
    assert topic.topic_id.version == 4


def test_partitions_go_to_the_brokers_that_have_the_fewest() -> None:
    image = make(NewTopic("a", 4))(cluster(1, 2, 3)).image
    assert sorted(p.leader for p in image.topics["a"].partitions) == [1, 1, 2, 3]
    image = make(NewTopic("b", 5))(image).image
    leaders = [p.leader for topic in image.topics.values() for p in topic.partitions]
    assert sorted(leaders.count(node_id) for node_id in (1, 2, 3)) == [3, 3, 3]


def test_partitions_lie_where_they_are_assigned() -> None:
    image, codes = created(cluster(1, 2), NewTopic("a", assignments=[(1, [1]), (0, [2])]))
    assert codes == [NONE]
    assert [p.replicas for p in image.topics["a"].partitions] == [(2,), (1,)]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic(""), INVALID_TOPIC),
        (NewTopic("."), INVALID_TOPIC),
        (NewTopic(".."), INVALID_TOPIC),
        (NewTopic("a b"), INVALID_TOPIC),
        (NewTopic("ä"), INVALID_TOPIC),
        (NewTopic("a" * 250), INVALID_TOPIC),
        (NewTopic("a" * 249), NONE),
        (NewTopic("__cluster_metadata"), INVALID_REQUEST),
        (NewTopic("there"), TOPIC_ALREADY_EXISTS),
        (NewTopic("there", 0), TOPIC_ALREADY_EXISTS),
        (NewTopic("is.there"), INVALID_TOPIC),  # collides with is_there
        (NewTopic("is_there"), TOPIC_ALREADY_EXISTS),
        (NewTopic("is-there"), NONE),
        (NewTopic("a", 0), INVALID_PARTITIONS),
        (NewTopic("a", -2), INVALID_PARTITIONS),
        (NewTopic("a", 0, 0), INVALID_REPLICATION_FACTOR),
        (NewTopic("a", 0, config={"nope": "1"}), INVALID_CONFIG),
        (NewTopic("a", 9_998), NONE),
        (NewTopic("a", 10_001), POLICY_VIOLATION),
        (NewTopic("a", 2**31 - 1), POLICY_VIOLATION),
        (NewTopic("a", replication_factor=1), NONE),
        (NewTopic("a", replication_factor=0), INVALID_REPLICATION_FACTOR),
        (NewTopic("a", replication_factor=-2), INVALID_REPLICATION_FACTOR),
        (NewTopic("a", replication_factor=2), INVALID_REPLICATION_FACTOR),
        (NewTopic("a", replication_factor=3), INVALID_REPLICATION_FACTOR),
        (NewTopic("a", 1, assignments=[(0, [1])]), INVALID_REQUEST),
        (NewTopic("a", -1, 1, assignments=[(0, [1])]), INVALID_REQUEST),
        (NewTopic("a", assignments=[(1, [1])]), INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [1]), (0, [1])]), INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [])]), INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [1, 1])]), INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [3])]), INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [1]), (1, [1, 2])]), INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [1, 2])]), INVALID_REPLICATION_FACTOR),
        (NewTopic("a", config={"retention.ms": "x"}), INVALID_CONFIG),
        (NewTopic("a", config={"retention.ms": None}), INVALID_CONFIG),
        (NewTopic("a", config={"retention.m": "1"}), INVALID_CONFIG),
        (NewTopic("a", config={"remote.storage.enable": "true"}), INVALID_CONFIG),
    ],
    ids=str,
)
def test_a_topic_is_checked_as_kafka_does_and_others_of_the_request_are_made(
    topic: NewTopic, code: int
) -> None:
    image = make("there", "is_there")(cluster(1, 2)).image
    after, [found] = created(image, topic)
    assert found == code
    assert (topic.name in after.topics) == (code in (NONE, TOPIC_ALREADY_EXISTS))
    if code != POLICY_VIOLATION:
        after, codes = created(image, topic, NewTopic("other"))
        assert codes == [code, NONE]
        assert "other" in after.topics
        assert after.topics["there"] is image.topics["there"]


def test_a_name_that_comes_twice_is_refused_once() -> None:
    image, codes = created(cluster(), NewTopic("a"), NewTopic("b"), NewTopic("a", 3))
    assert codes == [INVALID_REQUEST, NONE]
    assert list(image.topics) == ["b"]


def test_too_many_partitions_are_too_many_over_all_topics_of_a_request() -> None:
    image, codes = created(cluster(), NewTopic("a", 6000), NewTopic("b", 4001))
    assert codes == [POLICY_VIOLATION] * 2
    assert not image.topics


def test_nothing_changes_where_only_a_check_was_asked_for() -> None:
    image = cluster()
    outcome = create_topics(
        image, [NewTopic("a"), NewTopic("a.a")], CONFIG, random.Random(1).randrange, validate_only=True
    )
    assert outcome.image is image
    assert [len(result.topic.partitions) for result in outcome.results if result.topic] == [2, 2]


def test_a_cluster_without_brokers_can_hold_no_topic() -> None:
    assert created(ClusterImage("empty"), NewTopic("a"))[1] == [INVALID_REPLICATION_FACTOR]


def test_the_default_replication_factor_is_the_brokers() -> None:
    config = BrokerConfig.from_properties({"default.replication.factor": "2"})
    outcome = create_topics(cluster(1, 2), [NewTopic("a")], config, random.Random(1).randrange)
    assert outcome.results[0].error_code == INVALID_REPLICATION_FACTOR


def test_an_id_never_begins_with_a_dash() -> None:
    numbers = [0xF8 << 120, 0xFB << 120, 0xFC << 120]
    topic_id = random_topic_id(lambda stop: numbers.pop(0))
    assert numbers == []
    assert not base64.urlsafe_b64encode(topic_id.bytes).startswith(b"-")
    assert topic_id not in (uuid.UUID(int=0), uuid.UUID(int=1))


# -- more partitions


def test_partitions_are_added_behind_those_that_are_there() -> None:
    image = make(NewTopic("a", 2))(cluster(1, 2)).image
    outcome = create_partitions(image, [MorePartitions("a", 4), MorePartitions("b", 4)])
    assert [result.error_code for result in outcome.results] == [NONE, UNKNOWN_TOPIC_OR_PARTITION]
    after = outcome.image.topics["a"]
    assert after.partitions[:2] == image.topics["a"].partitions
    assert len(after.partitions) == 4
    assert after.topic_id == image.topics["a"].topic_id


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (MorePartitions("a", 2), INVALID_PARTITIONS),
        (MorePartitions("a", 1), INVALID_PARTITIONS),
        (MorePartitions("a", -1), INVALID_PARTITIONS),
        (MorePartitions("a", 10_003), POLICY_VIOLATION),
        (MorePartitions("nope", 3), UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("a", 3, [[1]]), NONE),
        (MorePartitions("a", 3, []), INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("a", 3, [[1], [1]]), INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("a", 3, [[7]]), INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("a", 3, [[]]), INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
def test_a_wrong_number_of_partitions_is_refused(more: MorePartitions, code: int) -> None:
    image = make(NewTopic("a", 2))(cluster()).image
    outcome = create_partitions(image, [more])
    assert [result.error_code for result in outcome.results] == [code]
    assert (outcome.image is image) == (code != NONE)
    assert create_partitions(image, [more], validate_only=True).image is image


def test_a_topic_that_is_to_grow_twice_in_one_request_does_not() -> None:
    image = make("a")(cluster()).image
    outcome = create_partitions(image, [MorePartitions("a", 3), MorePartitions("a", 4)])
    assert [result.error_code for result in outcome.results] == [INVALID_REQUEST]
    assert outcome.image is image


# -- deleting topics


def test_topics_are_deleted_by_name_and_by_id() -> None:
    image = make("a", "b", "c")(cluster()).image
    ids = {name: topic.topic_id for name, topic in image.topics.items()}
    outcome = delete_topics(image, [DoomedTopic("a"), DoomedTopic(topic_id=ids["b"])], CONFIG)
    assert [(r.name, r.topic_id, r.error_code) for r in outcome.results] == [
        ("a", ids["a"], 0),
        ("b", ids["b"], 0),
    ]
    assert list(outcome.image.topics) == ["c"]
    assert outcome.image.topic_names == {ids["c"]: "c"}


def test_a_topic_that_cannot_be_deleted_says_why() -> None:
    image = make("a", "b")(cluster()).image
    a_id, stranger = image.topics["a"].topic_id, uuid.UUID(int=5)
    cases = [
        ([DoomedTopic("nope")], [UNKNOWN_TOPIC_OR_PARTITION]),
        ([DoomedTopic(topic_id=stranger)], [UNKNOWN_TOPIC_ID]),
        ([DoomedTopic()], [INVALID_REQUEST]),
        ([DoomedTopic("a", a_id)], [INVALID_REQUEST]),
        ([DoomedTopic("a"), DoomedTopic("a")], [INVALID_REQUEST]),
        ([DoomedTopic("nope"), DoomedTopic("nope")], [INVALID_REQUEST]),
        ([DoomedTopic(topic_id=a_id), DoomedTopic(topic_id=a_id)], [INVALID_REQUEST]),
        ([DoomedTopic("a"), DoomedTopic(topic_id=a_id)], [INVALID_REQUEST]),
    ]
    for doomed, codes in cases:
        outcome = delete_topics(image, doomed, CONFIG)
        assert [result.error_code for result in outcome.results] == codes, doomed
        assert outcome.image is image
    outcome = delete_topics(image, [DoomedTopic("nope"), DoomedTopic("b")], CONFIG)
    assert list(outcome.image.topics) == ["a"]


def test_topics_stay_where_deleting_is_turned_off() -> None:
    image = make("a")(cluster()).image
    fixed = dataclasses.replace(CONFIG, delete_topic_enable=False)
    outcome = delete_topics(image, [DoomedTopic("a")], fixed)
    assert (outcome.image, outcome.results[0].error_code) == (image, TOPIC_DELETION_DISABLED)


# -- brokers


def test_each_registration_has_a_higher_epoch() -> None:
    image = dataclasses.replace(cluster(1), revision=7)
    first = register_broker(image, broker(2), clean=True).image
    assert first.brokers[2].epoch == 8
    gone = unregister_broker(dataclasses.replace(first, revision=8), 2).image
    again = register_broker(dataclasses.replace(gone, revision=9), broker(2), clean=True).image
    assert again.brokers[2].epoch == 10


def test_leader_epochs_grow_only_where_records_may_be_lost() -> None:
    image = make(NewTopic("a", assignments=[(0, [1]), (1, [2])]))(cluster(1, 2)).image
    assert register_broker(image, broker(1), clean=True).image.topics == image.topics
    after = register_broker(image, broker(1), clean=False).image.topics["a"]
    assert [(p.leader, p.leader_epoch, p.partition_epoch) for p in after.partitions] == [(1, 1, 1), (2, 0, 0)]


def test_what_a_broker_led_has_no_leader_until_it_comes_back() -> None:
    image = make(NewTopic("a", assignments=[(0, [1]), (1, [2])]))(cluster(1, 2)).image
    gone = unregister_broker(image, 1).image
    assert [p.leader for p in gone.topics["a"].partitions] == [-1, 2]
    assert (gone.controller_id, list(gone.brokers)) == (2, [2])
    back = register_broker(gone, broker(1), clean=True).image
    assert [(p.leader, p.leader_epoch) for p in back.topics["a"].partitions] == [(1, 2), (2, 0)]
    outcome = unregister_broker(gone, 1)
    assert (outcome.image, outcome.results[0].error_code) == (gone, BROKER_ID_NOT_REGISTERED)
