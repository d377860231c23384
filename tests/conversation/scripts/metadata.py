"""Metadata: all topics, some, by id, unknown ones, and those that are made because somebody asks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conversation.say import UNKNOWN_ID
from tests.conversation.talk import Talk, versions

KEY = MetadataRequest.API_KEY
NAME = "metadata"
OTHER = "metadata-other"
IDS_SINCE = 10
ALLOW_SINCE = 4
BAD_NAMES = {
    "empty": "",
    "a dot": ".",
    "two dots": "..",
    "a slash": "a/b",
    "250 letters": "x" * 250,
    "ä": "ä",
}


def script(talk: Talk) -> None:
    topic_id = talk.topic(NAME, 3)
    talk.topic(OTHER)
    talk.topic("__consumer_offsets", cleanup_policy="compact")
    for version in versions(KEY):
        _named(talk, version)
        _auto_created(talk, version)
        _operations(talk, version)
        if version >= IDS_SINCE:
            _by_id(talk, version, topic_id)
        everything = MetadataRequest(topics=[] if version == 0 else None)
        talk.ask("all topics", version, everything, only=_ours)
        talk.ask("no topics", version, MetadataRequest(topics=[]), only=_ours)


def _ours(response: Any) -> None:
    response.topics[:] = [topic for topic in response.topics if topic.name in (NAME, OTHER)]


def _ask(*names: str, allow: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=allow)


def _named(talk: Talk, version: int) -> None:
    talk.ask("one topic", version, _ask(NAME))
    talk.ask("two topics", version, _ask(OTHER, NAME))
    talk.ask("the same topic twice", version, _ask(NAME, NAME))
    talk.ask("an internal topic", version, _ask("__consumer_offsets"))
    if version >= ALLOW_SINCE:
        talk.ask("an unknown topic", version, _ask("nobody-makes-this"))
        talk.ask("a known and an unknown topic", version, _ask(NAME, "nobody-makes-this"))
    for step, name in BAD_NAMES.items():
        talk.ask(f"a bad name: {step}", version, _ask(name, allow=True))


def _auto_created(talk: Talk, version: int) -> None:
    name = f"metadata-made-by-{version}"
    talk.ask("made by asking", version, _ask(name, allow=True))
    talk.await_topic(name, 2)
    talk.ask("after it was made", version, _ask(name))
    talk.ask("its name, almost", version, _ask(name.replace("-", "."), allow=True))
    talk.ask("a collision", version, _ask(f"metadata.{version}_", allow=True))
    talk.await_topic(f"metadata.{version}_", 2)
    talk.ask("a collision with it", version, _ask(f"metadata_{version}.", allow=True))


def _operations(talk: Talk, version: int) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=NAME)],
        include_cluster_authorized_operations=8 <= version <= 10,
        include_topic_authorized_operations=version >= 8,
    )
    talk.ask("what may be done", version, request)


def _by_id(talk: Talk, version: int, topic_id: UUID) -> None:
    def ask(*topics: tuple[str | None, UUID | None]) -> MetadataRequest:
        wanted = [MetadataRequestTopic(name=name, topic_id=id_) for name, id_ in topics]
        return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    talk.ask("by id", version, ask((None, topic_id)))
    talk.ask("by unknown id", version, ask((None, UNKNOWN_ID)))
    talk.ask("by name and id", version, ask((NAME, topic_id)))
    talk.ask("neither name nor id", version, ask((None, None)))
    talk.ask("two ids", version, ask((None, topic_id), (None, UNKNOWN_ID)))
    talk.ask("an id and a name", version, ask((None, topic_id), (OTHER, None)))
