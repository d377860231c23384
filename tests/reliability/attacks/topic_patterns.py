"""Groups with patterns that are much work to match, over many topics with long names."""

from __future__ import annotations

import contextlib
import random
import uuid

from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.reliability.attacks.brokers import Attacked, await_coordinator
from tests.server.wire import Wire, wait_until

HEARTBEAT = 68
GROUPS = 50
TOPICS = 3_000
NAME_CHARS = 240
PATTERN_CHARS = 1_800


def attack(broker: Attacked, seed: int, share: float) -> None:
    """Each group is there when it is told of the one topic that its pattern means."""
    chance = random.Random(seed)
    for number in range(max(60, int(TOPICS * share))):
        broker.create_topic(f"{number:05}" + "ab" * (NAME_CHARS // 2))
    broker.create_topic("ab" * (NAME_CHARS // 2))
    await_coordinator(broker, "patterns-0")
    with contextlib.ExitStack() as stack:
        members = [
            _Member(stack.enter_context(Wire(broker)), number, chance)
            for number in range(max(4, int(GROUPS * share)))
        ]
        wait_until(lambda: not [member for member in members if not member.has_its_topic()])


class _Member:
    """The only one of its group."""

    def __init__(self, wire: Wire, number: int, chance: random.Random) -> None:
        self._wire = wire
        member_id = str(uuid.UUID(int=chance.getrandbits(128)))
        self._asked = {"group_id": f"patterns-{number}", "member_id": member_id}
        many = "(a|b|ab)?" * (PATTERN_CHARS // len("(a|b|ab)?") - 1)
        self._epoch = 0
        self._has_topic = False
        self._beat(
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=f"{many}[ab]*",
            topic_partitions=[],
        )

    def has_its_topic(self) -> bool:
        if not self._has_topic:
            self._beat(member_epoch=self._epoch)
        return self._has_topic

    def _beat(self, **fields: object) -> None:
        answer = self._wire.ask(HEARTBEAT, 1, ConsumerGroupHeartbeatRequest(**self._asked, **fields))  # type: ignore[arg-type]
        assert answer.error_code == 0, answer.error_message
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._has_topic = bool(answer.assignment.topic_partitions)
