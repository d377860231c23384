"""Which topics the patterns of consumer groups stand for: looked up when one is new, when topics are new, now and then.

All patterns of a group are looked up together, so that they lead to one rebalance. With many topics that takes a while:
it is done in pieces, between other commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from weakref import WeakSet

from ottla.cluster.image import ClusterImage
from ottla.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.topic_hash import TopicHashes
from ottla.coordinator.patterns.matching import NamePattern
from ottla.coordinator.patterns.syntax import PatternError
from ottla.coordinator.result import CommandResult, GroupResult, Shard
from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import GroupEpoch, PatternRecord, Resolved
from ottla.internal_topics.group_records import GroupRecord
from ottla.protocol.errors import ErrorCode

_MIN_INTERVAL_MS = 10_000
# Steps of matching between other work, for all groups whose patterns are looked up at the time.
_PIECE_STEPS = 20_000
_LEAST_STEPS = 200

Allowed = Callable[[str], bool]  # whether whoever asks may see a topic


class PatternChange(Enum):
    """What a heartbeat means for a member's pattern."""

    NONE = 0
    NEW = 1  # the topics that match will be known later
    KNOWN = 2  # another one, or none any more


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Search:
    """Under way until it is done, or until its shard is gone."""

    group_id: str
    patterns: list[NamePattern]
    names: list[str]
    revision: int
    begun_ms: int
    allowed: Allowed
    found: dict[str, set[str]] = field(default_factory=dict)

    @property
    def work(self) -> int:
        return sum(pattern.work for pattern in self.patterns)

    def steps(self) -> Generator[None, None, None]:
        """All names against all patterns."""
        for name in self.names:
            for pattern in self.patterns:
                if (yield from pattern.steps(name)):
                    self.found[pattern.pattern].add(name)
            yield


_SEARCHES: WeakSet[_Search] = WeakSet()  # of all shards of this process, which share a loop


class PatternResolver:
    """The patterns of one shard's groups."""

    def __init__(
        self,
        shard: Shard,
        refresh_interval_ms: int,
        image: Callable[[], ClusterImage],
        hashes: TopicHashes,
        groups: dict[str, ConsumerGroup],
    ) -> None:
        self._shard = shard
        self._refresh_interval_ms = refresh_interval_ms
        self._image = image
        self._hashes = hashes
        self._groups = groups
        self._busy: set[str] = set()  # groups whose patterns are being looked up
        self.newest_topic = -1  # the revision that brought it

    def follow(
        self,
        group: ConsumerGroup,
        old: ConsumerMember,
        new: ConsumerMember,
        allowed: Allowed,
        records: list[GroupRecord],
        now_ms: int,
    ) -> PatternChange:
        """A member has said what it wants: see what that means for the group's patterns."""
        before, after = old.details.pattern, new.details.pattern
        if not after and not group.patterns:
            return PatternChange.NONE
        change, is_new = PatternChange.NONE, False
        if before != after:
            change = PatternChange.NEW
            if before and group.patterns[before] == 1:
                records.append(PatternRecord(group.group_id, before, None))
            if after and not group.patterns[after]:
                check_pattern(after)
                is_new = True
            elif not after or after in group.resolved:
                change = PatternChange.KNOWN
        wanted = len(group.patterns)
        if before != after:
            wanted += is_new - (bool(before) and group.patterns[before] == 1)
        if wanted and self._is_due(group, wanted, is_new, now_ms):
            self._begin(group, _patterns(group, before, after), allowed, now_ms)
        return change

    def _is_due(self, group: ConsumerGroup, wanted: int, is_new: bool, now_ms: int) -> bool:
        if group.group_id in self._busy or (not group.patterns and not is_new):
            return False
        last = next(iter(group.resolved.values()), None)
        if last is None:
            return True
        if now_ms <= last.timestamp + _MIN_INTERVAL_MS:
            return False
        return (
            is_new
            or wanted != len(group.resolved)
            or last.revision < self.newest_topic
            or now_ms > last.timestamp + self._refresh_interval_ms
        )

    # -- looking up

    def _begin(self, group: ConsumerGroup, wanted: list[str], allowed: Allowed, now_ms: int) -> None:
        image = self._image()
        patterns = []
        for pattern in wanted:
            try:
                patterns.append(NamePattern(pattern))
            except PatternError:
                continue  # written by another broker, and not valid here: it matches no topic
        search = _Search(group.group_id, patterns, list(image.topics), image.revision, now_ms, allowed)
        search.found = {pattern: set() for pattern in wanted}
        self._busy.add(group.group_id)
        _SEARCHES.add(search)
        self._shard.call_later(0, partial(self._go_on, search, search.steps()))

    def _go_on(
        self, search: _Search, steps: Generator[None, None, None], state: object, now_ms: int
    ) -> GroupResult:
        limit = search.work + max(_LEAST_STEPS, _PIECE_STEPS // len(_SEARCHES))
        for _ in steps:
            if search.work >= limit:
                self._shard.call_later(0, partial(self._go_on, search, steps))
                return CommandResult()
        _SEARCHES.discard(search)
        self._busy.discard(search.group_id)
        group = self._groups.get(search.group_id)
        return CommandResult() if group is None else CommandResult(records=self._finish(group, search))

    def _finish(self, group: ConsumerGroup, search: _Search) -> list[GroupRecord]:
        found = {
            pattern: Resolved(frozenset(filter(search.allowed, topics)), search.revision, search.begun_ms)
            for pattern, topics in search.found.items()
            if group.patterns[pattern]
        }
        records: list[GroupRecord] = [
            PatternRecord(group.group_id, pattern, resolved) for pattern, resolved in found.items()
        ]
        known = {pattern: resolved.topics for pattern, resolved in group.resolved.items()}
        is_changed = any(
            known.get(pattern, frozenset()) != resolved.topics for pattern, resolved in found.items()
        )
        topics = group.topics(resolved={**group.resolved, **found})
        metadata_hash = self._hashes.of_group(topics, self._image())
        if is_changed or metadata_hash != group.metadata_hash:
            records.append(GroupEpoch(group.group_id, (group.epoch + 1, metadata_hash)))
        return records


def _patterns(group: ConsumerGroup, before: str, after: str) -> list[str]:
    """The patterns of all members, of which one has another now."""
    wanted = group.patterns - Counter([before])
    wanted[after] += 1
    del wanted[""]
    return sorted(wanted)


def check_pattern(pattern: str) -> None:
    """CodedError if it is not one."""
    try:
        NamePattern(pattern)
    except PatternError as error:
        message = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
        raise CodedError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error
