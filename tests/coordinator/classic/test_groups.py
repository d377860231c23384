"""Classic groups: who is a member, in which generation, with what."""

from __future__ import annotations

import pytest

from ottla.coordinator.offsets import room
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from tests.api.world import World
from tests.coordinator.conftest import MakeWorld
from tests.coordinator.grouping import (
    DELAY_MS,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Consumer,
    assign,
    commit,
    find,
    settle,
    subscription,
)


def describe(world: World, group: str = GROUP, version: int = 6) -> DescribedGroup:
    found: DescribedGroup = world.ask(DescribeGroupsRequest(groups=[group]), version).groups[0]
    return found


def pass_time(world: World, ms: int) -> None:
    world.runtime.advance(ms)
    world.runtime.run_pending()


# -- joining


def test_the_coordinator_is_who_leads_the_groups_partition(world: World) -> None:
    found = find(world)
    assert (found.error_code, found.node_id, found.host) == (0, 1, "host-1")
    assert world.image.topics["__consumer_offsets"].config["cleanup.policy"] == "compact"


def test_a_new_member_is_given_an_id_and_joins_with_it(world: World) -> None:
    consumer = Consumer(world)
    first = consumer.send_join()
    assert first.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.answer.member_id.startswith("client-")
    consumer.member_id = first.answer.member_id
    second = consumer.send_join()
    assert second.is_waiting  # for company
    pass_time(world, DELAY_MS)
    answer = consumer.take_join(second)
    assert (answer.generation_id, answer.protocol_name, answer.leader) == (1, "range", consumer.member_id)
    assert [member.metadata for member in answer.members] == [subscription("t")]
    assign(consumer)
    assert consumer.heartbeat() == 0


def test_old_clients_join_without_an_id(world: World) -> None:
    consumer = Consumer(world)
    pending = consumer.send_join(version=0)
    pass_time(world, DELAY_MS)
    assert consumer.take_join(pending).leader == consumer.member_id
    sync = consumer.send_sync({consumer.member_id: b"all"}, version=0)
    assert sync.answer.assignment == b"all"


def test_the_first_rebalance_waits_again_while_new_members_come(world: World) -> None:
    first, second, third = (Consumer(world) for _ in range(3))
    pending = [first.begin_join()]
    pass_time(world, DELAY_MS - 1)
    pending.append(second.begin_join())
    pass_time(world, DELAY_MS - 1)
    pending.append(third.begin_join())
    assert all(one.is_waiting for one in pending)
    pass_time(world, 2)
    assert pending[0].is_waiting
    pass_time(world, DELAY_MS)
    answers = [one.answer for one in pending]
    assert [answer.generation_id for answer in answers] == [1, 1, 1]
    assert [len(answer.members) for answer in answers] == [3, 0, 0]


def test_a_second_member_makes_the_first_join_again(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first)
    joining = second.begin_join()
    assert joining.is_waiting
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    again = first.begin_join()
    assert first.take_join(again).generation_id == second.take_join(joining).generation_id == 2
    waiting = second.send_sync()
    assert waiting.is_waiting
    leading = first.send_sync({first.member_id: b"1", second.member_id: b"2"})
    assert (leading.answer.assignment, waiting.answer.assignment) == (b"1", b"2")


def test_who_does_not_join_again_in_time_is_out(world: World) -> None:
    first, second = Consumer(world, session_ms=300_000), Consumer(world)
    settle(first)
    joining = second.begin_join()
    pass_time(world, REBALANCE_MS - 1)
    assert joining.is_waiting
    pass_time(world, 1)
    assert second.take_join(joining).leader == second.member_id
    assert first.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_lost_answer_is_given_again(world: World) -> None:
    consumer = Consumer(world)
    pending = consumer.begin_join()
    pass_time(world, DELAY_MS)
    consumer.take_join(pending)
    again = consumer.send_join().answer
    assert (again.generation_id, again.leader, len(again.members)) == (1, consumer.member_id, 1)


def test_a_follower_that_has_nothing_new_gets_the_generation_at_once(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    assert second.send_join().answer.generation_id == 1
    assert first.heartbeat() == 0
    second.metadata = subscription("t", "u")
    assert second.send_join().is_waiting
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_leader_can_ask_for_a_rebalance(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    assert first.send_join().is_waiting
    assert second.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_given_id_that_nobody_uses_holds_nobody_up_for_long(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first)
    second.send_join()  # gets an id, and dies
    third = Consumer(world)
    joining = third.begin_join()
    again = first.begin_join()
    assert joining.is_waiting
    pass_time(world, SESSION_MS)
    assert joining.answer.error_code == again.answer.error_code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"session_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(world: World, change: dict[str, object], code: int) -> None:
    consumer = Consumer(world)
    for name, value in change.items():
        setattr(consumer, name, value)
    assert consumer.send_join().answer.error_code == code


def test_an_unknown_id_is_refused(world: World) -> None:
    consumer = Consumer(world)
    consumer.member_id = "nobody"
    assert consumer.send_join().answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(Consumer(world))
    assert consumer.send_join().answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_agree_on_a_protocol_that_all_speak(world: World) -> None:
    first = Consumer(world, protocols=("sticky", "range", "roundrobin"))
    second = Consumer(world, protocols=("range", "sticky"))
    third = Consumer(world, protocols=("range", "roundrobin"))
    pending = [one.begin_join() for one in (first, second, third)]
    pass_time(world, DELAY_MS)
    pass_time(world, DELAY_MS)
    assert {one.answer.protocol_name for one in pending} == {"range"}
    stranger = Consumer(world, protocols=("sticky",))
    assert stranger.send_join().answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    connector = Consumer(world, protocol_type="connect")
    assert connector.send_join().answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_else(make_world: MakeWorld) -> None:
    world = make_world(group_max_size="2")
    settle(Consumer(world), Consumer(world))
    assert Consumer(world).send_join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


# -- assignments


def test_a_sync_of_another_generation_member_or_protocol_is_refused(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    second.generation = 0
    assert second.send_sync().answer.error_code == ErrorCode.ILLEGAL_GENERATION
    assert second.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    second.generation = 1
    second.protocols = ("other",)
    assert second.send_sync().answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    second.member_id = "nobody"
    assert second.send_sync().answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_stable_group_tells_its_assignment_again(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    assert second.send_sync().answer.assignment == second.member_id.encode()


def test_a_rebalance_takes_back_what_was_not_assigned_yet(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    pending = [first.begin_join(), second.begin_join()]
    pass_time(world, DELAY_MS)
    pass_time(world, DELAY_MS)
    first.take_join(pending[0])
    second.take_join(pending[1])
    waiting = second.send_sync()
    Consumer(world).begin_join()
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_never_ask_for_their_assignment_are_out(world: World) -> None:
    first, second = Consumer(world, session_ms=300_000), Consumer(world, session_ms=300_000)
    pending = [first.begin_join(), second.begin_join()]
    pass_time(world, 2 * DELAY_MS)
    first.take_join(pending[0])
    second.take_join(pending[1])
    waiting = second.send_sync()
    pass_time(world, REBALANCE_MS)
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert second.take_join(second.begin_join()).leader == second.member_id


def test_assignments_too_large_to_write_down_start_another_rebalance(world: World) -> None:
    consumer = Consumer(world)
    pending = consumer.begin_join()
    pass_time(world, DELAY_MS)
    consumer.take_join(pending)
    huge = consumer.send_sync({consumer.member_id: bytes(2_000_000)})
    assert huge.answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    pass_time(world, 0)
    assert consumer.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert consumer.take_join(consumer.begin_join()).generation_id == 2
    assign(consumer)


# -- sessions and leaving


def test_a_member_that_is_not_heard_of_is_out_and_heartbeats_keep_it_in(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    for _ in range(3):
        pass_time(world, SESSION_MS - 1)
        assert first.heartbeat() in (0, ErrorCode.REBALANCE_IN_PROGRESS)
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.take_join(first.begin_join()).generation_id == 2


def test_a_commit_keeps_a_member_in(world: World) -> None:
    consumer = Consumer(world)
    settle(consumer)
    for offset in range(3):
        pass_time(world, SESSION_MS - 1)
        assert consumer.commit(offset) == 0
    pass_time(world, SESSION_MS)
    assert consumer.commit(9) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_waits_for_the_others_need_not_say_that_it_is_alive(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    again = first.begin_join()
    for _ in range(3):
        pass_time(world, SESSION_MS - 1)
        second.heartbeat()
    assert again.is_waiting
    assert second.take_join(second.begin_join()).generation_id == first.take_join(again).generation_id


def test_leaving_starts_a_rebalance_and_the_last_one_empties_the_group(world: World) -> None:
    first, second = Consumer(world), Consumer(world)
    settle(first, second)
    assert first.leave().members[0].error_code == 0
    assert second.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    second.take_join(second.begin_join())
    assert second.leave().members[0].error_code == 0
    assert describe(world).group_state == "Empty"
    assert second.leave().members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_many_can_leave_at_once_each_with_its_own_answer(world: World) -> None:
    first, second = Consumer(world, instance="one"), Consumer(world)
    settle(first, second)
    identities = [
        MemberIdentity(member_id="", group_instance_id="one"),
        MemberIdentity(member_id="", group_instance_id="two"),
        MemberIdentity(member_id=second.member_id),
        MemberIdentity(member_id="nobody"),
    ]
    answer = world.ask(LeaveGroupRequest(group_id=GROUP, members=identities))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.error_code for member in answer.members] == [0, unknown, 0, unknown]
    assert describe(world).group_state == "Empty"


def test_an_old_client_leaves_by_its_id_alone(world: World) -> None:
    consumer = Consumer(world)
    settle(consumer)
    request = LeaveGroupRequest(group_id=GROUP, member_id=consumer.member_id)
    assert world.ask(request, 0).error_code == 0
    assert world.ask(request, 0).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# -- static members


def test_a_static_member_comes_back_to_its_place_without_a_rebalance(world: World) -> None:
    first, second = Consumer(world, instance="one"), Consumer(world)
    settle(first, second)
    before = first.member_id
    again = Consumer(world, instance="one")
    answer = again.take_join(again.send_join())
    assert (answer.generation_id, answer.skip_assignment, answer.leader) == (1, True, again.member_id)
    assert again.member_id != before
    assert again.send_sync().answer.assignment == before.encode()
    assert second.heartbeat() == 0
    # Whoever still uses the old id is told that it is not the one any more.
    assert first.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert first.send_join().answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert first.commit(1) == ErrorCode.FENCED_INSTANCE_ID


def test_an_old_static_client_that_led_is_told_that_it_does_not(world: World) -> None:
    first = Consumer(world, instance="one")
    settle(first)
    again = Consumer(world, instance="one")
    answer = again.take_join(again.send_join(version=8))
    assert (answer.leader, answer.members) == (first.member_id, [])


def test_a_static_member_with_other_wishes_starts_a_rebalance(world: World) -> None:
    settle(Consumer(world, instance="one", protocols=("range",)))
    again = Consumer(world, instance="one", protocols=("sticky", "range"))
    pending = again.send_join()
    assert again.take_join(pending).protocol_name == "sticky"


def test_a_static_member_that_is_late_stays_until_its_session_ends(world: World) -> None:
    first, second = Consumer(world, instance="one", session_ms=300_000), Consumer(world)
    settle(first)
    joining = second.begin_join()
    pass_time(world, REBALANCE_MS)
    answer = second.take_join(joining)
    assert {member.group_instance_id for member in answer.members} == {"one", None}


# -- an administrator's view


def test_groups_are_described_by_their_state(world: World) -> None:
    consumer = Consumer(world, instance="one")
    assert describe(world).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(world, version=5).group_state == "Dead"
    pending = consumer.begin_join()
    assert describe(world).group_state == "PreparingRebalance"
    pass_time(world, DELAY_MS)
    consumer.take_join(pending)
    found = describe(world)
    assert (found.group_state, found.protocol_data) == ("CompletingRebalance", "")
    assign(consumer)
    found = describe(world)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.group_instance_id) == (consumer.member_id, "one")
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (
        subscription("t"),
        consumer.member_id.encode(),
    )


def test_groups_are_listed_by_state_and_type(world: World) -> None:
    settle(Consumer(world, "running"))
    commit(world, "simple", 1)

    def listed(**filters: list[str]) -> set[str]:
        return {group.group_id for group in world.ask(ListGroupsRequest(**filters)).groups}

    assert listed() == {"running", "simple"}
    assert listed(states_filter=["stable"]) == {"running"}
    assert listed(states_filter=["Empty"]) == {"simple"}
    assert listed(types_filter=["classic"]) == {"running", "simple"}
    assert listed(types_filter=["consumer"]) == set()


def test_a_group_is_deleted_when_it_is_empty(world: World) -> None:
    consumer = Consumer(world)
    settle(consumer)
    consumer.commit(5)

    def delete() -> list[int]:
        answer = world.ask(DeleteGroupsRequest(groups_names=[GROUP, "nothing"]))
        return [result.error_code for result in answer.results]

    assert delete() == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    consumer.leave()
    assert delete() == [0, ErrorCode.GROUP_ID_NOT_FOUND]
    assert describe(world).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    world.restart()
    assert describe(world).error_code == ErrorCode.GROUP_ID_NOT_FOUND


# -- another broker, or the same one again


def test_a_group_goes_on_after_a_restart(world: World) -> None:
    first, second = Consumer(world, instance="one"), Consumer(world)
    settle(first, second)
    world.restart()
    assert (first.heartbeat(), second.heartbeat()) == (0, 0)
    assert second.send_sync().answer.assignment == second.member_id.encode()
    pass_time(world, SESSION_MS)
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_join_that_waited_is_told_when_the_coordinator_goes(world: World) -> None:
    waiting = Consumer(world).begin_join()
    groups = world.services.groups
    place = groups.partition_of(GROUP)
    neighbour = next(name for name in "abcdefhijk" if groups.partition_of(name) == place)
    partition = world.replicas.partition(TopicPartition("__consumer_offsets", place))
    assert partition is not None
    partition.is_leader = False
    assert commit(world, neighbour, 1) == ErrorCode.NOT_COORDINATOR
    assert waiting.answer.error_code == ErrorCode.NOT_COORDINATOR
    partition.is_leader = True


def test_what_members_say_of_themselves_has_a_limit(make_world: MakeWorld) -> None:
    world = make_world()
    greedy = Consumer(world, metadata=bytes(room.MAX_MEMBER_BYTES + 1))
    assert greedy.send_join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    twice = Consumer(world, metadata=bytes(room.MAX_MEMBER_BYTES // 2 + 1), protocols=("range", "sticky"))
    assert twice.send_join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_what_all_members_say_together_has_a_limit(make_world: MakeWorld) -> None:
    world = make_world()
    large = [
        Consumer(world, metadata=bytes(room.MAX_MEMBER_BYTES), instance=str(number)) for number in range(16)
    ]
    for one in large:
        assert not one.send_join().answers
    late = Consumer(world, instance="late")
    assert late.send_join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    again = Consumer(world, instance="3")
    assert not again.send_join().answers  # it says less than the one whose place it takes
    assert not late.send_join().answers
