"""Metadata: brokers and topics, by name and by id, in every version, and topics made because somebody asked."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from ottla.api.access import CLUSTER_NAME, NOT_ASKED, Operation, Resource
from ottla.cluster import controller
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.api.conftest import MakeWorld
from tests.api.world import NODE, Refusing, World

VERSIONS = range(14)
ALL_TOPIC_OPERATIONS = 3576  # as Kafka 4.2 lists them where nothing is refused
ALL_CLUSTER_OPERATIONS = 8096


def by_name(*names: str | None, **fields: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def by_id(*ids: uuid.UUID | None, name: str | None = None) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(topic_id=one, name=name) for one in ids])


def codes(topics: Sequence[Any]) -> dict[str, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in topics}


def test_every_version_tells_brokers_topics_and_leaders(world: World) -> None:
    topic_id = world.make_topic("t", 2)
    for version in VERSIONS:
        check_version(world.ask(by_name("t"), version), version, topic_id)


def check_version(answer: Any, version: int, topic_id: uuid.UUID) -> None:
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "host-1", 9091)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name) == (0, "t")
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert topic.topic_id == (topic_id if version >= 10 else None)
    assert broker.rack == ("rack-1" if version >= 1 else None)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == ("cluster-1" if version >= 2 else None)


def test_an_empty_list_asks_for_all_in_v0_and_null_later(world: World) -> None:
    world.make_topic("b")
    world.make_topic("a")

    def names(request: MetadataRequest, version: int) -> list[str]:
        return [topic.name for topic in world.ask(request, version).topics]

    assert names(MetadataRequest(topics=[]), 0) == ["a", "b"]
    for version in VERSIONS[1:]:
        assert names(MetadataRequest(topics=[]), version) == []
        assert names(MetadataRequest(topics=None), version) == ["a", "b"]


def test_operations_are_told_only_if_asked_for(world: World) -> None:
    world.make_topic("t")
    answer = world.ask(by_name("t"), 10)
    assert (answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations) == (
        NOT_ASKED,
        NOT_ASKED,
    )
    request = by_name(
        "t", include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    answer = world.ask(request, 10)
    assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert answer.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS


def test_topics_are_found_by_id(world: World) -> None:
    known, unknown = world.make_topic("t"), uuid.uuid4()
    answer = world.ask(by_id(known, unknown, known))
    assert {t.topic_id: (t.name, t.error_code) for t in answer.topics} == {
        known: ("t", 0),
        unknown: (None, ErrorCode.UNKNOWN_TOPIC_ID),
    }


def test_an_id_counts_where_a_name_is_given_too(world: World) -> None:
    world.make_topic("t")
    (topic,) = world.ask(by_id(uuid.uuid4(), name="t")).topics
    assert (topic.name, topic.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_v12_fail_the_request(world: World, version: int) -> None:
    world.make_topic("t")
    answer = world.ask(by_id(uuid.uuid4(), name="t"), version)
    assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)
    assert codes(answer.topics) == {"t": ErrorCode.INVALID_REQUEST}


def test_a_topic_without_name_and_id_fails_the_request(world: World) -> None:
    answer = world.ask(by_name(None))
    assert codes(answer.topics) == {"": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert answer.brokers == []


def test_missing_and_impossible_topics_have_their_codes(world: World) -> None:
    request = by_name("nope", "a b", "", "x" * 250, "__consumer_offsets", allow_auto_topic_creation=False)
    answer = world.ask(request)
    assert codes(answer.topics) == {
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "x" * 250: ErrorCode.INVALID_TOPIC_EXCEPTION,
        "__consumer_offsets": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [t.name for t in answer.topics if t.is_internal] == ["__consumer_offsets"]
    assert world.image.topics == {}


def test_a_missing_topic_is_made_and_there_the_next_time(make_world: MakeWorld) -> None:
    world = make_world(num_partitions="3")
    for version in VERSIONS:
        name = f"new{version}"
        first = world.ask(by_name(name), version)
        assert codes(first.topics) == {name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        second = world.ask(by_name(name), version)
        assert codes(second.topics) == {name: ErrorCode.NONE}
        assert len(second.topics[0].partitions) == 3


def test_many_who_ask_for_a_missing_topic_make_it_once(make_world: MakeWorld) -> None:
    world = make_world(queued=True)
    answers: list[Any] = []
    for _ in range(5):
        world.call(by_name("new"), 12, answers)
    assert len(answers) == 5
    assert world.services.topics_being_made == {"new"}
    before = world.image.revision
    world.runtime.run_pending()
    assert world.image.revision == before + 1
    assert list(world.image.topics) == ["new"]
    assert world.services.topics_being_made == set()


def test_a_topic_is_not_there_before_its_logs_are(make_world: MakeWorld) -> None:
    world = make_world(queued=True)
    world.call(by_name("new"), 12, [])
    assert world.runtime.run_one()  # the change of the store
    answers: list[Any] = []
    topic_id = world.image.topics["new"].topic_id
    for request in (by_name("new"), by_id(topic_id), MetadataRequest(topics=None)):
        world.call(request, 12, answers)
    assert [[topic.error_code for topic in answer.topics] for answer in answers] == [
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_ID],
        [],
    ]
    world.runtime.run_pending()  # the log
    assert codes(world.ask(by_name("new")).topics) == {"new": ErrorCode.NONE}


def test_a_partition_that_is_added_has_no_leader_before_it_has_a_log(make_world: MakeWorld) -> None:
    world = make_world(queued=True)
    world.make_topic("t", 1)
    count = CreatePartitionsTopic(name="t", count=2)
    world.call(CreatePartitionsRequest(topics=[count], timeout_ms=1000), 3, [])
    assert world.runtime.run_one()  # the change of the store
    answers: list[Any] = []
    world.call(by_name("t"), 12, answers)
    found = [(one.error_code, one.leader_id) for one in answers[0].topics[0].partitions]
    assert found == [(ErrorCode.NONE, NODE), (ErrorCode.LEADER_NOT_AVAILABLE, -1)]


@pytest.mark.parametrize("name", ["a b", "__consumer_offsets"])
def test_impossible_and_internal_topics_are_not_made(world: World, name: str) -> None:
    world.ask(by_name(name))
    assert world.image.topics == {}


def test_a_topic_that_cannot_be_made_is_asked_for_in_vain(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(default_replication_factor="3")
    for _ in range(2):
        assert codes(world.ask(by_name("a", "b")).topics) == {
            "a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
    assert [record.getMessage()[:31] for record in caplog.records] == ["2 topics could not be made; a: "] * 2


def test_topics_are_not_made_where_the_broker_or_the_client_says_no(make_world: MakeWorld) -> None:
    strict = make_world(auto_create_topics_enable="false")
    strict.ask(by_name("new"))
    assert strict.image.topics == {}
    willing = make_world()
    willing.ask(by_name("new", allow_auto_topic_creation=False), 4)
    assert willing.image.topics == {}


def test_a_partition_whose_leader_is_gone_says_so(world: World) -> None:
    world.register(2)
    world.make_topic("t", 2)
    world.change(lambda image: controller.unregister_broker(image, 2))
    led = {p.leader_id: p for p in world.ask(by_name("t")).topics[0].partitions}
    assert set(led) == {1, -1}
    orphan = led[-1]
    assert orphan.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (orphan.replica_nodes, orphan.isr_nodes, orphan.offline_replicas) == ([2], [2], [2])
    (oldest,) = [p for p in world.ask(by_name("t"), 0).topics[0].partitions if p.leader_id == -1]
    assert (oldest.replica_nodes, oldest.isr_nodes) == ([], [])


def test_a_topic_that_the_client_may_not_see_does_not_exist_for_it(world: World) -> None:
    topic_id = world.make_topic("secret")
    world.make_topic("open")
    world.services.authorizer = Refusing((Operation.DESCRIBE, Resource.TOPIC, "secret"))
    assert codes(world.ask(MetadataRequest(topics=None)).topics) == {"open": ErrorCode.NONE}
    named = world.ask(by_name("secret")).topics
    assert codes(named) == {"secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert named[0].topic_id is None
    (hidden,) = world.ask(by_id(topic_id)).topics
    assert (hidden.name, hidden.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_client_that_may_not_create_makes_no_topic(world: World) -> None:
    world.services.authorizer = Refusing(
        (Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME), (Operation.CREATE, Resource.TOPIC, "new")
    )
    assert codes(world.ask(by_name("new")).topics) == {"new": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert world.image.topics == {}
