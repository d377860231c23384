"""Groups change their protocol while they are at work, and members of both protocols share one."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinator.classic.group import Group
from ottla.internal_topics.fields import Reader
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.api.world import World
from tests.coordinator.conftest import MakeWorld
from tests.coordinator.grouping import (
    DELAY_MS,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Consumer,
    commit,
    committed,
    subscription,
)
from tests.coordinator.modern import Modern, described, state_of

ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE, NOT_FOUND = 22, 25, 27, 69
UNKNOWN_SERVER_ERROR = -1
PARTITIONS = {"version": "int16", "partitions": [{"topic": "string", "partitions": ["int32"]}]}


class Old(Consumer):
    """A classic consumer that understands assignments, and says what it has when it joins."""

    def __init__(self, world: World, **settings: Any) -> None:
        super().__init__(world, **settings)
        self.has: set[int] = set()
        self.user_data = b"\xff\xff\xff\xff"  # null

    def alone(self) -> None:
        """Be the only member of a classic group, with all partitions."""
        pending = self.begin_join()
        self.world.runtime.advance(DELAY_MS)
        self.take_join(pending)
        everything = assignment(0, 1, 2)
        assert self.send_sync({self.member_id: everything}).answer.error_code == 0
        self.has = {0, 1, 2}

    def rejoin(self) -> int:
        """Join again and fetch the assignment: all at once in a consumer group. The error code."""
        self.metadata = b"\0\1" + subscription("t")[2:-4] + self.user_data + owned(self.has)
        answer = self.begin_join().answer
        if answer.error_code:
            code: int = answer.error_code
            return code
        self.member_id, self.generation = answer.member_id, answer.generation_id
        sync = self.send_sync().answer
        if not sync.error_code:
            parts = Reader(sync.assignment).struct(PARTITIONS)["partitions"]
            self.has = {number for part in parts for number in part["partitions"]}
        return sync.error_code

    def go_on(self) -> None:
        """Do what heartbeats say, until there is nothing to do."""
        for _ in range(5):
            if self.heartbeat() != REBALANCE:
                break
            assert self.rejoin() == 0


def assignment(*numbers: int) -> bytes:
    return b"\0\0" + owned(set(numbers)) + b"\xff\xff\xff\xff"


def owned(numbers: set[int]) -> bytes:
    parts = b"".join(number.to_bytes(4, "big") for number in sorted(numbers))
    return b"\0\0\0\1\0\1t" + len(numbers).to_bytes(4, "big") + parts


def classic_of(world: World) -> Group:
    (found,) = [state.groups[GROUP] for state in world.services.groups.states() if GROUP in state.groups]
    return found


def settle(old: Old, new: Modern) -> None:
    for _ in range(4):
        old.go_on()
        new.confirm()


def test_a_classic_group_becomes_a_consumer_group_and_its_members_go_on(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    assert new.join() == 0
    assert new.has == {}
    assert old.heartbeat() == REBALANCE
    settle(old, new)
    assert sorted([*old.has, *new.has["t"]]) == [0, 1, 2]
    members = {member.member_id: member.member_type for member in described(world).members}
    assert members == {old.member_id: 0, new.member_id: 1}
    assert old.heartbeat() == 0


def test_what_a_classic_member_has_is_given_away_only_when_it_has_let_go(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    new.join()
    assert old.rejoin() == 0
    assert len(old.has) == 2
    new.beat()
    assert new.has == {}
    assert old.heartbeat() == REBALANCE
    assert old.rejoin() == 0
    new.beat()
    assert len(new.has["t"]) == 1


def test_a_consumer_group_becomes_a_classic_one_when_only_classic_members_are_left(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    new.join()
    settle(old, new)
    assert new.leave() == 0
    assert described(world).error_code == NOT_FOUND
    assert classic_of(world).phase.value == "PreparingRebalance"
    assert old.heartbeat() == REBALANCE
    pending = old.begin_join()
    answer = old.take_join(pending)
    assert answer.leader == old.member_id
    assert old.send_sync({old.member_id: assignment(0, 1, 2)}).answer.error_code == 0


def test_a_member_that_is_silent_leads_to_a_classic_group_too(world: World) -> None:
    old, new = Old(world, session_ms=60_000), Modern(world)
    old.alone()
    new.join()
    settle(old, new)
    world.runtime.advance(30_000)
    old.heartbeat()
    world.runtime.advance(20_000)
    assert classic_of(world).members.keys() == {old.member_id}


def test_a_group_that_was_changed_is_the_same_after_a_restart(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    new.join()
    settle(old, new)
    before = described(world)
    world.restart()
    assert described(world) == before
    assert old.heartbeat() == 0
    new.leave()
    world.restart()
    assert classic_of(world).members.keys() == {old.member_id}
    assert old.heartbeat() == 0, "the rebalance is forgotten; what is written down is a stable group"


def test_offsets_stay_whatever_the_group_is(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    assert old.commit(5) == 0
    new.join()
    assert committed(world, GROUP, 0)[0].committed_offset == 5
    assert old.commit(6) == 0
    old.generation = 9
    assert old.commit(7) == ILLEGAL_GENERATION
    new.leave()
    assert committed(world, GROUP, 0)[0].committed_offset == 6


def test_members_that_wait_in_a_classic_group_are_sent_back(world: World) -> None:
    first, second, new = Old(world), Old(world), Modern(world)
    first.alone()
    waiting = second.begin_join()
    assert waiting.is_waiting
    assert new.join() == 0
    assert waiting.answer.error_code == REBALANCE
    assert second.rejoin() == 0
    assert {member.member_type for member in described(world).members} == {0, 1}
    assert len(described(world).members) == 3


@pytest.mark.parametrize(("policy", "upgrades", "downgrades"), [
    ("disabled", False, False), ("upgrade", True, False), ("Bidirectional", True, True),
])  # fmt: skip
def test_groups_change_only_as_the_policy_allows(
    make_world: MakeWorld, policy: str, upgrades: bool, downgrades: bool
) -> None:
    world = make_world(group_consumer_migration_policy=policy)
    old, new = Old(world), Modern(world)
    old.alone()
    assert new.join() == (0 if upgrades else NOT_FOUND)
    if upgrades:
        settle(old, new)
        new.leave()
        assert (described(world).error_code == NOT_FOUND) == downgrades
        old.go_on() if not downgrades else None


def test_a_group_that_is_not_of_consumers_stays_what_it_is(world: World) -> None:
    other = Consumer(world, protocol_type="connect", metadata=b"x")
    pending = other.begin_join()
    world.runtime.advance(DELAY_MS)
    other.take_join(pending)
    assert Modern(world).join() == NOT_FOUND
    assert classic_of(world).members.keys() == {other.member_id}


def test_a_group_whose_members_share_partitions_stays_what_it_is(world: World) -> None:
    """Some read everything in all members: a consumer group cannot do that."""
    members = [Old(world), Old(world)]
    pending = [member.begin_join() for member in members]
    world.runtime.advance(2 * DELAY_MS)
    for member, one in zip(members, pending, strict=True):
        member.take_join(one)
    everything = {member.member_id: assignment(0, 1, 2) for member in members}
    for member in members:
        member.send_sync(everything)
    assert Modern(world).join() == NOT_FOUND
    assert [member.heartbeat() for member in members] == [0, 0]


def test_a_classic_member_that_does_not_join_again_in_time_is_out(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    new.join()
    for _ in range(REBALANCE_MS // 5_000):
        assert old.heartbeat() == REBALANCE
        new.beat()
        world.runtime.advance(5_000)
    assert old.heartbeat() == UNKNOWN_MEMBER
    new.beat()
    assert new.has == {"t": {0, 1, 2}}


def test_a_classic_member_that_is_silent_is_out_after_its_own_session(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    new.join()
    settle(old, new)
    world.runtime.advance(SESSION_MS)
    assert old.heartbeat() == UNKNOWN_MEMBER


def test_a_classic_member_that_does_not_fetch_its_assignment_is_out(world: World) -> None:
    new, old = Modern(world), Old(world, session_ms=100_000)
    new.join()
    old.metadata = subscription("t")
    assert old.begin_join().answer.error_code == 0
    for _ in range(REBALANCE_MS // 20_000):
        new.confirm()
        world.runtime.advance(20_000)
    assert [member.member_id for member in described(world).members] == [new.member_id]


def test_a_static_member_changes_the_protocol_and_keeps_what_it_had(world: World) -> None:
    old = Old(world, instance="i")
    old.alone()
    new = Modern(world, instance="i")
    assert new.join() == 0
    assert new.has == {"t": {0, 1, 2}}
    assert len(described(world).members) == 1
    again = Old(world, instance="i")
    answer = again.send_join().answer
    assert (answer.error_code, answer.generation_id) == (0, new.epoch)
    again.member_id, again.generation = answer.member_id, answer.generation_id
    assert classic_of(world).phase.value == "Stable"
    assert again.heartbeat() == 0
    assert new.beat() == NOT_FOUND


def test_an_empty_group_is_what_the_next_member_makes_of_it(world: World) -> None:
    new = Modern(world)
    new.join()
    new.commit(3)
    new.leave()
    old = Old(world)
    old.alone()
    assert described(world).error_code == NOT_FOUND
    world.restart()
    assert classic_of(world).members.keys() == {old.member_id}
    old.leave()
    assert Modern(world).join() == 0
    world.restart()
    assert len(state_of(world).members) == 1
    assert committed(world, GROUP, 0)[0].committed_offset == 3


def test_a_group_that_only_keeps_offsets_becomes_a_consumer_group(world: World) -> None:
    assert commit(world, GROUP, 3) == 0
    assert Modern(world).join() == 0
    world.restart()
    assert len(state_of(world).members) == 1
    assert committed(world, GROUP, 0)[0].committed_offset == 3


def test_each_kind_of_group_is_described_by_its_own_request(world: World) -> None:
    Modern(world).join()
    (classic,) = world.ask(DescribeGroupsRequest(groups=[GROUP])).groups
    assert (classic.error_code, classic.group_state) == (NOT_FOUND, "Dead")
    old = Old(world, group="old")
    old.alone()
    (modern,) = world.ask(ConsumerGroupDescribeRequest(group_ids=["old"])).groups
    assert modern.error_code == NOT_FOUND


def test_a_downgrade_that_cannot_be_written_down_leaves_the_group_as_it_was(world: World) -> None:
    old, new = Old(world), Modern(world)
    old.alone()
    old.user_data = (200_000).to_bytes(4, "big") + bytes(200_000)
    new.join()
    settle(old, new)
    limit(world, 150_000)
    assert new.leave() == UNKNOWN_SERVER_ERROR
    limit(world, 1 << 20)
    assert new.beat() == 0
    assert old.heartbeat() == 0


def limit(world: World, size_bytes: int) -> None:
    """How large a batch of the internal topic may be."""
    setting = AlterableConfig(name="max.message.bytes", value=str(size_bytes))
    resource = AlterConfigsResource(resource_type=2, resource_name="__consumer_offsets", configs=[setting])
    (answer,) = world.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == 0, answer
