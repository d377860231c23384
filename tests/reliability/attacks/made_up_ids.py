"""Ids that nobody has ever heard of: producers, transactional ids and groups, each used once and left behind."""

from __future__ import annotations

import random
from collections.abc import Sequence
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
_AT_ONCE = 50
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

    asked = [_write(number, chance) for number in range(int(PRODUCERS * share))]
    for answer in _ask_all(broker, PRODUCE, 9, asked):
        assert answer.responses[0].partition_responses[0].error_code == 0
    logs = [log for log in broker.broker.logs.logs.values() if log.partition.topic == TOPIC]
    remembered = sum(len(log.producers.producers) for log in logs)
    limit = config.max_producer_ids
    assert 0.9 * min(len(asked), limit) <= remembered <= 1.02 * limit

    ids = [f"made up {chance.getrandbits(64)}" for _ in range(int(TRANSACTIONAL_IDS * share))]
    wanted = [InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000) for name in ids]
    codes = [answer.error_code for answer in _ask_all(broker, _INIT, 4, wanted)]
    taken = min(len(ids), config.max_transactional_ids)
    assert codes.count(0) == taken
    assert codes.count(ErrorCode.POLICY_VIOLATION) == len(ids) - taken

    names = [f"made up {chance.getrandbits(64)}" for _ in range(int(GROUPS * share))]
    commits = [_commit(name, chance) for name in names[::2]]
    codes = [answer.topics[0].partitions[0].error_code for answer in _ask_all(broker, _COMMIT, 8, commits)]
    assert set(codes) <= {0, _FULL}
    codes += [
        answer.error_code for answer in _ask_all(broker, _JOIN, 9, [_join(name) for name in names[1::2]])
    ]
    assert codes.count(_FULL) == max(0, len(names) - config.max_groups)
    assert codes.count(0) + codes.count(_REQUIRED) == min(len(names), config.max_groups)
    assert sum(len(state.all_groups()) for state in services.groups.states()) <= config.max_groups


def _write(number: int, chance: random.Random) -> ProduceRequest:
    batch = records(b"x", producer_id=10**9 + number, producer_epoch=0, base_sequence=0)
    return produce(TOPIC, batch, partition=chance.randrange(PARTITIONS))


def _commit(group: str, chance: random.Random) -> OffsetCommitRequest:
    entries = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=1, committed_metadata="made up")
        for number in range(chance.randrange(1, PARTITIONS))
    ]
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=entries)]
    )


def _join(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription(TOPIC))],
    )


def _ask_all(broker: EmbeddedBroker, api: int, version: int, requests: Sequence[Message]) -> list[Any]:
    """Over connections that are soon given up: a connection that asks for very many ids is slowed down."""
    answers: list[Any] = []
    for first in range(0, len(requests), 1000):
        share = requests[first : first + 1000]
        with Wire(broker) as wire:
            for at in range(0, len(share), _AT_ONCE):
                some = share[at : at + _AT_ONCE]
                wire.send_bytes(
                    b"".join(
                        part
                        for number, request in enumerate(some)
                        for part in frame.request_parts(api, version, number, "made up", request)
                    )
                )
                answers += [wire.receive(api, version)[1] for _ in some]
    return answers
