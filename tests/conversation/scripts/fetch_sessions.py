"""Fetch sessions: begun, gone on with, changed, ended, and used in the wrong way."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest
from tests.conversation.say import MAX_BYTES, UNKNOWN_ID, delete_records, fetch_all, produce, records
from tests.conversation.talk import Talk

FIRST, NEWEST, BY_ID = 7, 18, 13
NAME = "sessions"
PRODUCE = 12


def script(talk: Talk) -> None:
    for version in range(FIRST, NEWEST + 1):
        name = f"{NAME}-{version}"
        topic_id = talk.topic(name, 3)
        _story(talk, version, name, topic_id)
        _errors(talk, version, name, topic_id)
        _strangers(talk, version, name, topic_id)
    _between_names_and_ids(talk)
    _deleted_topic(talk)


def _wanted(
    name: str, topic_id: UUID, *offsets: tuple[int, int]
) -> list[tuple[str, UUID | None, FetchPartition]]:
    return [
        (name, topic_id, FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=MAX_BYTES))
        for index, offset in offsets
    ]


def _next(session: int, epoch: int, **more: Any) -> FetchRequest:
    return fetch_all(more.pop("wanted", []), session_id=session, session_epoch=epoch, **more)


def _begin(talk: Talk, step: str, version: int, request: FetchRequest) -> int:
    response = talk.ask(step, version, request)
    return 0 if response is None else response.session_id


def _story(talk: Talk, version: int, name: str, topic_id: UUID) -> None:
    talk.request(PRODUCE, produce(name, records(b"a")))
    both = _wanted(name, topic_id, (0, 0), (1, 0))
    session = _begin(talk, "begin", version, _next(0, 0, wanted=both))
    talk.ask("the same offset again", version, _next(session, 1))
    talk.ask("a later offset", version, _next(session, 2, wanted=_wanted(name, topic_id, (0, 1))))
    talk.ask("nothing new", version, _next(session, 3))
    talk.request(PRODUCE, produce(name, records(b"b"), partition=1))
    talk.ask("news in one", version, _next(session, 4))
    talk.ask("a third partition", version, _next(session, 5, wanted=_wanted(name, topic_id, (1, 1), (2, 0))))
    talk.request(PRODUCE, produce(name, records(b"c")))
    talk.request(PRODUCE, produce(name, records(b"d"), partition=1))
    talk.ask("one is forgotten", version, _next(session, 6, forget=[(name, topic_id, 0)]))
    talk.ask("it comes back", version, _next(session, 7, wanted=_wanted(name, topic_id, (0, 1))))
    talk.request(2, delete_records(name, {0: 2}))
    talk.ask("deleted records", version, _next(session, 8, wanted=_wanted(name, topic_id, (0, 2), (1, 2))))
    talk.ask("below the start", version, _next(session, 9, wanted=_wanted(name, topic_id, (0, 0))))
    talk.ask("the error stays", version, _next(session, 10))
    talk.ask("the error is over", version, _next(session, 11, wanted=_wanted(name, topic_id, (0, 2))))
    stranger = [(name, topic_id, index) for index in (5,)]
    talk.ask("forget what was never there", version, _next(session, 12, forget=stranger))
    everything = [(name, topic_id, index) for index in (0, 1, 2)]
    talk.ask("all is forgotten", version, _next(session, 13, forget=everything))
    talk.ask("after all was forgotten", version, _next(session, 14))


def _errors(talk: Talk, version: int, name: str, topic_id: UUID) -> None:
    one = _wanted(name, topic_id, (2, 0))
    talk.ask("no session, and none wanted", version, _next(0, -1, wanted=one))
    talk.ask("an unknown session", version, _next(12345, 1, wanted=one))
    talk.ask("no session id, epoch 1", version, _next(0, 1, wanted=one))
    talk.ask("an unknown session ends", version, _next(12345, -1, wanted=one))
    talk.ask("an unknown session begins anew", version, _next(12345, 0, wanted=one))
    talk.ask("a session without partitions", version, _next(0, 0))
    session = _begin(talk, "begin for errors", version, _next(0, 0, wanted=one))
    for epoch in (2, 5, -5, 2**31 - 1):
        talk.ask(f"epoch {epoch} in place of 1", version, _next(session, epoch))
    talk.ask("epoch 1", version, _next(session, 1))
    talk.ask("epoch 1 again", version, _next(session, 1))
    other = _begin(talk, "begin anew with the session's id", version, _next(session, 0, wanted=one))
    talk.ask("the session before it", version, _next(session, 2))
    talk.ask("the new one", version, _next(other, 1))
    talk.ask("end", version, _next(other, -1))
    talk.ask("after the end", version, _next(other, 2))


def _strangers(talk: Talk, version: int, name: str, topic_id: UUID) -> None:
    mixed = [
        *_wanted(name, topic_id, (2, 0), (9, 0)),
        ("nowhere", UNKNOWN_ID, FetchPartition(partition_max_bytes=MAX_BYTES)),
    ]
    session = _begin(talk, "begin with strangers", version, _next(0, 0, wanted=mixed))
    talk.ask("strangers are still strangers", version, _next(session, 1))
    talk.ask(
        "strangers are forgotten",
        version,
        _next(session, 2, forget=[("nowhere", UNKNOWN_ID, 0), (name, topic_id, 9)]),
    )


def _between_names_and_ids(talk: Talk) -> None:
    topic_id = talk.topic("sessions-mixed")
    one = _wanted("sessions-mixed", topic_id, (0, 0))
    by_name = _begin(talk, "begin by name", BY_ID - 1, _next(0, 0, wanted=one))
    talk.ask("go on by id", BY_ID, _next(by_name, 1))
    talk.ask("go on by id with partitions", BY_ID, _next(by_name, 1, wanted=one))
    talk.ask("go on by name", BY_ID - 1, _next(by_name, 1))
    by_id = _begin(talk, "begin by id", BY_ID, _next(0, 0, wanted=one))
    talk.ask("a session by id goes on by name", BY_ID - 1, _next(by_id, 1))
    talk.ask("a session by id goes on by id", BY_ID, _next(by_id, 1))


def _deleted_topic(talk: Talk) -> None:
    for version in (BY_ID - 1, NEWEST):
        name = f"sessions-gone-{version}"
        topic_id = talk.topic(name)
        one = _wanted(name, topic_id, (0, 0))
        session = _begin(talk, "begin before the topic goes", version, _next(0, 0, wanted=one))
        talk.request(6, DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000))
        talk.await_no_topic(name)
        talk.ask("the topic has gone", version, _next(session, 1))
        talk.ask("it has still gone", version, _next(session, 2))
