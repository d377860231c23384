"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: members that come, share, and go."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest
from tests.conversation.members import (
    COMPLETING,
    EMPTY,
    JOIN,
    PREPARING,
    STABLE,
    SYNC,
    Member,
    await_coordinator,
    await_group,
    protocols,
    subscription,
)
from tests.conversation.talk import Talk, versions

UNKNOWN = "conversation-01234567-89ab-4cde-8f01-23456789abcd"  # an id that nobody was given
MAX_SIZE = 4


def script(talk: Talk) -> None:
    await_coordinator(talk)
    talk.topic("groups", 4)
    for version in versions(JoinGroupRequest.API_KEY):
        _join(talk, version)
        _join_company(talk, version)
        _protocols(talk, version)
    for version in versions(SyncGroupRequest.API_KEY):
        _sync(talk, version)
    for version in versions(HeartbeatRequest.API_KEY):
        _heartbeat(talk, version)
    for version in versions(LeaveGroupRequest.API_KEY):
        if version < 3:
            _leave(talk, version)
        else:
            _leave_many(talk, version)
    _too_many(talk)
    _crowded(talk)
    _impatient(talk)
    _timeouts(talk)


def _join(talk: Talk, version: int) -> None:
    """One member alone."""
    member = Member(talk, f"join-{version}")

    def ask(step: str, **other: Any) -> Any:
        return talk.ask(step, version, member.joining(**other))

    ask("an id that was not given out", member_id=UNKNOWN)
    ask("no group", group_id="")
    ask("no group, with an id", group_id="", member_id=UNKNOWN)
    ask("a session that is too short", session_timeout_ms=99)
    ask("a session that is too long", session_timeout_ms=1_800_001)
    ask("a negative session", session_timeout_ms=-1)
    ask("no protocols", protocols=[])
    ask("no type of protocols", protocol_type="")
    if version >= 4:
        member.seen(ask("without an id"))
        ask("another id than was given out", member_id=UNKNOWN)
    member.seen(ask("first of all"))
    ask("again before it has synced")
    member.seen(ask("with another protocol before it has synced", protocols=protocols({"other": b"o"})))
    member.sync({member.id: b"mine"})
    ask("another id", member_id=UNKNOWN)
    member.seen(ask("the leader again"))
    ask("another type", protocol_type="connect")
    member.leave()
    ask("after it has left")
    ask("after it has left, no protocols", protocols=[])
    if version < 4:
        ask("a new member of an empty group", member_id="")
    twice = Member(talk, f"twice-{version}")
    twice.settle()
    ask(
        "a protocol twice", group_id=twice.group, member_id=twice.id, protocols=protocols({"range": b"1"}) * 2
    )


def _join_company(talk: Talk, version: int) -> None:
    """Three members, one after the other."""
    group = f"company-{version}"
    first, second, third = (Member(talk, group) for _ in range(3))
    first.settle()
    second_joined = second.begin_join("the second", version)
    await_group(talk, group, PREPARING, 2)
    first_joined = first.begin_join("the first joins the second", version)
    first_joined(), second_joined()
    talk.ask("the second again", version, second.joining())
    second_synced = talk.begin(f"the second of v{version}", SYNC, second.syncing())
    talk.ask(f"the first of v{version}", SYNC, first.syncing({first.id: b"one", second.id: b"two"}))
    second_synced()
    talk.ask("the second again when all is stable", version, second.joining())
    talk.ask(f"the second again, v{version}", SYNC, second.syncing())

    third_joined = third.begin_join("the third", version)
    await_group(talk, group, PREPARING, 3)
    again = second.begin_join("the second joins the third", version)
    first_joined = first.begin_join("the first joins the third", version)
    first_joined(), again(), third_joined()
    await_group(talk, group, COMPLETING, 3)
    second.protocols = {"range": subscription("groups", "other")}
    again = second.begin_join("the second changes its mind", version)
    await_group(talk, group, PREPARING, 3)
    first_joined = first.begin_join("the first hears of it", version)
    third_joined = third.begin_join("the third hears of it", version)
    again(), first_joined(), third_joined()
    for member in (first, second, third):
        member.leave()


def _protocols(talk: Talk, version: int) -> None:
    """Members that have to agree on a protocol."""
    group = f"protocols-{version}"
    first = Member(talk, group, protocols={"range": b"r1", "roundrobin": b"rr1"}, protocol_type="any")
    second = Member(
        talk, group, protocols={"roundrobin": b"rr2", "sticky": b"s2", "range": b"r2"}, protocol_type="any"
    )
    first.settle()

    def ask(step: str, **other: Any) -> None:
        talk.ask(step, version, Member(talk, group, **other).joining())

    ask("a protocol that nobody has", protocols={"sticky": b"s"}, protocol_type="any")
    ask("a type that nobody has", protocol_type="consumer")
    second_joined = second.begin_join("roundrobin, sticky or range", version)
    await_group(talk, group, PREPARING, 2)
    first_joined = first.begin_join("range or roundrobin", version)
    first_joined(), second_joined()
    ask("a protocol that only one has", protocols={"sticky": b"s"}, protocol_type="any")
    third = Member(talk, group, protocols={"roundrobin": b"rr3"}, protocol_type="any")
    third_joined = third.begin_join("roundrobin only", version)
    await_group(talk, group, PREPARING, 3)
    second_joined = second.begin_join("the second likes roundrobin", version)
    first_joined = first.begin_join("the first likes range", version)
    first_joined(), second_joined(), third_joined()
    for member in (first, second, third):
        member.leave()


def _sync(talk: Talk, version: int) -> None:
    group = f"sync-{version}"
    first, second = Member(talk, group), Member(talk, group)

    def ask(step: str, assignments: dict[str, bytes] | None = None, **other: Any) -> None:
        talk.ask(step, version, first.syncing(assignments, **other))

    ask("a group that is not there", group_id="no-group", member_id=UNKNOWN)
    ask("no group", group_id="")
    first.take_id()
    ask("before it has joined")
    first.join()
    ask("an unknown member", member_id=UNKNOWN)
    ask("no member", member_id="")
    ask("an older generation", generation_id=0)
    ask("a later generation", generation_id=7)
    if version >= 5:
        ask("another type", protocol_type="connect")
        ask("another protocol", protocol_name="sticky")
        ask("no type", protocol_type=None)
        ask("no protocol", protocol_name=None)
    ask("the leader", {first.id: b"mine", UNKNOWN: b"nobody's"})
    ask("the leader again")
    ask("the leader again with something else", {first.id: b"other"})
    second_joined = second.begin_join(f"for SyncGroup v{version}")
    await_group(talk, group, PREPARING, 2)
    ask("while others join")
    first_joined = first.begin_join(f"first, for SyncGroup v{version}")
    first_joined(), second_joined()
    synced = talk.begin("the second", version, second.syncing())
    ask("the first gives nothing to the second", {first.id: b"mine"})
    synced()
    first.leave()
    talk.ask("the second when the first has left", version, second.syncing())
    second.leave()
    ask("an empty group")


def _heartbeat(talk: Talk, version: int) -> None:
    group = f"heartbeat-{version}"
    first, second = Member(talk, group), Member(talk, group)

    def ask(step: str, **other: Any) -> None:
        talk.ask(step, version, first.beating(**other))

    ask("a group that is not there", group_id="no-group")
    ask("no group", group_id="")
    first.take_id()
    ask("before it has joined")
    first.join()
    ask("before it has synced")
    first.sync()
    ask("stable")
    ask("an unknown member", member_id=UNKNOWN)
    ask("no member", member_id="")
    ask("an older generation", generation_id=0)
    ask("a later generation", generation_id=2)
    second_joined = second.begin_join(f"for Heartbeat v{version}")
    await_group(talk, group, PREPARING, 2)
    ask("while others join")
    first.leave()
    ask("after it has left")
    second_joined()
    second.leave()
    ask("an empty group")


def _leave(talk: Talk, version: int) -> None:
    group = f"leave-{version}"
    member, second = Member(talk, group), Member(talk, group)

    def ask(step: str, member_id: str, group_id: str = group) -> None:
        talk.ask(step, version, LeaveGroupRequest(group_id=group_id, member_id=member_id))

    ask("a group that is not there", UNKNOWN, "no-group")
    ask("no group", UNKNOWN, "")
    member.settle()
    ask("an unknown member", UNKNOWN)
    ask("no member", "")
    second.take_id()
    ask("a member that has only its id", second.id)
    ask("a member", member.id)
    ask("a member again", member.id)


def _leave_many(talk: Talk, version: int) -> None:
    group = f"leave-{version}"
    first, second, third = Member(talk, group, instance="one"), Member(talk, group), Member(talk, group)

    def ask(step: str, *who: tuple[str, str | None], group_id: str = group) -> None:
        members = [
            MemberIdentity(member_id=member, group_instance_id=instance, reason="done")
            for member, instance in who
        ]
        talk.ask(step, version, LeaveGroupRequest(group_id=group_id, members=members))

    ask("a group that is not there", (UNKNOWN, None), group_id="no-group")
    ask("no group", (UNKNOWN, None), group_id="")
    ask("nobody of a group that is not there", group_id="no-group")
    first.settle()
    ask("nobody")
    ask("an unknown member", (UNKNOWN, None))
    ask("no member", ("", None))
    ask("an unknown instance", ("", "two"))
    ask("a member with another's instance", (UNKNOWN, "one"))
    ask("a member with an unknown instance", (first.id, "two"))
    second_joined = second.begin_join(f"for LeaveGroup v{version}")
    await_group(talk, group, PREPARING, 2)
    first_joined = first.begin_join(f"first, for LeaveGroup v{version}")
    first_joined(), second_joined()
    third.take_id()
    ask("good and bad", (UNKNOWN, None), (second.id, None), ("", "one"), (third.id, None), (second.id, None))
    await_group(talk, group, EMPTY, 0)
    ask("again", (second.id, None), ("", "one"))


def _too_many(talk: Talk) -> None:
    group = "too-many"
    members = [Member(talk, group) for _ in range(MAX_SIZE + 1)]
    members[0].settle()
    waiting = [
        member.begin_join(f"member {number} of many") for number, member in enumerate(members[1:MAX_SIZE], 1)
    ]
    await_group(talk, group, PREPARING, MAX_SIZE)
    waiting.append(members[0].begin_join("the first of many"))
    for wait in waiting:
        wait()
    talk.ask("one too many before they sync", JOIN, members[MAX_SIZE].joining())
    members[0].sync({member.id: b"some" for member in members[:MAX_SIZE]})
    talk.ask("one too many", JOIN, members[MAX_SIZE].joining())
    talk.ask("one too many in an old version", 3, members[MAX_SIZE].joining())
    talk.ask("one of the many again", JOIN, members[1].joining())
    for member in members[:MAX_SIZE]:
        member.leave()


def _crowded(talk: Talk) -> None:
    """While members join, those count who have: the first finds its place taken."""
    group = "crowded"
    members = [Member(talk, group, rebalance_ms=6000) for _ in range(MAX_SIZE + 1)]
    members[0].settle()
    waiting = [
        member.begin_join(f"{number} of the crowd", only=_not_who_leads)
        for number, member in enumerate(members[1:], 1)
    ]
    await_group(talk, group, PREPARING, MAX_SIZE + 1)
    talk.ask("the first finds no place", JOIN, members[0].joining())
    for wait in waiting:
        wait()
    for member in members[1:]:
        member.leave()


def _not_who_leads(response: Any) -> None:
    """Kafka takes any of the members when its leader goes."""
    response.leader, response.members = "", []


def _impatient(talk: Talk) -> None:
    """A member that asks again before it was answered: its connection was lost perhaps."""
    group = "impatient"
    first, second = Member(talk, group), Member(talk, group)
    first.settle()
    joined = second.begin_join("before the connection was lost")
    await_group(talk, group, PREPARING, 2)
    again = talk.begin("after the connection was lost", JOIN, second.joining())
    joined()
    first_joined = first.begin_join("the other one")
    second.seen(again())
    first_joined()
    synced = talk.begin("before the connection was lost", SYNC, second.syncing())
    again = talk.begin("after the connection was lost", SYNC, second.syncing())
    synced()
    first.sync({second.id: b"all"})
    again()
    second.leave()
    first.leave()


def _timeouts(talk: Talk) -> None:
    """Members that are not heard of. The broker's clock does it: the script waits for what must come."""
    short = Member(talk, "session", session_ms=4000)
    short.settle()
    await_group(talk, "session", EMPTY, 0)
    talk.ask("after its session has ended", 4, short.beating())
    talk.ask("after its session has ended", JOIN, short.joining())
    talk.ask("after its session has ended", SYNC, short.syncing())

    slow = Member(talk, "slow", rebalance_ms=4000)
    slow.settle()
    quick = Member(talk, "slow", rebalance_ms=4000)
    joined = quick.begin_join("does not wait for ever")
    await_group(talk, "slow", PREPARING, 2)
    joined()
    talk.ask("too late for the rebalance", 4, slow.beating())
    quick.sync({quick.id: b"all"})
    await_group(talk, "slow", STABLE, 1)
    quick.leave()

    lazy = Member(talk, "lazy", rebalance_ms=4000)
    lazy.join()
    await_group(talk, "lazy", EMPTY, 0)
    talk.ask("a leader that never says who gets what", 4, lazy.beating())

    other = Member(talk, "absent")
    other.settle()
    absent = Member(talk, "absent", session_ms=200)
    absent.take_id()
    waits = other.begin_join("waits for one that never comes with its id")
    waits()
    talk.ask("an id that was not used in time", JOIN, absent.joining())
    other.leave()
