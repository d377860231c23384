"""A request that is done in pieces is answered as the whole would be."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.api import registry
from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call
from ottla.api.pieces import cut_of, in_pieces, joined, max_elements, portions
from ottla.names import TopicPartition
from ottla.protocol import frame
from ottla.protocol.codec import MAX_ELEMENTS, slow_decoder
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.testing.runtime import START_MS
from tests.api.world import Client, World
from tests.server.wire import records

TOPICS = {"a": 3, "b": 40, "nobody's": 5, "c": 1}


def read(request: Any, version: int) -> Any:
    """As a broker reads it if it has very many entries."""
    sent = b"".join(frame.request_parts(request.API_KEY, version, 7, "client", request))[4:]
    position = frame.RequestHeader.parse(sent).body_position
    steps = slow_decoder(type(request), version)(memoryview(bytearray(sent)), position)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value[0]


def ask(world: World, request: Any, version: int, size: int | None) -> Any:
    """The answer, as a client reads it, to a request that is done in pieces, or as a whole."""
    answers: list[Any] = []
    key = request.API_KEY
    handle = registry.handler(registry.APIS[key])
    if size is not None:
        cut = cut_of(key, version)
        assert cut is not None
        handle = in_pieces(handle, cut, size)
    decoded = read(request, version)
    call = Call(key, version, 7, "client", decoded, Client(answers))
    response = handle(world.services, call, decoded)
    if response is not PENDING:
        call.reply(response)
    world.runtime.run_pending()
    (answer,) = answers
    return answer


def partitions() -> list[tuple[str, list[int]]]:
    """Partitions of each topic, and some that it does not have."""
    return [(name, list(range(count + 2))) for name, count in TOPICS.items()]


REQUESTS: dict[str, tuple[Any, int]] = {
    "ListOffsets": (
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[ListOffsetsPartition(partition_index=n, timestamp=-1) for n in numbers],
                )
                for name, numbers in partitions()
            ],
        ),
        9,
    ),
    "OffsetForLeaderEpoch": (
        OffsetForLeaderEpochRequest(
            replica_id=-2,
            topics=[
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        OffsetForLeaderPartition(partition=n, current_leader_epoch=-1, leader_epoch=0)
                        for n in numbers
                    ],
                )
                for name, numbers in partitions()
            ],
        ),
        4,
    ),
    "DeleteRecords": (
        DeleteRecordsRequest(
            timeout_ms=1000,
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[DeleteRecordsPartition(partition_index=n, offset=0) for n in numbers],
                )
                for name, numbers in partitions()
            ],
        ),
        2,
    ),
    "OffsetCommit": (
        OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=n, committed_offset=n, committed_metadata=""
                        )
                        for n in numbers
                    ],
                )
                for name, numbers in partitions()
            ],
        ),
        9,
    ),
    "OffsetFetch v8": (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[
                        OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                        for name, numbers in partitions()
                    ],
                )
                for group in ("g", "another")
            ]
            + [OffsetFetchRequestGroup(group_id="all", topics=None)],
        ),
        9,
    ),
    "Produce": (
        ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name=name,
                    partition_data=[
                        PartitionProduceData(index=n, records=memoryview(records(b"v", timestamp=START_MS)))
                        for n in numbers
                    ],
                )
                for name, numbers in partitions()
            ],
        ),
        9,
    ),
    "FindCoordinator": (
        FindCoordinatorRequest(key_type=0, coordinator_keys=[f"group-{n}" for n in range(50)]),
        4,
    ),
    "DescribeGroups": (DescribeGroupsRequest(groups=[f"group-{n}" for n in range(50)]), 5),
}


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("name", REQUESTS)
def test_the_answer_is_that_to_the_whole(make_world: Any, name: str, size: int) -> None:
    request, version = REQUESTS[name]
    answers = []
    for pieces in (None, size):
        world: World = make_world()
        for topic, count in TOPICS.items():
            if topic != "nobody's":
                world.make_topic(topic, count)
        ask(
            world, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4, None
        )  # the group is looked after
        answers.append(ask(world, request, version, pieces))
    assert answers[0] == answers[1]


def test_committed_in_pieces_it_is_committed(world: World) -> None:
    for topic, count in TOPICS.items():
        world.make_topic(topic.replace("'", "."), count)
    ask(world, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4, None)
    request, version = REQUESTS["OffsetCommit"]
    ask(world, request, version, 10)
    fetch, fetch_version = REQUESTS["OffsetFetch v8"]
    (group, *_) = ask(world, fetch, fetch_version, 10).groups
    found = {topic.name: [p.committed_offset for p in topic.partitions] for topic in group.topics}
    assert found["b"] == [*range(40), -1, -1]


class Plain:
    """Who asks, and takes answers as they are."""

    address = "127.0.0.1:50000"
    client_software_name = client_software_version = "tests"

    producer_ids = 0

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answered(self, call: Call, response: Any) -> None:
        self.answers.append(response)


def test_a_produce_that_wants_no_answer_gets_none(world: World) -> None:
    world.make_topic("a", 3)
    data = [
        PartitionProduceData(index=n, records=memoryview(records(b"v", timestamp=START_MS))) for n in range(3)
    ]
    request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="a", partition_data=data)])
    decoded = read(request, 9)
    peer = Plain()
    call = Call(0, 9, 7, "client", decoded, peer)
    cut = cut_of(0, 9)
    assert cut is not None
    assert in_pieces(registry.handler(registry.APIS[0]), cut, 1)(world.services, call, decoded) is PENDING
    world.runtime.run_pending()
    assert peer.answers == [NO_RESPONSE]
    for number in range(3):
        log = world.logs.get(TopicPartition("a", number))
        assert log is not None
        assert log.end_offset == 1


def test_one_piece_that_ends_the_connection_ends_it() -> None:
    response = ListOffsetsResponse(topics=[])
    assert joined([response, CLOSE_CONNECTION, response], ("topics", "partitions")) is CLOSE_CONNECTION


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 9), st.randoms(use_true_random=False))
def test_portions_are_small_and_make_the_whole(counts: list[int], size: int, chance: random.Random) -> None:
    request = ListOffsetsRequest(
        replica_id=5,
        topics=[
            ListOffsetsTopic(
                name=f"t{number}",
                partitions=[
                    ListOffsetsPartition(partition_index=n, timestamp=chance.randrange(9))
                    for n in range(count)
                ],
            )
            for number, count in enumerate(counts)
        ],
    )
    said = [
        (topic.name, p.partition_index, p.timestamp) for topic in request.topics for p in topic.partitions
    ]
    names = [topic.name for topic in request.topics]
    parts: list[Any] = list(portions(request, ("topics", "partitions"), size))
    assert [
        (topic.name, p.partition_index, p.timestamp)
        for part in parts
        for topic in part.topics
        for p in topic.partitions
    ] == said
    assert list(dict.fromkeys(topic.name for part in parts for topic in part.topics)) == names
    for part in parts:
        assert part.replica_id == 5
        assert sum(len(topic.partitions) for topic in part.topics) <= size


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3)), min_size=1, max_size=8))
def test_joined_answers_keep_every_entry_in_order(pieces: list[tuple[str, int]]) -> None:
    def answer(name: str, first: int, count: int) -> ListOffsetsResponse:
        found = [ListOffsetsPartitionResponse(partition_index=n) for n in range(first, first + count)]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=name, partitions=found)])

    responses = []
    said: list[tuple[str, int]] = []
    for name, count in pieces:
        responses.append(answer(name, len(said), count))
        said += [(name, n) for n in range(len(said), len(said) + count)]
    whole = joined(responses, ("topics", "partitions"))
    assert [(t.name, p.partition_index) for t in whole.topics for p in t.partitions] == said
    neighbours = [topic.name for topic in whole.topics]
    assert all(one != other for one, other in pairwise(neighbours))


def test_what_cannot_be_cut_has_a_limit() -> None:
    assert max_elements(33, 2) == 10_000  # AlterConfigs
    assert max_elements(8, 9) == MAX_ELEMENTS
    assert max_elements(24, 5) == 10_000  # AddPartitionsToTxn: all of a transaction or nothing
    assert max_elements(9, 7) == max_elements(9, 8) == MAX_ELEMENTS
