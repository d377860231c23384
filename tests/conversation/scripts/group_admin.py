"""DescribeGroups, ListGroups, DeleteGroups: groups as an administrator sees them."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.conversation.members import PREPARING, Member, await_coordinator, await_group
from tests.conversation.talk import Talk, versions

STABLE, STATIC, JOINING, SYNCING, EMPTY, OTHER, SIMPLE, PENDING = (
    f"admin-{name}"
    for name in ("stable", "static", "joining", "syncing", "empty", "other", "simple", "pending")
)
ALL = [STABLE, STATIC, JOINING, SYNCING, EMPTY, OTHER, SIMPLE, PENDING]
COMMIT, FETCH = 9, 9


def script(talk: Talk) -> None:
    await_coordinator(talk)
    talk.topic("admin", 2)
    _make(talk)
    for version in versions(DescribeGroupsRequest.API_KEY):
        _describe(talk, version)
    for version in versions(ListGroupsRequest.API_KEY):
        _list(talk, version)
    for version in versions(DeleteGroupsRequest.API_KEY):
        _delete(talk, version)


def _make(talk: Talk) -> None:
    """A group in every state."""
    Member(talk, STABLE).settle()
    Member(talk, STATIC, instance="one").settle()
    first, second = Member(talk, JOINING), Member(talk, JOINING)
    first.settle()
    second.begin_join("waits till the end")
    await_group(talk, JOINING, PREPARING, 2)
    Member(talk, SYNCING).join()
    gone = Member(talk, EMPTY)
    gone.settle()
    gone.leave()
    Member(talk, OTHER, protocol_type="connect", protocols={"any": b"x"}).settle()
    _commit(talk, SIMPLE)
    _commit(talk, "")
    Member(talk, PENDING).take_id()


def _commit(talk: Talk, group: str) -> None:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [OffsetCommitRequestTopic(name="admin", partitions=partitions)]
    talk.request(COMMIT, OffsetCommitRequest(group_id=group, topics=topics))


def _describe(talk: Talk, version: int) -> None:
    def ask(step: str, *groups: str, **other: Any) -> None:
        talk.ask(step, version, DescribeGroupsRequest(groups=list(groups), **other))

    for group in ALL:
        ask(group, group)
    ask("no groups")
    ask("an unknown group", "no-group")
    ask("no name", "")
    ask("two", STABLE, EMPTY)
    ask("a group twice", EMPTY, EMPTY)
    ask("good and bad", "no-group", STABLE, "")
    if version >= 3:
        ask("what is allowed", STABLE, "no-group", include_authorized_operations=True)


def _list(talk: Talk, version: int) -> None:
    def ask(step: str, **other: Any) -> None:
        talk.ask(step, version, ListGroupsRequest(**other), only=_of_this_script)

    ask("all")
    if version >= 4:
        for states in (
            ["Stable"], ["stable"], ["Empty", "PreparingRebalance"], ["CompletingRebalance"], ["Dead"],
            ["Nonsense"], ["Nonsense", "Stable"], [""], ["Assigning"], ["Unknown"],
        ):  # fmt: skip
            ask(f"state {' or '.join(states)}", states_filter=states)
    if version >= 5:
        for types in (
            ["classic"], ["Classic"], ["CLASSIC"], ["consumer"], ["share"], ["Nonsense"], ["Nonsense", "classic"], [""],
        ):  # fmt: skip
            ask(f"type {' or '.join(types)}", types_filter=types)
        ask("stable ones of a type", states_filter=["Stable"], types_filter=["classic"])
        ask("stable ones of another type", states_filter=["Stable"], types_filter=["consumer"])


def _of_this_script(response: Any) -> None:
    response.groups = [group for group in response.groups if group.group_id in ALL]


def _delete(talk: Talk, version: int) -> None:
    def ask(step: str, *groups: str) -> None:
        talk.ask(step, version, DeleteGroupsRequest(groups_names=list(groups)))

    simple, empty = f"delete-simple-{version}", f"delete-empty-{version}"
    _commit(talk, simple)
    member = Member(talk, empty)
    member.settle()
    _commit(talk, empty)
    ask("with a member", empty)
    member.leave()
    ask("nothing")
    ask("an unknown group", "no-group")
    ask("no name", "")
    ask("groups with members", STABLE, JOINING, SYNCING, OTHER)
    _commit(talk, "")
    ask("good and bad", simple, "no-group", STABLE, "")
    ask("again", simple)
    ask("twice", empty, empty)
    fetch = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in (simple, empty)]
    )
    talk.ask(f"after DeleteGroups v{version}", FETCH, fetch)
    described = DescribeGroupsRequest(groups=[simple, empty])
    talk.ask(f"after DeleteGroups v{version}", 5, described)
    pending = Member(talk, f"delete-pending-{version}")
    pending.take_id()
    ask("with an id that was given out", pending.group)
