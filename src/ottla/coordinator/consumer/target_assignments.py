"""What the members of a consumer group should have, worked out anew whenever the group's epoch has risen.

For a group of usual size that is done at once, while its member waits for the answer to its heartbeat. For a large one
it is done in pieces between other commands: until it is done its members go by the last one, and a member that has
just come has nothing. What changed meanwhile is for the next time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from ottla.cluster.image import ClusterImage
from ottla.coordinator.consumer.assignors import ASSIGNORS, Candidate, Steps, Targets, at_once
from ottla.coordinator.consumer.group import Changes, ConsumerGroup, ConsumerMember
from ottla.coordinator.result import CommandResult, GroupResult, Shard
from ottla.internal_topics.consumer_group_records import Assigned, TargetEpoch, TargetMember
from ottla.internal_topics.group_records import GroupRecord

_PIECE_STEPS = 100
_MEMBER_WEIGHT = 5  # so much more than a partition does a member take
LARGE = 1000  # in partitions


@dataclass(eq=False)
class TargetAssignments:
    """Those of one shard's groups."""

    _shard: Shard
    _default_assignor: str
    _image: Callable[[], ClusterImage]
    _groups: dict[str, ConsumerGroup]
    _busy: set[str] = field(default_factory=set)  # groups whose targets are being worked out

    def compute(
        self, group: ConsumerGroup, epoch: int, changed: Changes, records: list[GroupRecord]
    ) -> Targets | None:
        """The targets of an epoch, with their records; None if they will come later."""
        if group.target_epoch > 0 and self._is_large(group):
            if group.group_id not in self._busy:
                self._busy.add(group.group_id)
                self._shard.call_later(0, partial(self._begin, group))
            return None
        members = dict(group.members)
        for member_id, member in changed.items():
            if member is None:
                members.pop(member_id, None)
            else:
                members[member_id] = member
        targets = at_once(self._steps(group, members.values(), changed))
        records += (
            TargetMember(group.group_id, member_id, targets[member_id])
            for member_id in members
            if targets[member_id] != group.targets.get(member_id)
        )
        records.append(TargetEpoch(group.group_id, epoch))
        return targets

    def _is_large(self, group: ConsumerGroup) -> bool:
        weight = len(group.members) * _MEMBER_WEIGHT
        if weight > LARGE:
            return True
        topics = self._image().topics
        return weight + sum(len(topics[name].partitions) for name in group.topics() if name in topics) > LARGE

    def _steps(
        self, group: ConsumerGroup, members: Iterable[ConsumerMember], changed: Changes
    ) -> Steps[Targets]:
        image = self._image()
        candidates = {}
        all_topics: set[uuid.UUID] = set()
        for one in members:
            wanted = topic_ids(group, one, image)
            candidates[one.member_id] = Candidate(wanted, one.details.instance_id, group.target_of(one))
            all_topics |= wanted
            yield
        sizes = {topic_id: _size(image, topic_id) for topic_id in sorted(all_topics)}
        name = group.preferred_assignor(changed) or self._default_assignor
        return (yield from ASSIGNORS[name](candidates, sizes))

    # -- in pieces

    def _begin(self, group: ConsumerGroup, state: object, now_ms: int) -> GroupResult:
        if not group.members:
            self._busy.discard(group.group_id)
            return CommandResult()
        steps = self._steps(group, list(group.members.values()), {})
        return self._go_on(group, group.epoch, steps, state, now_ms)

    def _go_on(
        self, group: ConsumerGroup, epoch: int, steps: Steps[Targets], state: object, now_ms: int
    ) -> GroupResult:
        if self._is_over(group):
            return CommandResult()
        try:
            for _ in range(_PIECE_STEPS):
                next(steps)
        except StopIteration as end:
            return self._write(group, epoch, list(end.value.items()), 0, state, now_ms)
        self._shard.call_later(0, partial(self._go_on, group, epoch, steps))
        return CommandResult()

    def _write(
        self,
        group: ConsumerGroup,
        epoch: int,
        targets: list[tuple[str, Assigned]],
        first: int,
        state: object,
        now_ms: int,
    ) -> GroupResult:
        """Some at a time. Meanwhile two members may be meant to have a partition, but only one can be given it."""
        if self._is_over(group):
            return CommandResult()
        name, end = group.group_id, first + _PIECE_STEPS
        records: list[GroupRecord] = [
            TargetMember(name, member_id, target)
            for member_id, target in targets[first:end]
            if member_id in group.members and target != group.targets.get(member_id)
        ]
        if end < len(targets):
            self._shard.call_later(0, partial(self._write, group, epoch, targets, end))
        else:
            self._busy.discard(name)
            records.append(TargetEpoch(name, epoch))
        return CommandResult(None, records)

    def _is_over(self, group: ConsumerGroup) -> bool:
        """Whether the group is gone, or is another one."""
        is_over = self._groups.get(group.group_id) is not group
        if is_over:
            self._busy.discard(group.group_id)
        return is_over


def topic_ids(group: ConsumerGroup, member: ConsumerMember, image: ClusterImage) -> frozenset[uuid.UUID]:
    """The topics that a member wants, and that are there."""
    topics = image.topics
    return frozenset(topics[name].topic_id for name in group.topics_of(member) if name in topics)


def _size(image: ClusterImage, topic_id: uuid.UUID) -> int:
    info = image.topic_by_id(topic_id)
    return 0 if info is None else len(info.partitions)
