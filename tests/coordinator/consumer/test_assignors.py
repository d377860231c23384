"""What assignors promise: every partition has one member that wants it, shares are fair, and little moves."""

from __future__ import annotations

import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.consumer.assignors import Candidate, Targets, at_once, range_, uniform

TOPICS = [uuid.UUID(int=number) for number in range(1, 5)]
A, B = TOPICS[:2]

sizes = st.lists(st.integers(1, 12), min_size=4, max_size=4).map(
    lambda counts: dict(zip(TOPICS, counts, strict=True))
)
wishes = st.frozensets(st.sampled_from(TOPICS))


def candidates(
    topics: dict[str, frozenset[uuid.UUID]], before: Targets | None = None
) -> dict[str, Candidate]:
    return {name: Candidate(wanted, None, (before or {}).get(name, {})) for name, wanted in topics.items()}


def named(count: int, topics: frozenset[uuid.UUID]) -> dict[str, frozenset[uuid.UUID]]:
    return {f"m{number}": topics for number in range(count)}


def load(targets: Targets) -> dict[str, int]:
    return {name: sum(map(len, target.values())) for name, target in targets.items()}


def check(targets: Targets, topics: dict[str, frozenset[uuid.UUID]], counts: dict[uuid.UUID, int]) -> None:
    """Every partition that somebody wants is with exactly one who does."""
    given_out = [(topic, n) for target in targets.values() for topic, ns in target.items() for n in ns]
    wanted = frozenset().union(*topics.values())
    assert sorted(given_out) == sorted((topic, n) for topic in wanted for n in range(counts[topic]))
    for name, target in targets.items():
        assert set(target) <= topics[name]
        assert all(target.values())


def kept(before: Targets, after: Targets) -> int:
    return sum(
        len(ns & after.get(name, {}).get(t, frozenset()))
        for name, has in before.items()
        for t, ns in has.items()
    )


@given(count=st.integers(1, 8), topics=wishes, counts=sizes)
def test_uniform_gives_members_that_want_the_same_equal_shares(
    count: int, topics: frozenset[uuid.UUID], counts: dict[uuid.UUID, int]
) -> None:
    members = named(count, topics)
    wanted = {topic: counts[topic] for topic in topics}
    targets = at_once(uniform(candidates(members), wanted))
    check(targets, members, counts)
    loads = load(targets).values()
    assert max(loads) - min(loads) <= 1


@given(count=st.integers(2, 8), counts=sizes, leaver=st.integers(0, 7))
def test_uniform_moves_only_what_a_member_that_left_had(
    count: int, counts: dict[uuid.UUID, int], leaver: int
) -> None:
    members = named(count, frozenset(TOPICS))
    before = at_once(uniform(candidates(members), counts))
    gone = f"m{leaver % count}"
    del members[gone]
    after = at_once(uniform(candidates(members, before), counts))
    check(after, members, counts)
    stayed = {name: target for name, target in before.items() if name != gone}
    assert kept(stayed, after) == sum(load(stayed).values())


@given(count=st.integers(1, 8), counts=sizes)
def test_uniform_takes_no_more_than_a_new_members_share_from_the_others(
    count: int, counts: dict[uuid.UUID, int]
) -> None:
    members = named(count, frozenset(TOPICS))
    before = at_once(uniform(candidates(members), counts))
    members["new"] = frozenset(TOPICS)
    after = at_once(uniform(candidates(members, before), counts))
    check(after, members, counts)
    assert sum(counts.values()) - kept(before, after) == load(after)["new"]
    assert at_once(uniform(candidates(members, after), counts)) == after


@settings(max_examples=200)
@given(
    first=st.lists(wishes, min_size=1, max_size=6),
    second=st.lists(wishes, min_size=1, max_size=6),
    counts=sizes,
)
def test_uniform_gives_everybody_what_they_want_whatever_that_is(
    first: list[frozenset[uuid.UUID]], second: list[frozenset[uuid.UUID]], counts: dict[uuid.UUID, int]
) -> None:
    before: Targets = {}
    for wanted in (first, second, second):
        members = {f"m{number}": topics for number, topics in enumerate(wanted)}
        there = {topic: counts[topic] for topic in sorted(frozenset().union(*wanted))}
        targets = at_once(uniform(candidates(members, before), there))
        check(targets, members, counts)
        _is_level(targets, members)
        before = {name: targets[name] for name in targets}


def _is_level(targets: Targets, members: dict[str, frozenset[uuid.UUID]]) -> None:
    """No single move would bring a member and one with two or more partitions more closer together."""
    loads = load(targets)
    for rich, target in targets.items():
        for poor, topics in members.items():
            if loads[rich] - loads[poor] > 1:
                assert not topics & set(target), (rich, poor, loads)


@given(first=st.lists(wishes, min_size=1, max_size=6), counts=sizes)
def test_range_gives_each_member_a_run_of_each_topic(
    first: list[frozenset[uuid.UUID]], counts: dict[uuid.UUID, int]
) -> None:
    members = {f"m{number}": topics for number, topics in enumerate(first)}
    there = {topic: counts[topic] for topic in sorted(frozenset().union(*first))}
    targets = at_once(range_(candidates(members), there))
    check(targets, members, counts)
    for topic in there:
        runs = [sorted(target[topic]) for target in targets.values() if topic in target]
        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs)
        assert max(map(len, runs)) - min(map(len, runs)) <= 1


def test_range_cuts_topics_of_one_size_at_the_same_places() -> None:
    targets = at_once(range_(candidates(named(2, frozenset({A, B}))), {A: 3, B: 3}))
    assert targets == {
        "m0": {A: frozenset({0, 1}), B: frozenset({0, 1})},
        "m1": {A: frozenset({2}), B: frozenset({2})},
    }


def test_range_puts_static_members_first_by_their_instance() -> None:
    topics = frozenset({A})
    members = {
        "a": Candidate(topics, None, {}),
        "x": Candidate(topics, "2", {}),
        "y": Candidate(topics, "1", {}),
    }
    targets = at_once(range_(members, {A: 3}))
    assert [name for name, _ in sorted(targets.items(), key=lambda item: min(item[1][A]))] == ["y", "x", "a"]
