"""Groups that change from the classic to the newer protocol while they are at work, and back."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.conversation.members import HEARTBEAT, JOIN, LEAVE, SYNC, Member, await_coordinator, subscription
from tests.conversation.modern_members import Modern, describe
from tests.conversation.talk import Talk

TOPIC = "migrated"
DESCRIBE_CLASSIC = 6


def script(talk: Talk) -> None:
    await_coordinator(talk)
    talk.topic(TOPIC, 4)
    talk.settle()
    _not_upgraded(talk)
    _there_and_back(talk)
    _static(talk)
    _empty(talk)


def _member(talk: Talk, group: str, **other: Any) -> Member:
    return Member(talk, group, protocols={"range": subscription(TOPIC)}, **other)


def _assignment(*numbers: int) -> bytes:
    name = TOPIC.encode()
    partitions = b"".join(number.to_bytes(4, "big") for number in numbers)
    head = b"\0\0" + b"\0\0\0\1" + len(name).to_bytes(2, "big") + name
    return head + len(numbers).to_bytes(4, "big") + partitions + b"\xff\xff\xff\xff"


def _not_upgraded(talk: Talk) -> None:
    other = Member(talk, "not-consumers", protocol_type="connect", protocols={"any": b"x"})
    other.settle()
    Modern(talk, "not-consumers", "new").join("not a group of consumers", TOPIC)
    strange = _member(talk, "strange")
    strange.join()
    strange.sync({strange.id: b"\0\0 what"})
    Modern(talk, "strange", "new").join("a strange assignment", TOPIC)
    custom = _member(talk, "custom")
    custom.join()
    custom.sync({custom.id: _assignment(0)[:-4] + b"\0\0\0\1x"})
    Modern(talk, "custom", "new").join("an assignment with data of its own", TOPIC)
    Modern(talk, "custom", "new").beat("no group of the newer kind", member_epoch=1)
    Modern(talk, "custom", "new").beat("leaves a classic group", member_epoch=-1)
    describe(talk, "a classic group", "custom")


def _there_and_back(talk: Talk) -> None:
    group = "upgraded"
    old = _member(talk, group)
    old.join()
    old.sync({old.id: _assignment(0, 1, 2, 3)})
    new = Modern(talk, group, "new")
    new.join("the new one joins", TOPIC)
    describe(talk, "upgraded", group)
    talk.ask("upgraded, as a classic group", DESCRIBE_CLASSIC, DescribeGroupsRequest(groups=[group]))
    talk.ask("the old one is to join", HEARTBEAT, old.beating())
    talk.ask("another generation", HEARTBEAT, old.beating(generation_id=7))
    talk.ask("by the other protocol", HEARTBEAT, old.beating(member_id="new", generation_id=new.epoch))
    talk.ask("nobody", HEARTBEAT, old.beating(member_id="nobody"))
    _commits(talk, group, old)
    talk.ask("syncs too early", SYNC, old.syncing())
    talk.ask("another protocol", JOIN, old.joining(protocol_type="connect"))
    talk.ask("without id", JOIN, _member(talk, group).joining(), only=_forget_id)
    _rejoin(talk, old, "joins with what it had", 0, 1, 2, 3)
    describe(talk, "has to let go", group)
    talk.ask("is to let go", HEARTBEAT, old.beating())
    talk.ask("syncs", SYNC, old.syncing())
    talk.ask("syncs by another name", SYNC, old.syncing(protocol_name="roundrobin"))
    _rejoin(talk, old, "joins with what it keeps", 0, 1)
    talk.ask("syncs again", SYNC, old.syncing())
    talk.ask("is content", HEARTBEAT, old.beating())
    new.beat("the new one gets some")
    describe(talk, "both are content", group)
    _leaves(talk, new, old)


def _rejoin(talk: Talk, member: Member, step: str, *numbers: int) -> None:
    """Join again, and say which partitions are there."""
    name = TOPIC.encode()
    partitions = b"".join(number.to_bytes(4, "big") for number in numbers)
    owned = b"\0\0\0\1" + len(name).to_bytes(2, "big") + name + len(numbers).to_bytes(4, "big") + partitions
    member.protocols = {"range": b"\0\1" + subscription(TOPIC)[2:] + owned}
    response = talk.ask(step, JOIN, member.joining())
    if response.error_code == 0:
        member.seen(response)


def _commits(talk: Talk, group: str, member: Member) -> None:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    for version in (8, 9):
        for step, generation in (("commits", member.generation), ("commits too late", 0)):
            request = OffsetCommitRequest(
                group_id=group, member_id=member.id, generation_id_or_member_epoch=generation, topics=topics
            )
            talk.ask(f"the old one {step}", version, request)


def _leaves(talk: Talk, new: Modern, old: Member) -> None:
    new.beat("the new one leaves", member_epoch=-1)
    describe(talk, "downgraded", old.group)
    request = DescribeGroupsRequest(groups=[old.group])
    talk.ask("downgraded, as a classic group", DESCRIBE_CLASSIC, request, only=_forget_metadata)
    talk.ask("is to join again", HEARTBEAT, old.beating(generation_id=old.generation))
    talk.ask("joins the classic group", JOIN, old.joining(), only=_forget_metadata)
    describe(talk, "classic", old.group)


def _static(talk: Talk) -> None:
    """A static member comes back by the other protocol."""
    group = "migrated-static"
    old = _member(talk, group, instance="i")
    old.join()
    old.sync({old.id: _assignment(0, 1, 2, 3)})
    new = Modern(talk, group, "new", instance="i")
    new.join("the instance joins by the newer protocol", TOPIC)
    describe(talk, "a static member, upgraded", group)
    talk.ask("the old id", HEARTBEAT, old.beating())
    again = _member(talk, group, instance="i")
    response = talk.ask(
        "the instance joins by the classic protocol", JOIN, again.joining(), only=_forget_metadata
    )
    again.seen(response)
    new.beat("the new id")
    request = DescribeGroupsRequest(groups=[group])
    talk.ask("a static member, downgraded", DESCRIBE_CLASSIC, request)
    talk.ask("it goes on", HEARTBEAT, again.beating())


def _empty(talk: Talk) -> None:
    """Who comes first decides what an empty group is."""
    group = "migrated-empty"
    new = Modern(talk, group, "new")
    new.join("a new group", TOPIC)
    new.beat("leaves it", member_epoch=-1)
    describe(talk, "an empty group", group)
    old = _member(talk, group)
    talk.ask("with an id that nobody has", JOIN, old.joining(member_id="what"))
    old.join()
    old.sync({old.id: _assignment(0)})
    talk.ask("a classic member comes", DESCRIBE_CLASSIC, DescribeGroupsRequest(groups=[group]))
    identity = [MemberIdentity(member_id=old.id)]
    talk.ask("and leaves", LEAVE, LeaveGroupRequest(group_id=group, members=identity))
    new.epoch = 0
    new.join("a new one comes", TOPIC)
    describe(talk, "a consumer group again", group)
    identities = [
        MemberIdentity(member_id="new"),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="", group_instance_id="nobody"),
    ]
    talk.ask("sent away", LEAVE, LeaveGroupRequest(group_id=group, members=identities))
    describe(talk, "empty again", group)


def _forget_id(response: Any) -> None:
    response.member_id = "an id"


def _forget_metadata(response: Any) -> None:
    """Members say what they have in a form that only they understand."""
