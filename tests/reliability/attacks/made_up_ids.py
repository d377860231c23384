"""Ids that nobody has ever heard of: producers, transactional ids and groups, each used once and left behind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import ProduceRequest
from ottla.testing.embedded import EmbeddedBroker
from tests.coordinator.grouping import subscription
from tests.server.wire import PRODUCE, Wire, produce, records

TOPIC = "made-up"
PRODUCERS, TRANSACTIONAL_IDS, GROUPS = 250_000, 120_000, 30_000
PARTITIONS = 20
_A_CONNECTION, _AT_ONCE = 1000, 50
_COMMIT, _FIND, _JOIN, _INIT = 8, 10, 11, 22
_FULL, _REQUIRED = ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.MEMBER_ID_REQUIRED


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """The broker remembers as many as it may, and the others go on."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC, PARTITIONS)
    with Wire(broker) as wire:
        for kind in (0, 1):
            wire.ask(_FIND, 4, FindCoordinatorRequest(key_type=kind, coordinator_keys=["made up"]))
    broker.worst_turn_ms()
    services, config = broker.broker.services, broker.broker.services.config

    count = int(PRODUCERS * share)
    for answer in _ask_all(broker, PRODUCE, 9, (_write(number, chance) for number in range(count))):
        assert answer.responses[0].partition_responses[0].error_code == 0
    logs = [log for log in broker.broker.logs.logs.values() if log.partition.topic == TOPIC]
    remembered = sum(len(log.producers.producers) for log in logs)
    limit = config.max_producer_ids
    assert 0.9 * min(count, limit) <= remembered <= 1.02 * limit

    count = int(TRANSACTIONAL_IDS * share)
    codes = [
        answer.error_code for answer in _ask_all(broker, _INIT, 4, (_init(chance) for _ in range(count)))
    ]
    taken = min(count, config.max_transactional_ids)
    assert codes.count(0) == taken
    assert codes.count(ErrorCode.POLICY_VIOLATION) == count - taken

    count = int(GROUPS * share) // 2
    commits = _ask_all(broker, _COMMIT, 8, (_commit(chance) for _ in range(count)))
    codes = [answer.topics[0].partitions[0].error_code for answer in commits]
    assert set(codes) <= {0, _FULL}
    codes += [
        answer.error_code for answer in _ask_all(broker, _JOIN, 9, (_join(chance) for _ in range(count)))
    ]
    assert codes.count(_FULL) == max(0, 2 * count - config.max_groups)
    assert codes.count(0) + codes.count(_REQUIRED) == min(2 * count, config.max_groups)
    assert sum(len(state.all_groups()) for state in services.groups.states()) <= config.max_groups


def _name(chance: random.Random) -> str:
    return f"made up {chance.getrandbits(64)}"


def _init(chance: random.Random) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=_name(chance), transaction_timeout_ms=60_000)


def _write(number: int, chance: random.Random) -> ProduceRequest:
    batch = records(b"x", producer_id=10**9 + number, producer_epoch=0, base_sequence=0)
    return produce(TOPIC, batch, partition=chance.randrange(PARTITIONS))


def _commit(chance: random.Random) -> OffsetCommitRequest:
    entries = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=1, committed_metadata="made up")
        for number in range(chance.randrange(1, PARTITIONS))
    ]
    return OffsetCommitRequest(
        group_id=_name(chance), topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=entries)]
    )


def _join(chance: random.Random) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=_name(chance),
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription(TOPIC))],
    )


def _ask_all(broker: EmbeddedBroker, api: int, version: int, requests: Iterator[Message]) -> Iterator[Any]:
    """Over connections that are soon given up: a connection that asks for very many ids is slowed down."""
    while some := list(islice(requests, _A_CONNECTION)):
        with Wire(broker) as wire:
            for at in range(0, len(some), _AT_ONCE):
                asked = some[at : at + _AT_ONCE]
                wire.send_bytes(
                    b"".join(
                        part
                        for number, request in enumerate(asked)
                        for part in frame.request_parts(api, version, number, "made up", request)
                    )
                )
                for _ in asked:
                    yield wire.receive(api, version)[1]
