"""CreateTopics, DeleteTopics and CreatePartitions: what each version takes and tells, and that writes are taken."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.api.conftest import MakeWorld
from tests.api.world import NOTHING, Refusing, World

DEFAULT, STATIC, TOPIC = 5, 4, 1  # Kafka's numbers for where a setting comes from


def new(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **fields)


def create(*topics: CreatableTopic, **fields: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **fields)


def codes(results: Sequence[Any]) -> dict[str, ErrorCode]:
    return {result.name: ErrorCode(result.error_code) for result in results}


# -- CreateTopics


def test_every_version_creates_topics_that_take_writes(world: World) -> None:
    for version in range(2, 8):
        name = f"t{version}"
        (topic,) = world.ask(create(new(name, 2)), version).topics
        assert (topic.name, topic.error_code, topic.error_message) == (name, 0, None)
        assert world.append(name, 1).error_code == 0
        assert topic.num_partitions == (2 if version >= 5 else -1)
        assert topic.replication_factor == (1 if version >= 5 else -1)
        assert topic.topic_id == (world.image.topics[name].topic_id if version >= 7 else None)


def test_a_topic_whose_log_could_not_be_made_is_no_success(make_world: MakeWorld) -> None:
    world = make_world(dirs=2)
    for directory in world.config.log_dirs:
        Path(directory, "t-0").symlink_to("/nowhere")  # a name that is taken
    (topic,) = world.ask(create(new("t"))).topics
    assert topic.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t-0" in topic.error_message
    (topic,) = world.ask(create(new("u"))).topics
    assert topic.error_code == 0
    for directory in world.config.log_dirs:
        Path(directory, "u-1").symlink_to("/nowhere")
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="u", count=2, assignments=None)])
    assert codes(world.ask(more).results) == {"u": ErrorCode.KAFKA_STORAGE_ERROR}


def test_the_answer_comes_when_the_partitions_are_there(make_world: MakeWorld) -> None:
    world = make_world(queued=True)
    answers: list[Any] = []
    world.call(create(new("t")), 7, answers)
    assert not answers
    world.runtime.run_pending()
    assert codes(answers[0].topics) == {"t": ErrorCode.NONE}
    assert world.append("t").error_code == 0


def test_numbers_of_minus_one_are_the_brokers_defaults(make_world: MakeWorld) -> None:
    world = make_world(num_partitions="4")
    (topic,) = world.ask(create(new("t", -1, -1))).topics
    assert (topic.num_partitions, topic.replication_factor) == (4, 1)


def test_a_new_topic_is_answered_with_all_its_settings(make_world: MakeWorld) -> None:
    world = make_world(log_segment_bytes="2000000")
    config = [CreatableTopicConfig(name="retention.ms", value="1000")]
    (topic,) = world.ask(create(new("t", configs=config))).topics
    settings = {one.name: (one.value, one.config_source) for one in topic.configs}
    assert settings["retention.ms"] == ("1000", TOPIC)
    assert settings["segment.bytes"] == ("2000000", STATIC)
    assert settings["cleanup.policy"] == ("delete", DEFAULT)
    assert list(settings) == sorted(settings)
    assert not any(one.read_only or one.is_sensitive for one in topic.configs)


def test_validate_only_tells_the_same_and_makes_nothing(world: World) -> None:
    config = [CreatableTopicConfig(name="retention.ms", value="1000")]
    (topic,) = world.ask(create(new("t", 3, configs=config), validate_only=True)).topics
    assert (topic.error_code, topic.num_partitions) == (0, 3)
    assert topic.topic_id is not None
    assert ("retention.ms", "1000") in [(one.name, one.value) for one in topic.configs]
    assert world.image.topics == {}


def test_what_is_wrong_is_refused_topic_by_topic(world: World) -> None:
    world.make_topic("there")
    assigned = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    nowhere = [CreatableReplicaAssignment(partition_index=0, broker_ids=[9])]
    bad_config = [CreatableTopicConfig(name="nope", value="1")]
    answer = world.ask(
        create(
            new("good"),
            new("there"),
            new("a b"),
            new("twice"),
            new("twice"),
            new("none", 0),
            new("copies", 1, 2),
            new("both", 1, 1, assignments=assigned),
            new("assigned", -1, -1, assignments=assigned),
            new("nowhere", -1, -1, assignments=nowhere),
            new("config", configs=bad_config),
        )
    )
    assert codes(answer.topics) == {
        "good": ErrorCode.NONE,
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
        "none": ErrorCode.INVALID_PARTITIONS,
        "copies": ErrorCode.INVALID_REPLICATION_FACTOR,
        "both": ErrorCode.INVALID_REQUEST,
        "assigned": ErrorCode.NONE,
        "nowhere": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "config": ErrorCode.INVALID_CONFIG,
    }
    assert set(world.image.topics) == {"there", "good", "assigned"}
    refused = next(topic for topic in answer.topics if topic.name == "there")
    assert (refused.topic_id, refused.num_partitions, refused.replication_factor, refused.configs) == (
        None, -1, -1, [],
    )  # fmt: skip
    assert all(topic.error_message for topic in answer.topics if topic.error_code)


def test_a_client_needs_create_on_the_topic_or_the_cluster(world: World) -> None:
    no_cluster = (Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
    world.services.authorizer = Refusing(no_cluster, (Operation.CREATE, Resource.TOPIC, "no"))
    answer = world.ask(create(new("yes"), new("no")))
    assert codes(answer.topics) == {"yes": ErrorCode.NONE, "no": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    world.services.authorizer = Refusing((Operation.CREATE, Resource.TOPIC, "no"))
    assert codes(world.ask(create(new("no"))).topics) == {"no": ErrorCode.NONE}


def test_settings_are_kept_from_a_client_that_may_not_see_them(world: World) -> None:
    world.services.authorizer = Refusing((Operation.DESCRIBE_CONFIGS, Resource.TOPIC, "t"))
    (topic,) = world.ask(create(new("t", 2))).topics
    assert topic.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (topic.error_code, topic.num_partitions, topic.configs) == (0, -1, [])


def test_a_store_that_fails_fails_every_topic(world: World) -> None:
    world.metadata.close(lambda: None)
    answer = world.ask(create(new("a"), new("b")))
    assert codes(answer.topics) == {
        "a": ErrorCode.UNKNOWN_SERVER_ERROR,
        "b": ErrorCode.UNKNOWN_SERVER_ERROR,
    }


# -- DeleteTopics


def test_every_version_deletes_by_name(world: World) -> None:
    for version in range(1, 7):
        topic_id = world.make_topic("t")
        request = (
            DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in ("t", "nope")])
            if version >= 6
            else DeleteTopicsRequest(topic_names=["t", "nope"])
        )
        answer = world.ask(request, version)
        assert codes(answer.responses) == {
            "t": ErrorCode.NONE,
            "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert world.image.topics == {}
        deleted, missing = answer.responses
        assert deleted.topic_id == (topic_id if version >= 6 else None)
        assert deleted.error_message is None
        assert (missing.error_message is not None) == (version >= 5)
        assert world.append("t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_deleted_by_id(world: World) -> None:
    known, unknown = world.make_topic("t"), uuid.uuid4()
    answer = world.ask(
        DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=known), DeleteTopicState(topic_id=unknown)])
    )
    assert [(r.name, r.topic_id, r.error_code) for r in answer.responses] == [
        ("t", known, 0),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(("version", "code"), [(2, "INVALID_REQUEST"), (3, "TOPIC_DELETION_DISABLED")])
def test_deletion_can_be_off(make_world: MakeWorld, version: int, code: str) -> None:
    world = make_world(delete_topic_enable="false")
    world.make_topic("t")
    answer = world.ask(DeleteTopicsRequest(topic_names=["t"]), version)
    assert codes(answer.responses) == {"t": ErrorCode[code]}
    assert set(world.image.topics) == {"t"}


def test_a_client_without_delete_is_refused_and_learns_only_names_it_may_see(world: World) -> None:
    shown, hidden = world.make_topic("shown"), world.make_topic("hidden")
    world.services.authorizer = Refusing(
        (Operation.DELETE, Resource.TOPIC, "shown"),
        (Operation.DELETE, Resource.TOPIC, "hidden"),
        (Operation.DESCRIBE, Resource.TOPIC, "hidden"),
    )
    answer = world.ask(
        DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=shown), DeleteTopicState(topic_id=hidden)])
    )
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [(r.name, r.error_code) for r in answer.responses] == [("shown", refused), (None, refused)]
    assert set(world.image.topics) == {"shown", "hidden"}


# -- CreatePartitions


def grow(*topics: CreatePartitionsTopic, **fields: Any) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), **fields)


def test_every_version_adds_partitions_that_take_writes(world: World) -> None:
    world.make_topic("t")
    for version in range(4):
        count = version + 2
        (result,) = world.ask(grow(CreatePartitionsTopic(name="t", count=count)), version).results
        assert (result.error_code, result.error_message) == (0, None)
        assert world.append("t", count - 1).error_code == 0
        assert len(world.image.topics["t"].partitions) == count


def test_partitions_never_become_fewer_and_unknown_topics_have_none(world: World) -> None:
    world.make_topic("t", 2)
    answer = world.ask(
        grow(CreatePartitionsTopic(name="t", count=2), CreatePartitionsTopic(name="nope", count=2))
    )
    assert codes(answer.results) == {
        "t": ErrorCode.INVALID_PARTITIONS,
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    messages = {result.name: result.error_message for result in answer.results}
    assert messages["t"]
    assert messages["nope"] is None


def test_new_partitions_can_be_assigned(world: World) -> None:
    world.make_topic("t")
    here = [CreatePartitionsAssignment(broker_ids=[1])]
    assert codes(world.ask(grow(CreatePartitionsTopic(name="t", count=3, assignments=here))).results) == {
        "t": ErrorCode.INVALID_REPLICA_ASSIGNMENT
    }
    assert codes(world.ask(grow(CreatePartitionsTopic(name="t", count=2, assignments=here))).results) == {
        "t": ErrorCode.NONE
    }


def test_validate_only_adds_nothing(world: World) -> None:
    world.make_topic("t")
    answer = world.ask(grow(CreatePartitionsTopic(name="t", count=5), validate_only=True))
    assert codes(answer.results) == {"t": ErrorCode.NONE}
    assert len(world.image.topics["t"].partitions) == 1


def test_a_client_without_alter_adds_nothing(world: World) -> None:
    world.make_topic("t")
    world.services.authorizer = Refusing((Operation.ALTER, Resource.TOPIC, "t"))
    answer = world.ask(grow(CreatePartitionsTopic(name="t", count=5)))
    assert answer is not NOTHING
    assert codes(answer.results) == {"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert len(world.image.topics["t"].partitions) == 1
