"""Groups with as many members as they may have, and more who want in: all come, are told and vanish at once."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from typing import Any

from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.testing.embedded import EmbeddedBroker
from tests.coordinator.grouping import subscription
from tests.server.wire import Wire, wait_until

MEMBERS = 20_000
PARTITIONS = 500
SESSION_MS = 30_000
_A_CONNECTION = 50
_FIND, _JOIN, _LEAVE, _SYNC, _DESCRIBE, _BEAT, _DESCRIBE_CONSUMERS = 10, 11, 13, 14, 15, 68, 69
_FULL = ErrorCode.GROUP_MAX_SIZE_REACHED


def attack(broker: EmbeddedBroker, seed: int, share: float) -> None:
    """First a classic group, then one of the newer protocol."""
    chance = random.Random(seed)
    count = max(400, int(MEMBERS * share))
    broker.create_topic("wanted", min(PARTITIONS, count))
    with Wire(broker) as wire:
        wire.ask(_FIND, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["crowd"]))
    broker.worst_turn_ms()
    _classic(broker, chance, count)
    _consumers(broker, chance, count)


def _classic(broker: EmbeddedBroker, chance: random.Random, count: int) -> None:
    limit = broker.broker.services.config.group_max_size
    members = min(count, limit)
    with contextlib.ExitStack() as stack:
        founder = stack.enter_context(Wire(broker))
        first = founder.ask(_JOIN, 3, _join(chance))
        wires = [stack.enter_context(Wire(broker)) for _ in range(-(-count // _A_CONNECTION))]
        places = [wires[number % len(wires)] for number in range(count)]  # of all who come after the founder
        for at, wire in enumerate(wires):
            _send(wire, _JOIN, 3, [_join(chance) for _ in places[at :: len(wires)]])
        wait_until(lambda: len(_group(broker).joining) == members)
        founder.ask(_LEAVE, 2, LeaveGroupRequest(group_id="crowd", member_id=first.member_id))
        answers = [(wire, wire.receive(_JOIN, 3)[1]) for wire in places]
        assert sum(answer.error_code == _FULL for _, answer in answers) == count - members
        joined = [(wire, answer) for wire, answer in answers if not answer.error_code]
        (leader,) = [answer for _, answer in joined if answer.members]
        assert len(leader.members) == len(joined) == members
        for wire, answer in joined:
            assert answer.generation_id == leader.generation_id
            _send(wire, _SYNC, 3, [_sync(answer, leader)])
        for wire, _ in joined:
            assert wire.receive(_SYNC, 3)[1].assignment == b"yours"
        answer = founder.ask(_DESCRIBE, 5, DescribeGroupsRequest(groups=["crowd"]))
        assert len(answer.groups[0].members) == members
    broker.clock.advance(SESSION_MS + 1)
    wait_until(lambda: not _group(broker).members)


def _group(broker: EmbeddedBroker, name: str = "crowd") -> Any:
    states = broker.broker.services.groups.states()
    return next(group for state in states if (group := state.find(name)) is not None)


def _join(chance: random.Random, member_id: str = "") -> JoinGroupRequest:
    said = subscription("wanted", f"own-{chance.randrange(10**9)}")
    return JoinGroupRequest(
        group_id="crowd",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=300_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=said)],
    )


def _sync(answer: JoinGroupResponse, leader: JoinGroupResponse) -> SyncGroupRequest:
    given = []
    if answer is leader:
        given = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"yours")
            for member in leader.members
        ]
    return SyncGroupRequest(
        group_id="crowd",
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        assignments=given,
    )


def _consumers(broker: EmbeddedBroker, chance: random.Random, count: int) -> None:
    limit = broker.broker.services.config.group_consumer_max_size
    ids = [f"member-{number}" for number in range(count)]
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(20)]
        refused = 0
        for first in range(0, count, len(wires) * _A_CONNECTION):
            beats = [_beat(member_id) for member_id in ids[first : first + len(wires) * _A_CONNECTION]]
            for at, wire in enumerate(wires):
                _send(wire, _BEAT, 1, beats[at :: len(wires)])
            for at, wire in enumerate(wires):
                for _ in beats[at :: len(wires)]:
                    answer = wire.receive(_BEAT, 1)[1]
                    assert answer.error_code in (0, _FULL), answer
                    refused += answer.error_code == _FULL
        assert refused == max(0, count - limit)
        wire = wires[0]

        def owned() -> int:
            answer = wire.ask(_DESCRIBE_CONSUMERS, 1, ConsumerGroupDescribeRequest(group_ids=["new crowd"]))
            (group,) = answer.groups
            assert len(group.members) == min(count, limit)
            given = [member.target_assignment.topic_partitions for member in group.members]
            return sum(len(entry.partitions) for entries in given for entry in entries)

        wait_until(lambda: owned() == min(PARTITIONS, count))
    broker.clock.advance(60_000)
    wait_until(lambda: not _group(broker, "new crowd").members)


def _beat(member_id: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="new crowd",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=["wanted"],
        topic_partitions=[],
    )


def _send(wire: Wire, api: int, version: int, requests: Sequence[Message]) -> None:
    wire.send_bytes(
        b"".join(
            part
            for number, request in enumerate(requests)
            for part in frame.request_parts(api, version, number, "crowd", request)
        )
    )
