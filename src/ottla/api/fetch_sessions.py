"""Fetch sessions: what a client follows, remembered, so that it need not say it in every request.

A session has an id and an epoch that grows by one with each request. A full request (epoch 0) begins one, later ones
say only what has changed, and are answered only with partitions that have something new. The cache of sessions is
bounded: a new session takes the place of one that has not been used for a while, or is smaller than it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.protocol.errors import ErrorCode
from ottla.replica.results import FetchResult
from ottla.runtime import LoopRuntime

FINAL_EPOCH = -1  # no session, and an end to the one that is named
INITIAL_EPOCH = 0  # a full request that would like a session
NO_SESSION = 0
EVICTION_MS = 120_000  # min.incremental.fetch.session.eviction.ms is fixed at two minutes in Kafka too
_MAX_ID = 0x7FFFFFFF
_PARTITIONS_A_SLOT = 100
_LARGEST_SHARE = 4  # no session has more than a fourth of all partitions,
_ALWAYS_ALLOWED = 1000  # or this many, where there are only few slots

Key = tuple[uuid.UUID | str, int]


@dataclass(slots=True)
class Followed:
    """One partition that a client fetches, with what it was told last."""

    topic: str | None  # None while a topic id is not known here
    topic_id: uuid.UUID | None
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    told_high_watermark: int = -1
    told_start_offset: int = -1

    def update(self, newer: Followed) -> None:
        """The client asks for the same partition in another way."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch

    def has_changed(self, result: FetchResult) -> bool:
        """Whether the client must be told of `result`; if so, it counts as told."""
        news = bool(result.records) or result.error_code != 0 or result.diverging_epoch is not None
        if result.error_code:
            self.told_high_watermark = -1  # the partition is told of again once the error is over
            return True
        if result.high_watermark != self.told_high_watermark:
            self.told_high_watermark, news = result.high_watermark, True
        if result.log_start_offset != self.told_start_offset:
            self.told_start_offset, news = result.log_start_offset, True
        return news


@dataclass(slots=True)
class FetchSession:
    """What one client follows, in the order in which partitions get their turn."""

    session_id: int
    uses_topic_ids: bool
    created_ms: int
    used_ms: int
    epoch: int = 1  # what the next request must say
    partitions: dict[Key, Followed] = field(default_factory=dict)

    def change(self, wanted: Iterable[tuple[Key, Followed]], forgotten: Iterable[Key]) -> None:
        """Take in what an incremental request says."""
        for key, followed in wanted:
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = followed
            else:
                known.update(followed)
        for key in forgotten:
            self.partitions.pop(key, None)

    def served(self, key: Key) -> None:
        """This one got records: the others have their turn before it."""
        self.partitions[key] = self.partitions.pop(key)

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == _MAX_ID else self.epoch + 1


class FetchSessionCache:
    """All sessions of a broker, at most `slots` of them, with at most a hundred times as many partitions.

    It is partitions that take memory: a thousand sessions of all that a request can name would be gigabytes. Who gets
    no session, or loses it, asks for everything each time, as clients do that know of none.
    """

    def __init__(self, runtime: LoopRuntime, slots: int) -> None:
        self._max_partitions = max(slots * _PARTITIONS_A_SLOT, _ALWAYS_ALLOWED)
        self._max_of_one = max(self._max_partitions // _LARGEST_SHARE, _ALWAYS_ALLOWED)
        self._runtime = runtime
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        # A list first: `/metrics` asks on a thread of its own.
        return sum(len(session.partitions) for session in list(self._sessions.values()))

    def size_of(self, session_id: int) -> int:
        """How many partitions a session has, if there is such a one."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session.partitions)

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def begin(self, partitions: dict[Key, Followed], *, uses_topic_ids: bool) -> int:
        """A new session's id, or NO_SESSION if there is no room for it."""
        if self._is_too_much(len(partitions)) or not self._make_room(len(partitions)):
            return NO_SESSION
        session_id = self._new_id()
        now_ms = self._runtime.monotonic_ms()
        session = FetchSession(session_id, uses_topic_ids, now_ms, now_ms)
        session.partitions = partitions
        self._sessions[session_id] = session
        return session_id

    def use(self, session_id: int, epoch: int, *, uses_topic_ids: bool) -> FetchSession | ErrorCode:
        """The session that an incremental request goes on with, or why it cannot."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.used_ms = self._runtime.monotonic_ms()
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def drop_if_too_large(self, session: FetchSession) -> bool:
        """Remove a session that has grown past what there is room for; True if that was so."""
        if not self._is_too_much(0) and len(session.partitions) <= self._max_of_one:
            return False
        self.remove(session.session_id)
        return True

    def _is_too_much(self, more: int) -> bool:
        return more > self._max_of_one or self.partitions + more > self._max_partitions

    def _new_id(self) -> int:
        while True:
            session_id = 1 + self._runtime.randrange(_MAX_ID)
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, size: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        now_ms = self._runtime.monotonic_ms()
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > EVICTION_MS:
            self.remove(oldest.session_id)
            return True
        # One that has been there for its two minutes gives way to a larger one.
        settled = [
            session for session in self._sessions.values() if now_ms - session.created_ms > EVICTION_MS
        ]
        smallest = min(settled, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self.remove(smallest.session_id)
        return True
