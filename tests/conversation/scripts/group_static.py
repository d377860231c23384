"""Static members: instances that come back under a new id and find what they had."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.conversation.members import (
    HEARTBEAT,
    LEAVE,
    PREPARING,
    SYNC,
    Member,
    await_coordinator,
    await_group,
    protocols,
    subscription,
)
from tests.conversation.talk import Talk, versions

SINCE = 5
COMMIT = 9


def script(talk: Talk) -> None:
    await_coordinator(talk)
    talk.topic("static", 2)
    for version in versions(JoinGroupRequest.API_KEY):
        if version >= SINCE:
            _alone(talk, version)
            _together(talk, version)
            _in_between(talk, version)


def _alone(talk: Talk, version: int) -> None:
    """A leader that starts again."""
    member = Member(talk, f"static-{version}", instance="one")

    def ask(step: str, **other: Any) -> Any:
        return talk.ask(step, version, member.joining(**other))

    ask("an id that was not given out", member_id="conversation-x")
    member.seen(ask("first of all"))
    member.sync({member.id: b"mine"})
    old = member.id
    ask("an unknown instance with an id", group_instance_id="two")
    ask("no instance with the id", group_instance_id=None)
    member.seen(ask("again without an id", member_id=""))
    _fenced(talk, version, member, old, "alone")
    talk.ask(f"its assignment, v{version}", SYNC, member.syncing({member.id: b"other"}))
    ask("the old id", member_id=old)
    member.seen(ask("again with its id"))
    talk.ask(f"again, v{version}", SYNC, member.syncing({member.id: b"new"}))
    member.seen(ask("again with more to say", member_id="", protocols=protocols({"range": b"more"})))
    member.protocols = {"range": b"more"}
    talk.ask(f"after it has said more, v{version}", SYNC, member.syncing({member.id: b"newer"}))
    talk.ask(f"by its instance, v{version}", LEAVE, _leaving(member.group, ("", "one")))
    ask("after it has left")
    ask("after it has left, without an id", member_id="")


def _together(talk: Talk, version: int) -> None:
    """Two of them; first the follower starts again, then the leader."""
    group = f"statics-{version}"
    leader, follower = Member(talk, group, instance="one"), Member(talk, group, instance="two")
    leader.settle()
    joined = follower.begin_join("the second instance", version)
    await_group(talk, group, PREPARING, 2)
    leader_joined = leader.begin_join("the first joins the second", version)
    joined(), leader_joined()
    synced = talk.begin(f"the second, v{version}", SYNC, follower.syncing())
    leader.sync({leader.id: b"one", follower.id: b"two"})
    synced()
    for name, member in (("follower", follower), ("leader", leader)):
        old, member.id = member.id, ""
        member.seen(talk.ask(f"the {name} starts again", version, member.joining()))
        talk.ask(f"the {name} after its start, v{version}", SYNC, member.syncing())
        _fenced(talk, version, member, old, name)
    follower.protocols = {"range": subscription("static", "more")}
    follower.id = ""
    joined = follower.begin_join("the follower wants more", version)
    talk.ask(f"the leader, when the follower wants more, v{version}", HEARTBEAT, leader.beating())
    joined = _if_it_waits(joined, leader, version)
    talk.ask(f"another's id for an instance, v{version}", HEARTBEAT, leader.beating(group_instance_id="two"))
    talk.ask(f"an unknown instance, v{version}", HEARTBEAT, leader.beating(group_instance_id="three"))
    talk.ask(f"a member without its instance, v{version}", HEARTBEAT, leader.beating(group_instance_id=None))
    talk.ask(f"both at once, v{version}", LEAVE, _leaving(group, ("", "one"), (follower.id, "two")))


def _if_it_waits(joined: Any, leader: Member, version: int) -> Any:
    """Whether more to say leads to a rebalance is for the broker to know: all answers are written down."""
    code = leader.beat()
    if code:
        again = leader.begin_join("the leader, when the follower wants more", version)
        again()
    return joined()


def _in_between(talk: Talk, version: int) -> None:
    """Instances that start again while members join, and before they have synced."""
    group = f"between-{version}"
    first, second = Member(talk, group, instance="one"), Member(talk, group, instance="two")
    first.settle()
    joined = second.begin_join("the second, who will start again", version)
    await_group(talk, group, PREPARING, 2)
    old, second.id = second.id, ""
    again = talk.begin("the second again, while others join", version, second.joining())
    joined()
    first_joined = first.begin_join("the first, while the second starts", version)
    second.seen(again())
    first_joined()
    synced = talk.begin(f"the second, who will start again, v{version}", SYNC, second.syncing())
    old, second.id = second.id, ""
    again = talk.begin("the second again, before it has synced", version, second.joining())
    synced()
    first_joined = first.begin_join("the first, as the second was not in sync", version)
    second.seen(again())
    first_joined()
    _fenced(talk, version, second, old, "in between")
    for member in (second, first):
        member.leave()


def _fenced(talk: Talk, version: int, member: Member, old: str, when: str) -> None:
    """Whoever still has the old id hears that it is out."""
    step = f"the old id, {when}, v{version}"
    talk.ask(step, HEARTBEAT, member.beating(member_id=old))
    talk.ask(step, SYNC, member.syncing(member_id=old))
    talk.ask(step, LEAVE, _leaving(member.group, (old, member.instance)))
    talk.ask(
        f"{step}, without its instance", HEARTBEAT, member.beating(member_id=old, group_instance_id=None)
    )
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    commit = OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=old,
        group_instance_id=member.instance,
        topics=[OffsetCommitRequestTopic(name="static", partitions=partitions)],
    )
    talk.ask(step, COMMIT, commit)


def _leaving(group: str, *who: tuple[str, str | None]) -> LeaveGroupRequest:
    members = [MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in who]
    return LeaveGroupRequest(group_id=group, members=members)
