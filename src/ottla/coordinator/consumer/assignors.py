"""Who should get which partitions of a consumer group: the two assignors that Kafka has built in.

`uniform` gives all members as many partitions as the others, give or take one, and moves as few as it can. `range`
cuts every topic into runs, one for each member that wants it: topics of the same size are cut at the same places.

Both are generators that stop after each small step, and in the end return what they found: for a large group the steps
are taken in several turns of the loop.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import NamedTuple, TypeVar

from ottla.internal_topics.consumer_group_records import Assigned

_ROUNDS = 16  # of moving partitions to where there are fewer, where members want different topics

Topics = frozenset[uuid.UUID]
Targets = dict[str, Assigned]
T = TypeVar("T")
Steps = Generator[None, None, T]
_Mutable = dict[uuid.UUID, set[int]]


class Candidate(NamedTuple):
    """A member, for an assignor."""

    topics: Topics  # that it wants, and that are there
    instance_id: str | None
    target: Assigned  # what it should have had so far


Candidates = Mapping[str, Candidate]
Sizes = Mapping[uuid.UUID, int]  # of topics, in partitions


def at_once(steps: Steps[T]) -> T:
    """Take all the steps now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def uniform(members: Candidates, sizes: Sizes) -> Steps[Targets]:
    """The same number for everybody, and most of it what they had."""
    first = next(iter(members.values())).topics
    if all(candidate.topics == first for candidate in members.values()):
        targets = yield from _alike(members, sizes)
    else:
        targets = yield from _Differing(members, sizes).targets()
    frozen: Targets = {}
    for member_id, target in targets.items():
        frozen[member_id] = {topic_id: frozenset(numbers) for topic_id, numbers in target.items() if numbers}
        yield
    return frozen


def range_(members: Candidates, sizes: Sizes) -> Steps[Targets]:
    """Static members first, by their instance; the others by their id."""
    order = sorted(
        members, key=lambda key: (members[key].instance_id is None, members[key].instance_id or key)
    )
    targets: dict[str, dict[uuid.UUID, frozenset[int]]] = {member_id: {} for member_id in order}
    for topic_id, size in sizes.items():
        takers = [member_id for member_id in order if topic_id in members[member_id].topics]
        start = 0
        for place, member_id in enumerate(takers):
            end = start + size // len(takers) + (place < size % len(takers))
            if start < end:
                targets[member_id][topic_id] = frozenset(range(start, end))
            start = end
            yield
    return dict(targets)


ASSIGNORS: dict[str, Callable[[Candidates, Sizes], Steps[Targets]]] = {"uniform": uniform, "range": range_}


def _numbers(target: Assigned, topics: Topics) -> Iterator[tuple[uuid.UUID, int]]:
    for topic_id in sorted(topics.intersection(target)):
        for number in sorted(target[topic_id]):
            yield topic_id, number


def _alike(members: Candidates, sizes: Sizes) -> Steps[dict[str, _Mutable]]:
    """All want the same: everybody keeps what fits into its share, the rest goes to those with room."""
    topics = next(iter(members.values())).topics
    share, extras = divmod(sum(sizes[topic_id] for topic_id in topics), len(members))
    free = yield from _unassigned(members, {topic_id: sizes[topic_id] for topic_id in sorted(topics)})
    targets: dict[str, _Mutable] = {}
    room: list[tuple[str, int]] = []
    for place, (member_id, candidate) in enumerate(members.items()):
        yield
        kept: _Mutable = {}
        left = share + (extras > 0)
        for topic_id, number in _numbers(candidate.target, topics):
            if left:
                left -= 1
                kept.setdefault(topic_id, set()).add(number)
            else:
                free.append((topic_id, number))
        takes_extra = extras > 0
        if left and takes_extra and len(members) - place > extras:
            # There are enough after this one for all the extra partitions: perhaps they have them already.
            left -= 1
            takes_extra = False
        extras -= takes_extra
        if left:
            room.append((member_id, left))
        targets[member_id] = kept
    at = 0
    for member_id, left in room:
        for topic_id, number in free[at : at + left]:
            targets[member_id].setdefault(topic_id, set()).add(number)
        at += left
        yield
    return targets


def _unassigned(members: Candidates, sizes: Sizes) -> Steps[list[tuple[uuid.UUID, int]]]:
    """What nobody should have had so far, in order."""
    taken: dict[uuid.UUID, set[int]] = {topic_id: set() for topic_id in sizes}
    for candidate in members.values():
        for topic_id, numbers in candidate.target.items():
            if topic_id in taken:
                taken[topic_id].update(numbers)
        yield
    free: list[tuple[uuid.UUID, int]] = []
    for topic_id, size in sizes.items():
        free += [(topic_id, number) for number in range(size) if number not in taken[topic_id]]
        yield
    return free


class _Differing:
    """Members want different topics: the fewest partitions first, then moves until nobody could have it better."""

    def __init__(self, members: Candidates, sizes: Sizes) -> None:
        self._members = list(members)
        self._sizes = sizes
        self._takers: dict[uuid.UUID, list[int]] = {topic_id: [] for topic_id in sizes}
        self._load = [0] * len(members)
        self._owner: dict[uuid.UUID, list[int | None]] = {
            topic_id: [None] * size for topic_id, size in sizes.items()
        }
        self._candidates = members

    def _take_in(self) -> Steps[None]:
        """Who wants what, and who had it."""
        for place, candidate in enumerate(self._candidates.values()):
            for topic_id in candidate.topics:
                self._takers[topic_id].append(place)
            for topic_id, number in _numbers(candidate.target, candidate.topics):
                self._owner[topic_id][number] = place
                self._load[place] += 1
            yield

    def targets(self) -> Steps[dict[str, _Mutable]]:
        yield from self._take_in()
        order = sorted((topic_id for topic_id in self._sizes if self._takers[topic_id]), key=self._rank)
        for topic_id in order:
            yield from self._fill(topic_id)
        for _ in range(_ROUNDS):
            # All topics are tried in each round: a move of one may make room for another's.
            moved = 0
            for topic_id in order:
                moved += yield from self._level(topic_id)
            if not moved:
                break
        targets: dict[str, _Mutable] = {member_id: {} for member_id in self._members}
        for topic_id in order:
            for number, place in enumerate(self._owner[topic_id]):
                if place is not None:
                    targets[self._members[place]].setdefault(topic_id, set()).add(number)
                yield
        return targets

    def _rank(self, topic_id: uuid.UUID) -> tuple[float, int, uuid.UUID]:
        """Topics with much for each of few members come first: others can make up for them."""
        takers = len(self._takers[topic_id])
        return -self._sizes[topic_id] / takers, takers, topic_id

    def _fill(self, topic_id: uuid.UUID) -> Steps[None]:
        heap = [(self._load[place], place) for place in self._takers[topic_id]]
        heapq.heapify(heap)
        owners = self._owner[topic_id]
        for number, owner in enumerate(owners):
            if owner is None:
                load, place = heap[0]
                owners[number] = place
                self._load[place] = load + 1
                heapq.heapreplace(heap, (load + 1, place))
            yield

    def _level(self, topic_id: uuid.UUID) -> Steps[int]:
        """Move partitions from whoever has most to whoever has least, while that helps; how many were moved."""
        owned: dict[int, list[int]] = {}
        for number, owner in enumerate(self._owner[topic_id]):
            if owner is not None:
                owned.setdefault(owner, []).append(number)
        poorest = [(self._load[place], place) for place in self._takers[topic_id]]
        richest = [(-self._load[place], place) for place in owned]
        heapq.heapify(poorest)
        heapq.heapify(richest)
        moved = 0
        while richest:
            yield
            load, place = -richest[0][0], richest[0][1]
            low, poor = poorest[0]
            if low != self._load[poor]:
                heapq.heapreplace(poorest, (self._load[poor], poor))
            elif load != self._load[place]:
                heapq.heapreplace(richest, (-self._load[place], place))
            elif not owned[place]:
                heapq.heappop(richest)
            elif load - low <= 1:
                break
            else:
                number = owned[place].pop()
                self._owner[topic_id][number] = poor
                self._load[place] -= 1
                self._load[poor] += 1
                moved += 1
        return moved
