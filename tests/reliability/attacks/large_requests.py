"""Requests of as many entries as a message may have: each must be looked at, read and answered."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol.message import Message
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import FETCH, PRODUCE, Wire, records, wait_until

TOPIC = "entries"
PARTITIONS = 300
ENTRIES = 99_990
LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 2, 8, 9, 10
MIB = 1 << 20


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """Each kind on a connection of its own, all at once, and one of them twice; then a fetch session."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC, PARTITIONS)
    count = max(5_000, int(ENTRIES * share))
    requests = _requests(count)
    chance.shuffle(requests)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in requests]
        wires[0].ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        for wire, (key, version, request) in zip(wires, requests, strict=True):
            wire.send(key, version, request)
        for wire, (key, version, _) in zip(wires, requests, strict=True):
            assert _entries(key, wire.receive(key, version)[1]) == count, (key, version)
    _follow(broker, min(count, 20_000))
    budget = broker.broker.listener.budget
    wait_until(lambda: budget.used_bytes < MIB)


def _requests(count: int) -> list[tuple[int, int, Message]]:
    numbers = range(count)
    fetched = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1) for n in numbers]
    listed = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in numbers]
    committed = [
        OffsetCommitRequestPartition(partition_index=n, committed_offset=1, committed_metadata="")
        for n in numbers
    ]
    batch = memoryview(records(b"v"))
    produced = [
        PartitionProduceData(index=n, records=batch if n < PARTITIONS else memoryview(b"")) for n in numbers
    ]
    kept = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=list(numbers))]
    commit = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=committed)],
    )
    return [
        (FETCH, 11, FetchRequest(session_epoch=-1, topics=[FetchTopic(topic=TOPIC, partitions=fetched)])),
        (LIST_OFFSETS, 9, ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=listed)])),
        (OFFSET_COMMIT, 8, commit),
        (OFFSET_COMMIT, 8, commit),
        (OFFSET_FETCH, 7, OffsetFetchRequest(group_id="g", topics=kept)),
        (FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[f"group-{n}" for n in numbers])),
        (
            PRODUCE,
            9,
            ProduceRequest(
                acks=-1,
                timeout_ms=30_000,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=produced)],
            ),
        ),
    ]


def _entries(key: int, answer: object) -> int:
    lists = {
        PRODUCE: ("responses", "partition_responses"),
        FETCH: ("responses", "partitions"),
        FIND_COORDINATOR: ("coordinators",),
    }.get(key, ("topics", "partitions"))
    found = getattr(answer, lists[0])
    return len(found) if len(lists) == 1 else sum(len(getattr(one, lists[1])) for one in found)


def _follow(broker: EmbeddedBroker, count: int) -> None:
    """A session of very many partitions, most of which are not there, and requests that only name it."""
    parts = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1000) for n in range(count)]
    topics = [FetchTopic(topic=TOPIC, partitions=parts)]
    with Wire(broker) as wire:
        answer = wire.ask(FETCH, 11, FetchRequest(max_bytes=1000, session_epoch=0, topics=topics))
        session_id = answer.session_id
        assert session_id != 0
        for epoch in range(1, 6):
            request = FetchRequest(max_bytes=1000, session_id=session_id, session_epoch=epoch)
            answer = wire.ask(FETCH, 11, request)
            assert (answer.error_code, answer.session_id) == (0, session_id)
