"""Members that say very much of themselves: a group would have to remember it, and its leader be told it all."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.reliability.attacks.brokers import Attacked, await_coordinator
from tests.server.wire import Wire

JOIN_GROUP = 11
MEMBERS = 40
METADATA_BYTES = 10 << 20


def attack(broker: Attacked, seed: int, share: float) -> None:
    """Forty join one group with 10 MB each, with an id of their own or without; no group remembers so much."""
    chance = random.Random(seed)
    await_coordinator(broker, "talkative")
    metadata = bytes(max(2 << 20, int(METADATA_BYTES * share)))
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(max(3, int(MEMBERS * share)))]
        for number, wire in enumerate(wires):
            wire.send(JOIN_GROUP, 5, _join(chance.choice((None, f"static-{number}")), metadata))
        for wire in wires:
            answer = wire.receive(JOIN_GROUP, 5)[1]
            assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def _join(instance: str | None, metadata: bytes) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="talkative",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
