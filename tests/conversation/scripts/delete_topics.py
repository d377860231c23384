"""DeleteTopics and CreatePartitions: topics that go, and topics that grow."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conversation.say import UNKNOWN_ID, fetch, produce, records
from tests.conversation.talk import Talk, versions

DELETE = DeleteTopicsRequest.API_KEY
GROW = CreatePartitionsRequest.API_KEY
IDS_SINCE = 6
WAIT_MS = 30_000


def script(talk: Talk) -> None:
    for version in versions(DELETE):
        _deleted(talk, version)
        if version >= IDS_SINCE:
            _deleted_by_id(talk, version)
    for version in versions(GROW):
        _grown(talk, version)
        _not_grown(talk, version)


def _delete(*names: str) -> DeleteTopicsRequest:
    """In the way of all versions."""
    return DeleteTopicsRequest(
        topic_names=list(names), topics=[DeleteTopicState(name=name) for name in names], timeout_ms=WAIT_MS
    )


def _deleted(talk: Talk, version: int) -> None:
    name = f"delete-{version}"
    talk.topic(name, 2)
    talk.topic(f"{name}-other")
    talk.request(12, produce(name, records(b"a")))
    talk.ask("one", version, _delete(name))
    talk.await_no_topic(name)
    talk.ask("again", version, _delete(name))
    talk.ask("it has gone", 12, _metadata(name)) if version == 1 else None
    talk.topic(name)
    if version == 1:
        talk.ask("one of the same name is empty", 12, fetch(name))
    talk.ask("one that is there and one that is not", version, _delete(f"{name}-other", "nowhere"))
    talk.await_no_topic(f"{name}-other")
    talk.ask("one twice", version, _delete(name, name))
    talk.ask("a bad name", version, _delete("a/b"))
    talk.ask("an empty name", version, _delete(""))
    talk.ask("none", version, _delete())


def _metadata(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


def _deleted_by_id(talk: Talk, version: int) -> None:
    def delete(*topics: tuple[str | None, UUID | None]) -> DeleteTopicsRequest:
        states = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
        return DeleteTopicsRequest(topics=states, timeout_ms=WAIT_MS)

    topic_id = talk.topic("delete-by-id")
    talk.ask("an unknown id", version, delete((None, UNKNOWN_ID)))
    talk.ask("neither name nor id", version, delete((None, None)))
    talk.ask("name and id", version, delete(("delete-by-id", topic_id)))
    talk.ask("an id twice", version, delete((None, topic_id), (None, topic_id)))
    talk.ask("a name and its id", version, delete(("delete-by-id", None), (None, topic_id)))
    talk.ask("an id", version, delete((None, topic_id)))
    talk.await_no_topic("delete-by-id")
    talk.ask("the id again", version, delete((None, topic_id)))


def _grow(
    name: str, count: int, assigned: list[list[int]] | None = None, *, validate_only: bool = False
) -> CreatePartitionsRequest:
    assignments = (
        None if assigned is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
    )
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=WAIT_MS, validate_only=validate_only)


def _grown(talk: Talk, version: int) -> None:
    name = f"grow-{version}"
    talk.topic(name)
    talk.ask("only asked", version, _grow(name, 3, validate_only=True))
    talk.ask("to three", version, _grow(name, 3))
    talk.await_topic(name, 3)
    talk.ask("after growing", 12, _metadata(name)) if version == 0 else None
    talk.ask("by hand", version, _grow(name, 5, [[1], [1]]))
    talk.await_topic(name, 5)
    for count in (5, 4, 0, -1, 100_000):
        talk.ask(f"from five to {count}", version, _grow(name, count, validate_only=True))
    for step, assigned in {
        "too few by hand": [[1]],
        "too many by hand": [[1], [1], [1]],
        "none by hand": [],
        "unknown broker": [[1], [9]],
        "no brokers": [[1], []],
        "a broker twice": [[1], [1, 1]],
        "a negative broker": [[1], [-1]],
    }.items():
        talk.ask(step, version, _grow(name, 7, assigned, validate_only=True))


def _not_grown(talk: Talk, version: int) -> None:
    talk.ask("unknown topic", version, _grow("nowhere", 3))
    talk.ask("a bad name", version, _grow("a/b", 3))
    talk.ask("an empty name", version, _grow("", 3))
    talk.ask("no topics", version, CreatePartitionsRequest(timeout_ms=WAIT_MS))
    name = f"grow-twice-{version}"
    talk.topic(name)
    twice = [CreatePartitionsTopic(name=name, count=count, assignments=None) for count in (2, 3)]
    talk.ask("a topic twice", version, CreatePartitionsRequest(topics=twice, timeout_ms=WAIT_MS))
