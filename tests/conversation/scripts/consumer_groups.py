"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: members of the newer protocol, from joining to leaving."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from tests.conversation.members import await_coordinator
from tests.conversation.modern_members import Modern, describe, has
from tests.conversation.say import UNKNOWN_ID
from tests.conversation.talk import Talk, versions

HEARTBEAT = ConsumerGroupHeartbeatRequest.API_KEY
TOPIC, OTHER = "modern", "modern-other"


def script(talk: Talk) -> None:
    await_coordinator(talk)
    topic_id = talk.topic(TOPIC, 4)
    other_id = talk.topic(OTHER, 2)
    for version in versions(HEARTBEAT):
        _wrong(talk, version)
        _two(talk, version, topic_id)
        _subscriptions(talk, version, topic_id, other_id)
        _static(talk, version, topic_id)
        _admin(talk, version)
    _own_id(talk)


def _wrong(talk: Talk, version: int) -> None:
    """Requests that cannot be right, and groups and members that are not there."""
    one = Modern(talk, f"modern-wrong-{version}", "one", version)
    for step, other in (
        ("empty group id", {"group_id": ""}),
        ("blank group id", {"group_id": "  "}),
        ("empty instance", {"instance_id": ""}),
        ("empty rack", {"rack_id": ""}),
        ("no rebalance timeout", {"rebalance_timeout_ms": -1}),
        ("no partitions", {"topic_partitions": None}),
        ("partitions when joining", {"topic_partitions": has(UNKNOWN_ID, 0)}),
        ("no topics", {"subscribed_topic_names": None}),
        ("unknown assignor", {"server_assignor": "best"}),
        ("empty assignor", {"server_assignor": ""}),
        ("empty id, epoch 5", {"member_id": "", "member_epoch": 5}),
        ("epoch -3", {"member_epoch": -3}),
        ("epoch -2 without instance", {"member_epoch": -2}),
        ("epoch -1 without id", {"member_id": "", "member_epoch": -1}),
        ("unknown group", {"member_epoch": 1}),
        ("leaves an unknown group", {"member_epoch": -1}),
        ("static leaves an unknown group", {"member_epoch": -2, "instance_id": "i"}),
    ):
        talk.ask(step, version, one.joining(**{"subscribed_topic_names": [TOPIC], **other}))
    if version >= 1:
        talk.ask("empty id", version, one.joining(TOPIC, member_id=""))
        for pattern in ("(", "a**", "[b", "(?=a)b", "a{1001}", "\\1"):
            request = one.joining(subscribed_topic_names=None, subscribed_topic_regex=pattern)
            talk.ask(f"pattern {pattern}", version, request)
    describe(talk, "nothing was made", one.group, version=version)


def _two(talk: Talk, version: int, topic_id: UUID) -> None:
    """Partitions move from one member to another."""
    group = f"modern-two-{version}"
    one, two = Modern(talk, group, "one", version), Modern(talk, group, "two", version)
    one.join("one joins", TOPIC, rack_id="r1")
    describe(talk, "one is there", group, version=version, include_authorized_operations=True)
    one.beat("a short heartbeat")
    one.beat(
        "the whole again",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=has(topic_id, 0, 1, 2, 3),
    )
    one.beat("says what it has", topic_partitions=has(topic_id, 0, 1, 2, 3))
    one.beat(
        "joins again",
        member_epoch=0,
        rebalance_timeout_ms=2000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    _epochs(talk, version, one)
    two.join("two joins", TOPIC)
    describe(talk, "two waits", group, version=version)
    two.beat("two waits")
    one.beat("one hears of it", topic_partitions=has(topic_id, 0, 1, 2, 3))
    one.beat("one has them still", topic_partitions=has(topic_id, 0, 1, 2, 3))
    one.beat("one does not say")
    describe(talk, "one lets go", group, version=version)
    one.beat("one has let go", topic_partitions=has(topic_id, 0, 1))
    two.beat("two gets some")
    two.beat("two has them", topic_partitions=has(topic_id, 2, 3))
    describe(talk, "both are settled", group, version=version)
    one.beat("the epoch before", member_epoch=1, topic_partitions=has(topic_id, 0))
    one.beat("the epoch before, too much", member_epoch=1, topic_partitions=has(topic_id, 0, 2))
    one.beat("the epoch before, nothing said", member_epoch=1)
    one.beat("one leaves", member_epoch=-1)
    describe(talk, "one has left", group, version=version)
    two.beat("two gets all")
    two.beat("two leaves", member_epoch=-1)
    two.beat("two leaves again", member_epoch=-1)
    describe(talk, "both have left", group, version=version)
    one.join("one comes back", TOPIC)
    one.beat("and goes", member_epoch=-1)


def _epochs(talk: Talk, version: int, member: Modern) -> None:
    talk.ask("a greater epoch", version, member.beating(member_epoch=7))
    talk.ask("an unknown member", version, member.beating(member_id="nobody", member_epoch=1))
    talk.ask("an unknown instance", version, member.beating(instance_id="i", member_epoch=1))
    talk.ask("an unknown member leaves", version, member.beating(member_id="nobody", member_epoch=-1))


def _subscriptions(talk: Talk, version: int, topic_id: UUID, other_id: UUID) -> None:
    group = f"modern-topics-{version}"
    one, two = Modern(talk, group, "one", version), Modern(talk, group, "two", version)
    one.join("wants nothing", subscribed_topic_names=[])
    one.beat("wants what is not there", subscribed_topic_names=["modern-nowhere"])
    one.beat("wants both", subscribed_topic_names=[TOPIC, OTHER, TOPIC])
    one.beat(
        "wants the other",
        subscribed_topic_names=[OTHER],
        topic_partitions=[*has(topic_id, 0, 1, 2, 3), *has(other_id, 0, 1)],
    )
    describe(talk, "wants the other", group, version=version)
    one.beat("has let go", topic_partitions=has(other_id, 0, 1))
    two.join("by range", TOPIC, OTHER, server_assignor="range")
    one.beat("gives one", topic_partitions=has(other_id, 0, 1))
    one.beat("has given one", topic_partitions=has(other_id, 0))
    two.beat("gets one")
    describe(talk, "by range", group, version=version)
    one.beat("not by range", server_assignor="uniform")
    describe(talk, "one for each", group, version=version)
    one.beat("leaves", member_epoch=-1)
    two.beat("leaves too", member_epoch=-1)


def _static(talk: Talk, version: int, topic_id: UUID) -> None:
    group = f"modern-static-{version}"
    one, again = (Modern(talk, group, name, version, instance="i") for name in ("one", "again"))
    one.join("static joins", TOPIC)
    again.join("the instance is taken", TOPIC)
    again.beat("another id", member_epoch=1)
    one.beat("static leaves for now", member_epoch=-2)
    describe(talk, "static is away", group, version=version)
    one.beat("static is away and is not", member_epoch=1)
    again.epoch = 0
    again.join("static is back", TOPIC)
    one.beat("the old id", member_epoch=1)
    one.beat("the old id leaves", member_epoch=-1)
    describe(talk, "static is back", group, version=version)
    again.beat("static has all", topic_partitions=has(topic_id, 0, 1, 2, 3))
    again.beat("static leaves", member_epoch=-1)
    describe(talk, "static has left", group, version=version)


def _admin(talk: Talk, version: int) -> None:
    """Requests about groups of either kind."""
    group, classic = f"modern-admin-{version}", f"modern-admin-{version}-classic"
    one = Modern(talk, group, "one", version)
    one.join("for the administrator", TOPIC)
    describe(talk, "none", version=version)
    describe(talk, "twice and nowhere", group, group, "modern-nowhere", "", version=version)
    for describe_version in (5, 6):
        talk.ask(f"v{version} as a classic group", describe_version, DescribeGroupsRequest(groups=[group]))
    for types in ([], ["consumer"], ["Consumer"], ["classic"], ["share"], ["what"]):
        request = ListGroupsRequest(types_filter=types)
        talk.ask(f"v{version} of types {types}", 5, request, only=lambda response: _only(response, group))
    for state in ("stable", "Assigning", "empty"):
        request = ListGroupsRequest(states_filter=[state])
        talk.ask(f"v{version} in state {state}", 4, request, only=lambda response: _only(response, group))
    talk.ask(f"v{version} of a group at work", 2, DeleteGroupsRequest(groups_names=[group]))
    one.beat("leaves the administrator alone", member_epoch=-1)
    talk.ask(f"v{version} of an empty group", 2, DeleteGroupsRequest(groups_names=[group, classic]))
    describe(talk, "deleted", group, version=version)


def _only(response: Any, group: str) -> None:
    response.groups = [found for found in response.groups if found.group_id == group]


def _own_id(talk: Talk) -> None:
    """Before v1 the broker gives a member its id."""
    one = Modern(talk, "modern-own-id", "", 0)

    def seen(response: Any) -> None:
        one.name, response.member_id = response.member_id, f"an id of {len(response.member_id)}"

    talk.ask("without id", 0, one.joining(TOPIC), only=seen)
    talk.ask("with the id given", 0, one.beating(member_epoch=1), only=seen)
