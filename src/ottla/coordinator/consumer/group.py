"""A consumer group (KIP-848): epochs, members, what each should have and what each has. Changed by replay only.

Whenever what the members want changes, or the topics do, the group's epoch rises; then a target is computed for that
epoch, and each member walks towards it by its own heartbeats.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import (
    NOTHING,
    Assigned,
    ConsumerRecord,
    CurrentMember,
    GroupEpoch,
    MemberDetails,
    MemberRecord,
    MemberState,
    PartitionMetadata,
    PatternRecord,
    Resolved,
    Standing,
    TargetEpoch,
    TargetMember,
)
from ottla.protocol.errors import ErrorCode

LEFT = -1  # the epoch of a member that leaves, or is gone
LEFT_FOR_NOW = -2  # of a static member that will be back
NO_EPOCH = -1
_MODERN_COMMITS_SINCE = 9  # OffsetCommit: member epochs


class ConsumerPhase(Enum):
    """Where a group is, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerMember(NamedTuple):
    """A member. Never changed, only followed."""

    member_id: str
    details: MemberDetails = MemberDetails()
    standing: Standing = Standing()

    @property
    def epoch(self) -> int:
        return self.standing.epoch

    @property
    def is_classic(self) -> bool:
        return self.details.classic is not None

    def is_settled(self, target_epoch: int) -> bool:
        """Whether it has all that the target of an epoch gives it, and nothing else."""
        return self.standing.state is MemberState.STABLE and self.standing.epoch == target_epoch


Changes = Mapping[str, ConsumerMember | None]  # members as they will be; None for those that will be gone
NO_CHANGES: Changes = {}


class ConsumerGroup:
    """A group and its members."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0  # of the topics that members want, as they were at that epoch
        self.target_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}  # instance id -> member id
        self.targets: dict[str, Assigned] = {}
        self.resolved: dict[str, Resolved] = {}  # by pattern
        # How many members have each, and how many speak the classic protocol: a large group is not looked through.
        self.patterns: Counter[str] = Counter()
        self.assignors: Counter[str] = Counter()
        self._wanted: Counter[str] = Counter()  # topics by name
        self.classic_count = 0
        self.metadata_bytes = 0  # of the details of all members
        self.has_partition_metadata = False  # an old record that is to be taken back
        self._owners: dict[tuple[uuid.UUID, int], int] = {}  # the epochs of whoever has a partition
        # Not written down: whether the topics are to be looked at again at the next heartbeat.
        self.needs_refresh = True

    # -- replay

    def replay(self, record: ConsumerRecord) -> None:
        match record:
            case GroupEpoch(value=value) if value is not None:
                self.epoch, self.metadata_hash = value
            case PartitionMetadata(value=value):
                self.has_partition_metadata = value is not None
            case MemberRecord(member=member_id, value=value):
                self._replay_details(member_id, value)
            case TargetEpoch(value=value):
                self.target_epoch = NO_EPOCH if value is None else value
            case TargetMember(member=member_id, value=value):
                if value is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = value
            case CurrentMember(member=member_id, value=value):
                self._replay_standing(member_id, value)
            case PatternRecord(pattern=pattern, value=value):
                if value is None:
                    self.resolved.pop(pattern, None)
                else:
                    self.resolved[pattern] = value

    def _replay_details(self, member_id: str, details: MemberDetails | None) -> None:
        known = self.members.get(member_id)
        if known is not None:
            self._count(known.details, -1)
        if details is None:
            self._remove(member_id)
            return
        self.members[member_id] = (known or ConsumerMember(member_id))._replace(details=details)
        self._count(details, 1)
        if details.instance_id is not None:
            self.static[details.instance_id] = member_id

    def _count(self, details: MemberDetails, change: int) -> None:
        for topic in details.topics:
            _add(self._wanted, topic, change)
        if details.pattern:
            _add(self.patterns, details.pattern, change)
        if details.assignor is not None:
            _add(self.assignors, details.assignor, change)
        self.classic_count += change * (details.classic is not None)
        self.metadata_bytes += change * details.size_bytes

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._disown(member.standing)
        instance_id = member.details.instance_id
        if instance_id is not None and self.static.get(instance_id) == member_id:
            del self.static[instance_id]

    def _replay_standing(self, member_id: str, standing: Standing | None) -> None:
        known = self.members.get(member_id)
        if known is None and standing is None:
            return
        if known is not None:
            self._disown(known.standing)
        new = Standing(LEFT, LEFT) if standing is None else standing
        self.members[member_id] = (known or ConsumerMember(member_id))._replace(standing=new)
        for place in _places(new):
            self._owners[place] = max(new.epoch, self._owners.get(place, new.epoch))

    def _disown(self, standing: Standing) -> None:
        for place in _places(standing):
            if self._owners.get(place) == standing.epoch:
                del self._owners[place]

    # -- questions

    @property
    def phase(self) -> ConsumerPhase:
        if not self.members:
            return ConsumerPhase.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerPhase.ASSIGNING
        if all(member.is_settled(self.target_epoch) for member in self.members.values()):
            return ConsumerPhase.STABLE
        return ConsumerPhase.RECONCILING

    def is_owned(self, topic_id: uuid.UUID, partition: int) -> bool:
        return (topic_id, partition) in self._owners

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise CodedError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {self.group_id}."
            )
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: ConsumerMember) -> Assigned:
        """What a member should have; a static one what its instance had before."""
        before = self.static.get(member.details.instance_id or "", member.member_id)
        return self.targets.get(before, NOTHING)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """All that a member wants; a pattern that has not been resolved stands for nothing."""
        found = self.resolved.get(member.details.pattern)
        return member.details.topics if found is None else member.details.topics | found.topics

    def topics(
        self, changed: Changes = NO_CHANGES, resolved: Mapping[str, Resolved] | None = None
    ) -> set[str]:
        """All that members want, once some have changed or are gone."""
        wanted, patterns = self._wanted, self.patterns
        if changed:
            wanted, patterns = Counter(wanted), Counter(patterns)
            for member_id, member in changed.items():
                known = self.members.get(member_id)
                for one, change in ((known, -1), (member, 1)):
                    if one is not None:
                        for topic in one.details.topics:
                            _add(wanted, topic, change)
                        _add(patterns, one.details.pattern, change)
        topics = set(wanted)
        for pattern, found in (self.resolved if resolved is None else resolved).items():
            if pattern in patterns:
                topics |= found.topics
        return topics

    def is_subscribed(self, topic: str) -> bool:
        return topic in self._wanted or any(
            topic in found.topics for pattern, found in self.resolved.items() if pattern in self.patterns
        )

    def preferred_assignor(self, changed: Changes = NO_CHANGES) -> str | None:
        """The one that most members ask for, if any does."""
        votes = Counter(self.assignors)
        for member_id, member in changed.items():
            for one, change in ((self.members.get(member_id), -1), (member, 1)):
                if one is not None and one.details.assignor is not None:
                    _add(votes, one.details.assignor, change)
        return max(votes, key=lambda name: (votes[name], name), default=None)

    # -- offsets

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
    ) -> None:
        """CodedError unless such a member may commit offsets now."""
        if epoch < 0 and not self.members:
            return
        if transactional and epoch == NO_EPOCH and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        if not transactional and not member.is_classic and version < _MODERN_COMMITS_SINCE:
            raise CodedError(ErrorCode.UNSUPPORTED_VERSION)
        self._check_epoch(member, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """CodedError unless such a member may read offsets now."""
        if member_id is None and epoch < 0:
            return
        self._check_epoch(self.member(member_id or ""), epoch)

    @staticmethod
    def _check_epoch(member: ConsumerMember, epoch: int) -> None:
        if epoch != member.epoch:
            code = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
            raise CodedError(code, f"epoch {epoch} is not the member's epoch {member.epoch}.")

    # -- as records

    def tombstones(self, renamed: Mapping[str, str] | None = None) -> list[ConsumerRecord]:
        """What takes the whole group back; `renamed` members are known by another id in the log by then."""
        group = self.group_id
        ids = [(renamed or {}).get(member_id, member_id) for member_id in self.members]
        records: list[ConsumerRecord] = [CurrentMember(group, member_id, None) for member_id in ids]
        records += (TargetMember(group, member_id, None) for member_id in ids)
        records.append(TargetEpoch(group, None))
        records += (MemberRecord(group, member_id, None) for member_id in ids)
        records += (PatternRecord(group, pattern, None) for pattern in self.resolved)
        records.append(PartitionMetadata(group, None))
        records.append(GroupEpoch(group, None))
        return records

    def snapshot(self) -> list[ConsumerRecord]:
        """The group as it is written down when it begins with members."""
        group, members = self.group_id, self.members
        records: list[ConsumerRecord] = [
            MemberRecord(group, m.member_id, m.details) for m in members.values()
        ]
        records.append(GroupEpoch(group, (self.epoch, self.metadata_hash)))
        records += (TargetMember(group, member_id, self.targets[member_id]) for member_id in members)
        records.append(TargetEpoch(group, self.epoch))
        records += (CurrentMember(group, m.member_id, m.standing) for m in members.values())
        return records


def _add(counts: Counter[str], key: str, change: int) -> None:
    """Count, without a place for what there is none of."""
    count = counts[key] + change
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)


def _places(standing: Standing) -> Iterable[tuple[uuid.UUID, int]]:
    for assigned in (standing.assigned, standing.revoking):
        for topic_id, partitions in assigned.items():
            for partition in partitions:
                yield topic_id, partition
