"""Committed offsets: who may commit, what is kept, for how long."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from ottla.api.access import Operation, Resource
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.result import CommandResult, Producer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.records.control import Marker
from tests.api.world import Refusing, World
from tests.coordinator.conftest import MakeWorld
from tests.coordinator.grouping import GROUP, SESSION_MS, Consumer, commit, committed, settle

MINUTE_MS = 60_000
PRODUCER = Producer(7, 0)


def offsets(world: World, group: str, *partitions: int, **fields: Any) -> list[int]:
    return [entry.committed_offset for entry in committed(world, group, *partitions, **fields)]


def pass_time(world: World, ms: int) -> None:
    world.runtime.advance(ms)
    world.runtime.run_pending()


def test_an_offset_is_fetched_as_it_was_committed_also_after_a_restart(world: World) -> None:
    assert commit(world, GROUP, 12, 1, epoch=4, metadata="so far") == 0
    for _ in range(2):
        first, second = committed(world, GROUP, 0, 1)
        assert (first.committed_offset, first.committed_leader_epoch, first.metadata) == (-1, -1, "")
        assert (second.committed_offset, second.committed_leader_epoch, second.metadata) == (12, 4, "so far")
        assert [entry.partition_index for entry in committed(world, GROUP)] == [1]
        world.restart()


def test_the_group_may_have_no_name_when_offsets_are_all_it_keeps(world: World) -> None:
    assert commit(world, "", 5) == 0
    assert offsets(world, "", 0) == [5]


def test_a_group_that_is_not_there_has_no_offsets(world: World) -> None:
    assert offsets(world, "nothing", 0, 1) == [-1, -1]
    assert committed(world, "nothing") == []


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed_in_every_version(world: World, version: int) -> None:
    topic_id = world.image.topics["t"].topic_id
    topic = OffsetCommitRequestTopic(
        name="t" if version < 10 else "",
        topic_id=topic_id if version >= 10 else None,
        partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=version)],
    )
    answer = world.ask(OffsetCommitRequest(group_id=GROUP, topics=[topic]), version)
    assert answer.topics[0].partitions[0].error_code == 0
    assert offsets(world, GROUP, 0) == [version]


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_fetched_in_every_version(world: World, version: int) -> None:
    commit(world, GROUP, 7, 2)
    topic_id = world.image.topics["t"].topic_id
    if version < 8:
        topic = OffsetFetchRequestTopic(name="t", partition_indexes=[2])
        answer = world.ask(OffsetFetchRequest(group_id=GROUP, topics=[topic]), version)
    else:
        topics = OffsetFetchRequestTopics(
            name="t" if version < 10 else "",
            topic_id=topic_id if version >= 10 else None,
            partition_indexes=[2],
        )
        groups = [OffsetFetchRequestGroup(group_id=name, topics=[topics]) for name in (GROUP, "other")]
        answer, other = world.ask(OffsetFetchRequest(groups=groups), version).groups
        assert other.topics[0].partitions[0].committed_offset == -1
    assert (answer.error_code, answer.topics[0].partitions[0].committed_offset) == (0, 7)


def test_all_offsets_of_a_group_are_fetched_by_topic_id(world: World) -> None:
    commit(world, GROUP, 7, 2)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    (topic,) = world.ask(request, 10).groups[0].topics
    assert topic.topic_id == world.image.topics["t"].topic_id
    assert [entry.committed_offset for entry in topic.partitions] == [7]


def test_unknown_topics_and_partitions_are_told_apart_from_the_rest(world: World) -> None:
    assert commit(world, GROUP, 1, 3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(world, GROUP, 1, topic="nothing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [
        OffsetCommitRequestTopic(topic_id=uuid.uuid4(), partitions=[partition]),
        OffsetCommitRequestTopic(topic_id=world.image.topics["t"].topic_id, partitions=[partition]),
    ]
    answer = world.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 10)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID, 0]


def test_metadata_that_is_too_long_is_refused(make_world: MakeWorld) -> None:
    world = make_world(offset_metadata_max_bytes="5")
    assert commit(world, GROUP, 1, metadata="123456") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(world, GROUP, 1, metadata="12345") == 0


def test_who_may_not_read_a_group_or_topic_commits_nothing(world: World) -> None:
    world.services.authorizer = Refusing((Operation.READ, Resource.GROUP, GROUP))
    assert commit(world, GROUP, 1) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    world.services.authorizer = Refusing((Operation.READ, Resource.TOPIC, "t"))
    assert commit(world, GROUP, 1) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


# -- members


def test_only_members_of_the_generation_commit_to_a_group_in_use(world: World) -> None:
    consumer = Consumer(world)
    settle(consumer)
    assert consumer.commit(1) == 0
    consumer.generation = 0
    assert consumer.commit(2) == ErrorCode.ILLEGAL_GENERATION
    assert commit(world, GROUP, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert offsets(world, GROUP, 0) == [1]
    consumer.generation = 1
    consumer.leave()
    assert commit(world, GROUP, 3) == 0


def test_a_commit_during_a_rebalance_counts_until_the_next_generation_begins(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first)
    joining = second.begin_join()
    assert first.commit(1) == 0
    again = first.begin_join()
    first.take_join(again)
    second.take_join(joining)
    assert first.commit(2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_of_a_member_to_no_group_is_refused_by_version(world: World) -> None:
    fields: dict[str, Any] = {"generation_id_or_member_epoch": 3, "member_id": "m"}
    assert commit(world, "nothing", 1, version=8, **fields) == ErrorCode.ILLEGAL_GENERATION
    assert commit(world, "nothing", 1, version=9, **fields) == ErrorCode.GROUP_ID_NOT_FOUND


# -- deleting and forgetting


def delete(world: World, *partitions: int, topic: str = "t") -> Any:
    entries = [OffsetDeleteRequestPartition(partition_index=number) for number in partitions]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=entries)]
    return world.ask(OffsetDeleteRequest(group_id=GROUP, topics=topics))


def test_offsets_are_deleted_of_topics_that_nobody_reads(world: World) -> None:
    world.make_topic("u")
    consumer = Consumer(world)
    assert delete(world, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    settle(consumer)
    consumer.commit(1)
    consumer.commit(1, topic="u")
    codes = [entry.error_code for entry in delete(world, 0, 9).topics[0].partitions]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert delete(world, 0, topic="u").topics[0].partitions[0].error_code == 0
    assert (offsets(world, GROUP, 0), offsets(world, GROUP, 0, topic="u")) == ([1], [-1])
    consumer.leave()
    assert delete(world, 0).topics[0].partitions[0].error_code == 0
    world.restart()
    assert offsets(world, GROUP, 0) == [-1]


def test_a_group_that_is_no_consumers_keeps_its_offsets_while_it_is_in_use(world: World) -> None:
    settle(Consumer(world, protocol_type="connect"))
    assert delete(world, 0).error_code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_go_with_their_topic(world: World) -> None:
    commit(world, GROUP, 5)
    world.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
    world.make_topic("t", 3)
    assert offsets(world, GROUP, 0) == [-1]
    world.restart()
    assert offsets(world, GROUP, 0) == [-1]


@pytest.fixture
def short(make_world: MakeWorld) -> World:
    """A broker that keeps offsets for ten minutes only, and looks every minute."""
    return make_world(offsets_retention_minutes="10", offsets_retention_check_interval_ms=str(MINUTE_MS))


def group_is_known(world: World) -> bool:
    return any(GROUP in state.groups for state in world.services.groups.states())


def test_offsets_of_a_simple_consumer_expire_after_the_last_commit(short: World) -> None:
    commit(short, GROUP, 5, 0)
    pass_time(short, 2 * MINUTE_MS)
    commit(short, GROUP, 5, 1)
    pass_time(short, 9 * MINUTE_MS)
    assert offsets(short, GROUP, 0, 1) == [-1, 5]
    pass_time(short, 2 * MINUTE_MS)
    assert offsets(short, GROUP, 0, 1) == [-1, -1]
    assert not group_is_known(short)


def test_offsets_of_a_group_expire_once_it_has_been_empty_for_long(short: World) -> None:
    consumer = Consumer(short)
    settle(consumer)
    consumer.commit(5)
    for _ in range(12 * 6):
        pass_time(short, SESSION_MS - 1)
        assert consumer.heartbeat() == 0
    assert offsets(short, GROUP, 0) == [5]
    consumer.leave()
    pass_time(short, 9 * MINUTE_MS)
    assert offsets(short, GROUP, 0) == [5]
    pass_time(short, 2 * MINUTE_MS)
    assert offsets(short, GROUP, 0) == [-1]
    short.restart()
    assert not group_is_known(short)


def test_offsets_of_topics_that_a_group_has_left_expire_while_it_works(short: World) -> None:
    short.make_topic("u")
    consumer = Consumer(short)
    settle(consumer)
    consumer.commit(5)
    consumer.commit(5, topic="u")
    for _ in range(12 * 6):
        pass_time(short, SESSION_MS - 1)
        assert consumer.heartbeat() == 0
    assert (offsets(short, GROUP, 0), offsets(short, GROUP, 0, topic="u")) == ([5], [-1])


def test_an_old_client_sets_its_own_expiry(short: World) -> None:
    assert commit(short, GROUP, 5, version=4, retention_time_ms=20 * MINUTE_MS) == 0
    short.restart()
    pass_time(short, 19 * MINUTE_MS)
    assert offsets(short, GROUP, 0) == [5]
    pass_time(short, 2 * MINUTE_MS)
    assert offsets(short, GROUP, 0) == [-1]


# -- transactions


def txn_commit(world: World, offset: int, producer: Producer = PRODUCER, **fields: Any) -> Any:
    request = TxnOffsetCommitRequest(
        group_id=GROUP, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, **fields
    )
    answers: list[Any] = []

    def command(state: GroupState, now_ms: int) -> CommandResult[Any]:
        return state.txn_offset_commit(request, [("t", None, [(0, offset, -1, "")])], now_ms)

    world.services.groups.run(GROUP, command, lambda codes, error: answers.append(error or codes))
    world.runtime.run_pending()
    return answers[0]


def end_txn(world: World, *, committed: bool, producer: Producer = PRODUCER) -> None:
    told: list[Any] = []
    groups = world.services.groups
    groups.end_txn(
        groups.partition_of(GROUP), producer, Marker(not committed, 0), lambda *answer: told.append(answer)
    )
    world.runtime.run_pending()
    assert told == [(None, None)]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("ends_well", [False, True])
def test_offsets_of_a_transaction_count_when_it_is_committed(
    world: World, ends_well: bool, restart: bool
) -> None:
    commit(world, GROUP, 1)
    assert txn_commit(world, 5) == {}
    if restart:
        world.restart()
    assert offsets(world, GROUP, 0) == [1]
    (unstable,) = committed(world, GROUP, 0, require_stable=True)
    assert (unstable.error_code, unstable.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    end_txn(world, committed=ends_well)
    assert offsets(world, GROUP, 0, require_stable=True) == [5 if ends_well else 1]
    world.restart()
    assert offsets(world, GROUP, 0, require_stable=True) == [5 if ends_well else 1]


def test_a_later_commit_is_not_undone_by_a_transaction_that_began_before(world: World) -> None:
    txn_commit(world, 5)
    commit(world, GROUP, 9)
    end_txn(world, committed=True)
    assert offsets(world, GROUP, 0) == [9]
    world.restart()
    assert offsets(world, GROUP, 0) == [9]


def test_a_transaction_is_bound_to_the_generation_if_it_names_one(world: World) -> None:
    consumer = Consumer(world)
    assert txn_commit(world, 1, generation_id=3, member_id="m").code == ErrorCode.ILLEGAL_GENERATION
    settle(consumer)
    assert txn_commit(world, 1) == {}
    names: dict[str, Any] = {"member_id": consumer.member_id, "generation_id": 1}
    assert txn_commit(world, 2, **names) == {}
    assert txn_commit(world, 3, **{**names, "generation_id": 0}).code == ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(world, 3, member_id="m", generation_id=1).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_fenced_producer_commits_nothing(world: World) -> None:
    txn_commit(world, 5, Producer(7, 2))
    assert txn_commit(world, 6, Producer(7, 1)).code == ErrorCode.INVALID_PRODUCER_EPOCH
    end_txn(world, committed=True, producer=Producer(7, 2))
    assert offsets(world, GROUP, 0) == [5]


def test_offsets_with_an_open_transaction_do_not_expire(short: World) -> None:
    commit(short, GROUP, 1)
    txn_commit(short, 5)
    pass_time(short, 30 * MINUTE_MS)
    assert offsets(short, GROUP, 0) == [1]
