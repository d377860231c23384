"""What follows when a member of a consumer group is heard of, step by step, as records.

Its own record, if it wants something else; then the group's epoch, if the group as a whole wants something else or
topics have changed; then a new target, if the epoch has risen; then the member's next step towards its target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.cluster.image import ClusterImage
from ottla.coordinator.consumer.group import Changes, ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.pattern_resolver import Allowed, PatternChange, PatternResolver
from ottla.coordinator.consumer.reconciling import Owned, reconcile
from ottla.coordinator.consumer.target_assignments import TargetAssignments, topic_ids
from ottla.coordinator.consumer.topic_hash import TopicHashes
from ottla.internal_topics.consumer_group_records import (
    Assigned,
    CurrentMember,
    GroupEpoch,
    MemberDetails,
    MemberRecord,
    PartitionMetadata,
)
from ottla.internal_topics.group_records import GroupRecord


@dataclass(slots=True)
class Update:
    """A member on its way through the steps."""

    group: ConsumerGroup
    old: ConsumerMember
    member: ConsumerMember
    records: list[GroupRecord] = field(default_factory=list)
    epoch: int = 0  # of the group
    has_new_subscription: bool = False


@dataclass(eq=False)
class MemberUpdates:
    """The steps, for one shard's groups."""

    _targets: TargetAssignments
    _image: Callable[[], ClusterImage]
    _hashes: TopicHashes
    _patterns: PatternResolver

    def subscribe(
        self, update: Update, details: MemberDetails, allowed: Allowed, now_ms: int, *, classic: bool
    ) -> bool:
        """What the member wants now, and the group's epoch. Whether that is new, or was a reason for a new epoch."""
        group, old = update.group, update.old
        update.member = new = old._replace(details=details)
        update.epoch = group.epoch
        if details != old.details:
            update.records.append(MemberRecord(group.group_id, new.member_id, details))
        has_new_names = details.topics != old.details.topics
        change = self._patterns.follow(group, old, new, allowed, update.records, now_ms)
        update.has_new_subscription = has_new_names or change is not PatternChange.NONE
        # A pattern raises the group's epoch when the topics that match it are known, and not earlier.
        is_new = has_new_names or change is PatternChange.KNOWN
        is_bumped = update.has_new_subscription if classic else group.epoch == 0 or is_new
        if is_bumped or group.needs_refresh:
            self._bump(update, is_bumped)
        return is_bumped

    def _bump(self, update: Update, is_bumped: bool) -> None:
        group = update.group
        metadata_hash = self.hash_of(group, _changes(update))
        if is_bumped or metadata_hash != group.metadata_hash:
            update.epoch = group.epoch + 1
            update.records.append(GroupEpoch(group.group_id, (update.epoch, metadata_hash)))
        group.needs_refresh = False
        if group.has_partition_metadata:
            update.records.append(PartitionMetadata(group.group_id, None))

    def hash_of(self, group: ConsumerGroup, changed: Changes) -> int:
        return self._hashes.of_group(group.topics(changed), self._image())

    def assign(self, update: Update) -> tuple[int, Assigned]:
        """What the member should have, and since which epoch: by a new target if the group's epoch has risen."""
        group, member = update.group, update.member
        if update.epoch <= group.target_epoch:
            return group.target_epoch, group.target_of(member)
        targets = self._targets.compute(group, update.epoch, _changes(update), update.records)
        if targets is None:
            return group.target_epoch, group.target_of(member)  # the new target comes with a later heartbeat
        return update.epoch, targets[member.member_id]

    def reconcile(self, update: Update, target_epoch: int, target: Assigned, owned: Owned | None) -> bool:
        """The member's next step; whether there was one."""
        group, member = update.group, update.member
        if not update.has_new_subscription and member.is_settled(target_epoch):
            return False
        standing = reconcile(
            member,
            target_epoch,
            target,
            topic_ids(group, member, self._image()),
            group.is_owned,
            owned,
            has_new_subscription=update.has_new_subscription,
        )
        if standing == member.standing:
            return False
        update.member = member._replace(standing=standing)
        update.records.append(CurrentMember(group.group_id, member.member_id, standing))
        return True


def _changes(update: Update) -> dict[str, ConsumerMember | None]:
    member = update.member
    previous = update.group.static_member(member.details.instance_id)
    changes: dict[str, ConsumerMember | None] = {}
    if previous is not None and previous.member_id != member.member_id:
        changes[previous.member_id] = None
    changes[member.member_id] = member
    return changes
