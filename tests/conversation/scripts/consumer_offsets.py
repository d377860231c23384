"""Offsets of consumer groups of the newer protocol: commits and fetches with member epochs, and their deletion."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.conversation.members import await_coordinator
from tests.conversation.modern_members import Modern
from tests.conversation.talk import Talk

GROUP, TOPIC, OTHER = "modern-offsets", "modern-offsets", "modern-offsets-other"


def script(talk: Talk) -> None:
    await_coordinator(talk)
    topic_id = talk.topic(TOPIC, 2)
    talk.topic(OTHER)
    member = Modern(talk, GROUP, "one")
    member.join("joins", TOPIC)
    for version in range(2, 11):
        _commits(talk, version, topic_id)
    for version in range(8, 11):
        _fetches(talk, version, topic_id)
    _deletes(talk, "with a member")
    static = Modern(talk, GROUP, "static", instance="i")
    static.join("static joins", TOPIC)
    talk.ask("a static member", 9, _commit(topic_id, "static", 2, group_instance_id="i"))
    talk.ask("another instance", 9, _commit(topic_id, "static", 2, group_instance_id="j"))
    static.beat("static leaves", member_epoch=-2)
    talk.ask("a static member that is away", 9, _commit(topic_id, "static", 2, group_instance_id="i"))
    talk.ask("with the epoch of one that is away", 9, _commit(topic_id, "static", -2, group_instance_id="i"))
    static.beat("static leaves for good", member_epoch=-1)
    member.beat("leaves", member_epoch=-1)
    talk.ask("nobody is there", 9, _commit(topic_id, "", -1))
    talk.ask("nobody is there, but epoch 1", 9, _commit(topic_id, "one", 1))
    _deletes(talk, "without members")


def _commit(topic_id: UUID, member: str, epoch: int, **other: Any) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=partitions)]
    fields: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": member,
        "generation_id_or_member_epoch": epoch,
        "topics": topics,
        **other,
    }
    return OffsetCommitRequest(**fields)


def _commits(talk: Talk, version: int, topic_id: UUID) -> None:
    talk.ask("as it should be", version, _commit(topic_id, "one", 1))
    talk.ask("a greater epoch", version, _commit(topic_id, "one", 2))
    talk.ask("a smaller epoch", version, _commit(topic_id, "one", 0))
    talk.ask("an unknown member", version, _commit(topic_id, "nobody", 1))
    talk.ask("an administrator", version, _commit(topic_id, "", -1))
    talk.ask("an unknown group", version, _commit(topic_id, "one", 1, group_id="modern-nowhere"))


def _fetches(talk: Talk, version: int, topic_id: UUID) -> None:
    for step, member, epoch in (
        ("as it should be", "one", 1),
        ("a greater epoch", "one", 2),
        ("an unknown member", "nobody", 1),
        ("an administrator", None, -1),
        ("no epoch", "one", -1),
        ("no member", None, 1),
        ("an empty member", "", -1),
    ):
        topics = [OffsetFetchRequestTopics(name=TOPIC, topic_id=topic_id, partition_indexes=[0, 1])]
        for wanted, text in ((topics, ""), (None, ", everything")):
            group = OffsetFetchRequestGroup(
                group_id=GROUP, member_id=member, member_epoch=epoch, topics=wanted
            )
            talk.ask(f"{step}{text}", version, OffsetFetchRequest(groups=[group]))


def _deletes(talk: Talk, step: str) -> None:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in (TOPIC, OTHER)]
    talk.ask(step, 0, OffsetDeleteRequest(group_id=GROUP, topics=topics))
