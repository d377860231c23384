"""What a Fetch request is about: the partitions that it names, or those of its session and what it changes of them.

A request about very many partitions is looked at in slices.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from ottla.api.call import Call
from ottla.api.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession, Followed, Key
from ottla.api.services import Services
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
from ottla.replica.results import NO_EPOCH

FEW: Final = 500  # partitions that are looked at in one go
SLICE: Final = 200  # of more than that
SESSIONS_SINCE: Final = 7
TOPIC_IDS_SINCE: Final = 13

Topic = TypeVar("Topic")
Entry = TypeVar("Entry")


class FetchContext(NamedTuple):
    """What this request is about: the partitions to read, and the session it belongs to, if any."""

    partitions: dict[Key, Followed]
    session: FetchSession | None  # of an incremental request
    begins_session: bool = False


def is_large(services: Services, request: FetchRequest) -> bool:
    """Whether a request is about very many partitions, of its own or of its session."""
    count = len(request.topics)
    for topic in request.topics:
        count += len(topic.partitions)
    if request.forgotten_topics_data:
        for forgotten in request.forgotten_topics_data:
            count += 1 + len(forgotten.partitions)
    return count > FEW or (
        request.session_id != NO_SESSION and services.fetch_sessions.size_of(request.session_id) > FEW
    )


def context_of(services: Services, call: Call, request: FetchRequest) -> FetchContext | ErrorCode:
    wanted = _wanted(services, call, request.topics)
    if _is_full(call, request):
        return _full_context(services, call, request, dict(wanted))
    session = _session(services, call, request)
    if isinstance(session, ErrorCode):
        return session
    had = len(session.partitions)
    session.change(wanted, _forgotten(call, request.forgotten_topics_data))
    return _incremental_context(services, session, had)


def _is_full(call: Call, request: FetchRequest) -> bool:
    """Whether a request says all that its client wants."""
    return call.version < SESSIONS_SINCE or request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH)


def _full_context(
    services: Services, call: Call, request: FetchRequest, partitions: dict[Key, Followed]
) -> FetchContext:
    if call.version < SESSIONS_SINCE:
        return FetchContext(partitions, None)
    services.fetch_sessions.remove(request.session_id)
    return FetchContext(partitions, None, begins_session=request.session_epoch == INITIAL_EPOCH)


def _session(services: Services, call: Call, request: FetchRequest) -> FetchSession | ErrorCode:
    """The session of an incremental request; its next one must say the next epoch."""
    by_id = call.version >= TOPIC_IDS_SINCE
    session = services.fetch_sessions.use(request.session_id, request.session_epoch, uses_topic_ids=by_id)
    if not isinstance(session, ErrorCode):
        session.next_epoch()
    return session


def _incremental_context(services: Services, session: FetchSession, had: int) -> FetchContext | ErrorCode:
    """Of a session that had so many partitions and has been changed."""
    cache = services.fetch_sessions
    if len(session.partitions) > had and cache.drop_if_too_large(session):
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if not session.partitions:
        cache.remove(session.session_id)
        return FetchContext({}, None)
    if session.uses_topic_ids:
        _resolve(services, session)
    return FetchContext(dict(session.partitions), session)


def context_slowly(
    services: Services, call: Call, request: FetchRequest
) -> Generator[None, None, FetchContext | ErrorCode]:
    wanted = _sliced(request.topics, partial(_wanted, services, call))
    if _is_full(call, request):
        partitions: dict[Key, Followed] = {}
        for some in wanted:
            partitions.update(some)
            yield
        return _full_context(services, call, request, partitions)
    session = _session(services, call, request)
    if isinstance(session, ErrorCode):
        return session
    had = len(session.partitions)
    for some in wanted:
        session.change(some, ())
        yield
    for gone in _sliced(request.forgotten_topics_data, partial(_forgotten, call)):
        session.change((), gone)
        yield
    return _incremental_context(services, session, had)


def _sliced(
    topics: list[Topic], entries_of: Callable[[list[Topic]], Iterable[Entry]]
) -> Iterator[list[Entry]]:
    """What is said of topics, some of it at a time: also where there is nothing in very many of them."""
    for start in range(0, len(topics), SLICE):
        entries = iter(entries_of(topics[start : start + SLICE]))
        some = list(islice(entries, SLICE))
        yield some
        while some:
            some = list(islice(entries, SLICE))
            yield some


def _wanted(services: Services, call: Call, topics: Iterable[FetchTopic]) -> Iterable[tuple[Key, Followed]]:
    by_id = call.version >= TOPIC_IDS_SINCE
    image = services.metadata.image
    for topic in topics:
        name: str | None = topic.topic
        topic_id: uuid.UUID | None = None
        if by_id:
            topic_id = topic.topic_id
            found = image.topic_by_id(topic_id)
            name = None if found is None else found.name
        for wanted in topic.partitions:
            key = (topic_id or topic.topic, wanted.partition)
            yield (
                key,
                Followed(
                    name,
                    topic_id,
                    wanted.partition,
                    wanted.fetch_offset,
                    wanted.partition_max_bytes,
                    max(wanted.current_leader_epoch, NO_EPOCH),
                    max(wanted.last_fetched_epoch, NO_EPOCH),
                ),
            )


def _forgotten(call: Call, topics: Iterable[ForgottenTopic]) -> Iterable[Key]:
    by_id = call.version >= TOPIC_IDS_SINCE
    for topic in topics:
        for partition in topic.partitions:
            yield ((topic.topic_id or "") if by_id else topic.topic), partition


def _resolve(services: Services, session: FetchSession) -> None:
    """A topic that was not known when it was asked for may be by now."""
    image = services.metadata.image
    for followed in session.partitions.values():
        if followed.topic is None:
            found = image.topic_by_id(followed.topic_id)
            followed.topic = None if found is None else found.name
