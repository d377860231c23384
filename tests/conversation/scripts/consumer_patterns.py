"""Members of the newer protocol that want topics by a pattern, and what happens when topics come and go."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.conversation.members import await_coordinator
from tests.conversation.modern_members import Modern, describe, has
from tests.conversation.talk import Talk

GROUP = "patterns"
HEARTBEAT = 1


def script(talk: Talk) -> None:
    await_coordinator(talk)
    for name in ("pattern-a", "pattern-b", "pattern-a.x_1", "PATTERN-C"):
        talk.topic(name, 2)
    talk.settle()
    for number, pattern in enumerate(
        (
            "pattern-a",
            "pattern-[a-z]",
            "pattern-.*",
            "(?i)pattern-c",
            "pattern-(a|b)",
            r"pattern-\w",
            r"pattern-\w\.x_\d",
            "pattern",
            "^pattern-b$",
            r"\Qpattern-a.x_1\E",
            "[[:upper:]]+-C",
            r"\pL+-\p{Lu}",
            "(pattern-){1,2}?a",
            r"pattern\b-b",
            "pattern-a|pattern-b",
            r"pattern-\x61",
        )
    ):
        _one(talk, f"{GROUP}-{number}", pattern)
    _changes(talk)
    _large(talk)
    _topics(talk)


def _joined(talk: Talk, member: Modern, step: str, pattern: str, **other: Any) -> None:
    """Join, and wait until the pattern is known: then there are partitions, or a second epoch."""
    member.join(step, subscribed_topic_names=None, subscribed_topic_regex=pattern, **other)

    def is_known(response: Any) -> bool:
        member.epoch = response.member_epoch or member.epoch
        return response.assignment is not None

    talk.until(HEARTBEAT, member.beating(), is_known)


def _one(talk: Talk, group: str, pattern: str) -> None:
    member = Modern(talk, group, "one")
    if pattern == "pattern":  # stands for nothing: there is no second epoch to wait for
        member.join(f"joins by {pattern}", subscribed_topic_names=None, subscribed_topic_regex=pattern)
    else:
        _joined(talk, member, f"joins by {pattern}", pattern)
    describe(talk, f"by {pattern}", group)
    member.beat(f"leaves {pattern}", member_epoch=-1)


def _changes(talk: Talk) -> None:
    """A member that had a pattern has another one, or names, or both."""
    one, two = Modern(talk, GROUP, "one"), Modern(talk, GROUP, "two")
    _joined(talk, one, "has a pattern", "pattern-a")
    one.beat("a wrong one", subscribed_topic_regex="pattern-(")
    describe(talk, "as before", GROUP)
    one.beat("names instead", subscribed_topic_regex="", subscribed_topic_names=["pattern-b"])
    describe(talk, "names instead", GROUP)
    one.beat("leaves", member_epoch=-1)
    describe(talk, "nobody is left", GROUP)
    two.join("an empty pattern", subscribed_topic_names=None, subscribed_topic_regex="")
    two.beat("leaves too", member_epoch=-1)


def _large(talk: Talk) -> None:
    """Patterns that take their time."""
    for number, (step, pattern) in enumerate(
        (("a long pattern", "a" * 6000), ("a pattern with many states", "(?:abc{500}){1}" * 10))
    ):
        member = Modern(talk, f"large-patterns-{number}", "one")
        member.join(step, subscribed_topic_names=None, subscribed_topic_regex=pattern)


def _topics(talk: Talk) -> None:
    """Topics get partitions, are made and deleted while they are wanted."""
    talk.topic("wanted", 1)
    talk.settle()
    member = Modern(talk, "topics-change", "one")
    member.join("before", "wanted", "wanted-later")
    more = CreatePartitionsTopic(name="wanted", count=3)
    talk.request(3, CreatePartitionsRequest(topics=[more], timeout_ms=30_000))
    talk.await_topic("wanted", 3)
    talk.settle()
    _until_changed(talk, member)
    describe(talk, "more partitions", "topics-change")
    later_id = talk.topic("wanted-later", 1)
    talk.settle()
    _until_changed(talk, member)
    describe(talk, "a topic more", "topics-change")
    talk.request(5, DeleteTopicsRequest(topic_names=["wanted"], timeout_ms=30_000))
    talk.await_no_topic("wanted")
    talk.settle()
    _until_changed(talk, member)
    member.beat("it has let go", topic_partitions=has(later_id, 0))
    describe(talk, "a topic less", "topics-change")
    member.beat("leaves the topics", member_epoch=-1)


def _until_changed(talk: Talk, member: Modern) -> None:
    response = talk.until(HEARTBEAT, member.beating(), lambda response: response.assignment is not None)
    member.epoch = response.member_epoch
