"""What happens to groups by itself: offsets that nobody has needed for long go, and so do groups with nothing left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.consumer.group import ConsumerGroup
from ottla.coordinator.offsets.committed import CommittedOffsets
from ottla.coordinator.result import CommandResult, GroupResult, Shard
from ottla.internal_topics.group_records import GroupMetadata, GroupRecord, OffsetCommit
from ottla.names import TopicPartition

_MINUTE_MS = 60_000
_AT_ONCE = 500  # groups and offsets

AnyGroup = Group | ConsumerGroup


@dataclass(eq=False)
class Upkeep:
    """Looks through one shard's groups now and then."""

    _shard: Shard
    _config: BrokerConfig
    _groups: dict[str, Group]
    _consumer_groups: dict[str, ConsumerGroup]
    _offsets: CommittedOffsets

    def plan(self) -> None:
        """Look through them when the time has come, and again after that."""

        def due(state: object, now_ms: int) -> GroupResult:
            groups: list[AnyGroup] = [*self._groups.values(), *self._consumer_groups.values()]
            return self._expire(iter(groups), state, now_ms)

        self._shard.call_later(self._config.offsets_retention_check_interval_ms, due)

    def _expire(self, groups: Iterator[AnyGroup], state: object, now_ms: int) -> GroupResult:
        """Some of the groups; the others in the next turns of the loop."""
        records: list[GroupRecord] = []
        left = _AT_ONCE
        for group in groups:
            if self._find(group.group_id) is not group:
                continue
            expired = self._expired(group, now_ms)
            records += (OffsetCommit(group.group_id, *place, None) for place in expired)
            known = self._offsets.places(group.group_id)
            if not known.difference(expired) and _is_idle(group):
                records += tombstones_of(group)
            left -= 1 + len(known)
            if left <= 0:
                self._shard.call_later(0, partial(self._expire, groups))
                break
        else:
            self.plan()
        return CommandResult(None, records, whole=False)

    def _find(self, group_id: str) -> AnyGroup | None:
        return self._groups.get(group_id) or self._consumer_groups.get(group_id)

    def _expired(self, group: Group | ConsumerGroup, now_ms: int) -> list[TopicPartition]:
        since_ms = None  # what retention counts from, if not from the commit
        if isinstance(group, Group):
            is_empty = group.phase is GroupPhase.EMPTY
            is_known = group.phase is GroupPhase.STABLE and group.is_consumers and group.topics is not None
            if group.protocol_type is not None and not is_empty and not is_known:
                return []
            if group.protocol_type is not None and is_empty and group.timestamp >= 0:
                since_ms = group.timestamp
        topics = group.topics() if isinstance(group, ConsumerGroup) else None
        expired = []
        for place, commit in self._offsets.of(group.group_id).items():
            is_wanted = group.is_subscribed(place.topic) if topics is None else place.topic in topics
            if is_wanted or self._offsets.is_unstable(group.group_id, place):
                continue
            if commit.expire_timestamp >= 0:
                is_over = now_ms >= commit.expire_timestamp
            else:
                base_ms = commit.commit_timestamp if since_ms is None else since_ms
                is_over = now_ms - base_ms >= self._config.offsets_retention_minutes * _MINUTE_MS
            if is_over:
                expired.append(place)
        return expired


def _is_idle(group: Group | ConsumerGroup) -> bool:
    """Whether nobody is in it, or on the way into it."""
    if isinstance(group, Group):
        return group.phase is GroupPhase.EMPTY and not group.pending
    return not group.members


def tombstones_of(group: Group | ConsumerGroup) -> list[GroupRecord]:
    """What takes a whole group back."""
    if isinstance(group, Group):
        return [GroupMetadata(group.group_id, None)]
    return [*group.tombstones()]
