"""Fetch sessions are limited by what they take: partitions."""

from __future__ import annotations

from ottla.api.fetch_sessions import NO_SESSION, FetchSession, FetchSessionCache, Followed, Key
from ottla.testing.runtime import SimulatedRuntime

SLOTS = 100  # with ten thousand partitions in all, and 2,500 in one


def some(count: int, topic: str = "t") -> dict[Key, Followed]:
    return {(topic, number): Followed(topic, None, number, 0, 1, -1, -1) for number in range(count)}


def test_no_session_has_more_than_its_share() -> None:
    cache = FetchSessionCache(SimulatedRuntime(), SLOTS)
    assert cache.begin(some(2_501), uses_topic_ids=False) == NO_SESSION
    assert cache.begin(some(2_500), uses_topic_ids=False) != NO_SESSION


def test_all_sessions_together_have_a_limit() -> None:
    cache = FetchSessionCache(SimulatedRuntime(), SLOTS)
    begun = [cache.begin(some(2_000), uses_topic_ids=False) for _ in range(6)]
    assert [session_id != NO_SESSION for session_id in begun] == [True] * 5 + [False]
    cache.remove(begun[0])
    assert cache.begin(some(2_000), uses_topic_ids=False) != NO_SESSION


def test_a_session_that_grows_past_its_share_is_dropped() -> None:
    cache = FetchSessionCache(SimulatedRuntime(), SLOTS)
    session = cache.use(cache.begin(some(2_000), uses_topic_ids=False), 1, uses_topic_ids=False)
    assert isinstance(session, FetchSession)
    session.change(some(400, "u").items(), [])
    assert not cache.drop_if_too_large(session)
    session.change(some(400, "v").items(), [])
    assert cache.drop_if_too_large(session)
    assert len(cache) == 0
