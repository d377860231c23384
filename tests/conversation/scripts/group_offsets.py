"""OffsetCommit, OffsetFetch, OffsetDelete: how far groups are, and who may say so."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.protocol.message import Message
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.conversation.members import PREPARING, Member, await_coordinator, await_group, subscription
from tests.conversation.say import UNKNOWN_ID
from tests.conversation.talk import Talk, versions

COMMIT_BY_NAME, FETCH_BY_NAME, BY_ID = 9, 9, 10
MANY = 8  # OffsetFetch of many groups
UNKNOWN = "conversation-01234567-89ab-4cde-8f01-23456789abcd"
MAX_METADATA = 4096
TOPIC, OTHER = "offsets", "offsets-other"

# A topic of a request, and of each partition the fields that matter.
Commits = dict[str, list[dict[str, Any]]]


class _Offsets:
    """Requests in one version, with topics by name or by id as the version has it."""

    def __init__(self, talk: Talk, ids: dict[str, UUID]) -> None:
        self.talk = talk
        self.ids = {**ids, "no-topic": UNKNOWN_ID, "": UUID(int=0)}

    def commit(self, group: str, commits: Commits, **other: Any) -> OffsetCommitRequest:
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                topic_id=self.ids[name],
                partitions=[OffsetCommitRequestPartition(**fields) for fields in partitions],
            )
            for name, partitions in commits.items()
        ]
        return OffsetCommitRequest(group_id=group, topics=topics, **other)

    def fetch(self, version: int, group: str, wanted: dict[str, list[int]] | None, **other: Any) -> Message:
        if version < MANY:
            topics = (
                None
                if wanted is None
                else [
                    OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                    for name, numbers in wanted.items()
                ]
            )
            return OffsetFetchRequest(group_id=group, topics=topics, **other)
        return OffsetFetchRequest(groups=[self.of(group, wanted)], **other)

    def of(
        self, group: str, wanted: dict[str, list[int]] | None, member: str | None = None, epoch: int = -1
    ) -> OffsetFetchRequestGroup:
        topics = (
            None
            if wanted is None
            else [
                OffsetFetchRequestTopics(name=name, topic_id=self.ids[name], partition_indexes=numbers)
                for name, numbers in wanted.items()
            ]
        )
        return OffsetFetchRequestGroup(group_id=group, topics=topics, member_id=member, member_epoch=epoch)


def script(talk: Talk) -> None:
    await_coordinator(talk)
    say = _Offsets(talk, {name: talk.topic(name, 2) for name in (TOPIC, OTHER)})
    for version in versions(OffsetCommitRequest.API_KEY):
        _commit(talk, say, version)
        _commit_as_member(talk, say, version)
    _prepare(talk, say)
    for version in versions(OffsetFetchRequest.API_KEY):
        _fetch(talk, say, version)
        if version >= MANY:
            _fetch_many(talk, say, version)
    _delete(talk, say)
    _made_anew(talk, say)


def _at(offset: int = 5, partition: int = 0, **other: Any) -> dict[str, Any]:
    return {"partition_index": partition, "committed_offset": offset, **other}


def _commit(talk: Talk, say: _Offsets, version: int) -> None:
    """Without members: a consumer that only keeps its offsets here."""
    group = f"commit-{version}"

    def ask(step: str, commits: Commits, group_id: str = group, **other: Any) -> None:
        talk.ask(step, version, say.commit(group_id, commits, **other))

    def read_back(step: str) -> None:
        wanted = {TOPIC: [0, 1], OTHER: [0]}
        talk.ask(f"after v{version}: {step}", FETCH_BY_NAME, say.fetch(FETCH_BY_NAME, group, wanted))

    one = {TOPIC: [_at()]}
    ask("a generation of a group that is not there", one, generation_id_or_member_epoch=0)
    ask("a member of a group that is not there", one, member_id=UNKNOWN)
    ask("a member and a generation", one, member_id=UNKNOWN, generation_id_or_member_epoch=3)
    ask("an offset", one)
    read_back("an offset")
    ask("two topics", {TOPIC: [_at(6, 1, committed_metadata="m"), _at(7)], OTHER: [_at(8)]})
    read_back("two topics")
    ask("with a leader epoch", {TOPIC: [_at(9, committed_leader_epoch=3)]})
    ask("null metadata", {TOPIC: [_at(10, 1, committed_metadata=None)]})
    read_back("epoch and null")
    ask("a smaller offset", {TOPIC: [_at(1)]})
    ask("a negative offset", {TOPIC: [_at(-1, 1)]})
    ask("a very negative offset", {OTHER: [_at(-7)]})
    read_back("smaller and negative")
    ask("the longest metadata", {TOPIC: [_at(committed_metadata="x" * MAX_METADATA)]})
    ask("metadata too long", {TOPIC: [_at(committed_metadata="x" * (MAX_METADATA + 1)), _at(3, 1)]})
    ask("metadata that is long in bytes", {TOPIC: [_at(committed_metadata="ä" * MAX_METADATA)]})
    read_back("long metadata")
    ask("an unknown topic", {"no-topic": [_at()]})
    ask("an unknown partition", {TOPIC: [_at(5, 9), _at(4)]})
    ask("a negative partition", {TOPIC: [_at(5, -1)]})
    ask("known and unknown", {TOPIC: [_at(2)], "no-topic": [_at()]})
    ask("a partition twice", {TOPIC: [_at(1), _at(2)]})
    read_back("known, unknown and twice")
    ask("no topics", {})
    ask("no partitions", {TOPIC: []})
    ask("no group", one, "")
    ask("no topic", {"": [_at()]})
    if version < 5:
        ask("with a retention", one, retention_time_ms=60_000)
        ask("with a retention of nothing", one, retention_time_ms=0)
    if version >= 7:
        ask("an instance", one, group_instance_id="one")
    ask("a generation", one, generation_id_or_member_epoch=0)
    ask("a negative generation", one, generation_id_or_member_epoch=-2)
    ask("a member", one, member_id=UNKNOWN)


def _commit_as_member(talk: Talk, say: _Offsets, version: int) -> None:
    group = f"member-{version}"
    first, second = Member(talk, group), Member(talk, group)

    def ask(step: str, member: Member = first, **other: Any) -> None:
        fields = {
            "generation_id_or_member_epoch": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
            **other,
        }
        talk.ask(step, version, say.commit(group, {TOPIC: [_at(), _at(6, 1)]}, **fields))

    first.take_id()
    ask("a member that has only its id")
    ask("outside of a group that nobody is in", member_id="", generation_id_or_member_epoch=-1)
    first.join()
    ask("before it has synced")
    first.sync()
    ask("stable")
    ask("an older generation", generation_id_or_member_epoch=0)
    ask("a later generation", generation_id_or_member_epoch=9)
    ask("no generation", generation_id_or_member_epoch=-1)
    ask("an unknown member", member_id=UNKNOWN)
    ask("no member", member_id="")
    ask("from outside", member_id="", generation_id_or_member_epoch=-1)
    if version >= 7:
        ask("an instance that is not there", group_instance_id="one")
    joined = second.begin_join(f"for OffsetCommit v{version}")
    await_group(talk, group, PREPARING, 2)
    ask("while others join")
    first.leave()
    joined()
    ask("after it has left")
    second.leave()
    ask("after all have left")
    ask("after all have left, from outside", member_id="", generation_id_or_member_epoch=-1)


def _prepare(talk: Talk, say: _Offsets) -> None:
    """Groups to fetch from."""
    commits = {
        TOPIC: [_at(5, 0, committed_leader_epoch=2, committed_metadata="five"), _at(0, 1)],
        OTHER: [_at(7)],
    }
    talk.request(COMMIT_BY_NAME, say.commit("fetched", commits))
    talk.request(COMMIT_BY_NAME, say.commit("fetched-too", {TOPIC: [_at(1)]}))
    member = Member(talk, "fetched-empty")
    member.settle()


def _fetch(talk: Talk, say: _Offsets, version: int) -> None:
    def ask(step: str, wanted: dict[str, list[int]] | None, group: str = "fetched", **other: Any) -> None:
        talk.ask(step, version, say.fetch(version, group, wanted, **other))

    ask("a partition", {TOPIC: [0]})
    ask("two topics", {TOPIC: [0, 1], OTHER: [0]})
    ask("a partition without an offset", {OTHER: [0, 1]})
    ask("an unknown partition", {TOPIC: [0, 9, -1]})
    ask("an unknown topic", {"no-topic": [0], TOPIC: [1]})
    ask("a partition twice", {TOPIC: [0, 0]})
    ask("no partitions", {TOPIC: []})
    ask("no topics", {})
    ask("no topic", {"": [0]})
    ask("an unknown group", {TOPIC: [0]}, "no-group")
    ask("a group without offsets", {TOPIC: [0]}, "fetched-empty")
    ask("no group", {TOPIC: [0]}, "")
    if version >= 2:
        ask("everything", None)
        ask("everything of an unknown group", None, "no-group")
        ask("everything of a group without offsets", None, "fetched-empty")
    if version >= 7:
        ask("stable ones", {TOPIC: [0]}, require_stable=True)
        ask("all stable ones", None, require_stable=True)


def _fetch_many(talk: Talk, say: _Offsets, version: int) -> None:
    def ask(step: str, *groups: OffsetFetchRequestGroup, **other: Any) -> None:
        talk.ask(step, version, OffsetFetchRequest(groups=list(groups), **other))

    ask("no groups")
    ask("two groups", say.of("fetched", {TOPIC: [0]}), say.of("fetched-too", None))
    ask("a group twice", say.of("fetched", {TOPIC: [0]}), say.of("fetched", {OTHER: [0]}))
    ask(
        "good and bad",
        say.of("no-group", {TOPIC: [0]}),
        say.of("", None),
        say.of("fetched", {TOPIC: [1], "no-topic": [0]}),
        require_stable=True,
    )
    if version >= 9:
        ask("as a member of a group without members", say.of("fetched", {TOPIC: [0]}, UNKNOWN, 3))
        ask("as an unknown member", say.of("fetched-empty", {TOPIC: [0]}, UNKNOWN, 1))
        ask("as nobody, in a later epoch", say.of("fetched-empty", {TOPIC: [0]}, None, 7))
        ask("as a member of an unknown group", say.of("no-group", {TOPIC: [0]}, UNKNOWN, 1))


def _delete(talk: Talk, say: _Offsets) -> None:
    def ask(step: str, group: str, wanted: dict[str, list[int]]) -> None:
        topics = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=at) for at in numbers]
            )
            for name, numbers in wanted.items()
        ]
        talk.ask(step, 0, OffsetDeleteRequest(group_id=group, topics=topics))

    commits = {TOPIC: [_at(5), _at(6, 1)], OTHER: [_at(7), _at(8, 1)]}
    ask("an unknown group", "no-group", {TOPIC: [0]})
    ask("no group", "", {TOPIC: [0]})
    group = "deleted"
    talk.request(COMMIT_BY_NAME, say.commit(group, commits))
    ask("one", group, {TOPIC: [0]})
    ask("the same again", group, {TOPIC: [0]})
    ask("known and unknown", group, {TOPIC: [1, 9], "no-topic": [0]})
    ask("no topics", group, {})
    ask("no partitions", group, {TOPIC: []})
    ask("a partition twice", group, {OTHER: [0, 0]})
    talk.ask("after some were deleted", FETCH_BY_NAME, say.fetch(FETCH_BY_NAME, group, None))
    ask("the last one", group, {OTHER: [1]})
    ask("one of a group that has none", group, {OTHER: [1]})

    member = Member(talk, "deleted-member", protocols={"range": subscription(TOPIC)})
    talk.request(COMMIT_BY_NAME, say.commit(member.group, commits))
    member.join()
    ask("before all is synced", member.group, {TOPIC: [0], OTHER: [0]})
    member.sync()
    ask("what is subscribed to and what is not", member.group, {TOPIC: [0], OTHER: [0, 1]})
    talk.ask("after one was deleted", FETCH_BY_NAME, say.fetch(FETCH_BY_NAME, member.group, None))
    member.leave()
    ask("when nobody is subscribed", member.group, {TOPIC: [0]})

    other = Member(talk, "deleted-other", protocol_type="connect", protocols={"any": b"x"})
    talk.request(COMMIT_BY_NAME, say.commit(other.group, commits))
    other.settle()
    ask("of a group that is not of consumers", other.group, {TOPIC: [0]})
    other.leave()
    ask("of an empty group that is not of consumers", other.group, {TOPIC: [0]})


def _made_anew(talk: Talk, say: _Offsets) -> None:
    """By id, an offset belongs to one topic; a later one of the same name has another."""
    from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    name = "offsets-anew"
    say.ids[name] = talk.topic(name, 1)
    talk.ask("a topic that will go", BY_ID, say.commit("anew", {name: [_at()]}))
    talk.ask("a topic that will go", BY_ID, say.fetch(BY_ID, "anew", {name: [0]}))
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
    talk.request(6, request)
    talk.await_no_topic(name)
    talk.settle()
    talk.ask("a topic that is gone", BY_ID, say.commit("anew", {name: [_at()]}))
    talk.ask("a topic that is gone", BY_ID, say.fetch(BY_ID, "anew", {name: [0]}))
    everything = say.fetch(BY_ID, "anew", None)
    talk.until(BY_ID, everything, lambda response: not response.groups[0].topics)
    talk.ask("all, when its topic is gone", BY_ID, everything)
    say.ids[name] = talk.topic(name, 1)
    talk.ask("a topic that was made anew", BY_ID, say.fetch(BY_ID, "anew", {name: [0]}))
