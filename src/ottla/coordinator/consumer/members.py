"""The members of one shard's consumer groups: how one is found, replaced, sent away, and what it is waited for."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from ottla.config import GroupConfig
from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.rebalances import Effects, Rebalances
from ottla.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.member_timers import Clock, MemberTimers
from ottla.coordinator.consumer.member_updates import MemberUpdates
from ottla.coordinator.consumer.migration import Migration
from ottla.coordinator.result import CommandResult, GroupResult, Shard
from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import (
    CurrentMember,
    GroupEpoch,
    MemberRecord,
    MemberState,
    PatternRecord,
    TargetMember,
)
from ottla.internal_topics.group_records import GroupRecord
from ottla.protocol.errors import ErrorCode


class ConsumerMembers:
    """What heartbeats of both protocols have in common."""

    def __init__(
        self,
        shard: Shard,
        settings: Callable[[str], GroupConfig],
        groups: dict[str, ConsumerGroup],
        updates: MemberUpdates,
        migration: Migration,
        rebalances: Rebalances,
    ) -> None:
        self._shard = shard
        self.settings = settings  # of a group
        self._groups = groups
        self._updates = updates
        self._migration = migration
        self._rebalances = rebalances
        self.timers = MemberTimers(shard)

    def new_id(self) -> str:
        """As Kafka writes ids; never with a dash in front, which looks like an option."""
        while True:
            number = self._shard.randrange(1 << 128).to_bytes(16, "big")
            text = base64.urlsafe_b64encode(number).decode().rstrip("=")
            if not text.startswith("-"):
                return text

    # -- static members

    def known_static(self, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
        """The member of an instance; CodedError if there is none, or if it is another one now."""
        member = group.static_member(instance_id)
        if member is None:
            raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            message = (
                f"Static member {member_id} with instance id {instance_id} was fenced by {member.member_id}."
            )
            raise CodedError(ErrorCode.FENCED_INSTANCE_ID, message)
        return member

    def replace(
        self, group: ConsumerGroup, old: ConsumerMember, member_id: str, records: list[GroupRecord]
    ) -> ConsumerMember:
        """A static member under a new id, with all that it had. The old one's clocks run on, for nobody."""
        standing = old.standing._replace(epoch=0, previous_epoch=0)
        new = ConsumerMember(member_id, old.details, standing)
        name = group.group_id
        records += _removed(name, old.member_id)
        records.append(MemberRecord(name, member_id, new.details))
        records.append(TargetMember(name, member_id, group.targets.get(old.member_id, {})))
        records.append(CurrentMember(name, member_id, standing))
        return new

    # -- clocks

    def touch(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """The member is alive."""
        if timeout_ms is None:
            timeout_ms = self.settings(group_id).session_timeout_ms
        self.wait_for(Clock.SESSION, group_id, member_id, timeout_ms)

    def wait_for(self, clock: Clock, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Send a member away unless it does in time what it is waited for."""
        self.timers.start(
            clock, group_id, member_id, timeout_ms, partial(self._due, group_id, member_id, None)
        )

    def wait_for_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """As long as the member is in this epoch: it has to give up partitions to get out of it."""
        due = partial(self._due, group_id, member.member_id, member.epoch)
        timeout_ms = member.details.rebalance_timeout_ms
        self.timers.start(Clock.REBALANCE, group_id, member.member_id, timeout_ms, due)

    def _due(
        self, group_id: str, member_id: str, epoch: int | None, state: object, now_ms: int
    ) -> GroupResult:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None or epoch not in (None, member.epoch):
            return CommandResult()
        return self.remove(group, [member], now_ms, None)

    def take_over(self, group: ConsumerGroup) -> None:
        """The group was read from the log."""
        if self._groups.get(group.group_id) is not group:
            return
        for member in group.members.values():
            if not self.timers.is_running(Clock.SESSION, group.group_id, member.member_id):
                self.touch(group.group_id, member.member_id)
                if member.standing.state is MemberState.UNREVOKED_PARTITIONS:
                    self.wait_for_revocation(group.group_id, member)

    # -- the end of a member

    def remove(
        self, group: ConsumerGroup, members: Collection[ConsumerMember], now_ms: int, response: Any
    ) -> GroupResult:
        """Members are gone; the group may be a classic one then."""
        if not members:
            return CommandResult(response)
        if self._migration.may_downgrade(group, members):
            fx = Effects(now_ms)
            classic = self._migration.downgrade(group, members, None, fx)
            self._rebalances.prepare(classic, fx)
            self.forget(group)
            fx.undo = partial(self.undo_downgrade, group, classic)
            return fx.result(response)
        name = group.group_id
        records: list[GroupRecord] = []
        for member in members:
            records += _removed(name, member.member_id)
        patterns = Counter(member.details.pattern for member in members)
        gone = [
            pattern for pattern, count in patterns.items() if pattern and count == group.patterns[pattern]
        ]
        records += (PatternRecord(name, pattern, None) for pattern in sorted(gone))
        metadata_hash = self._updates.hash_of(group, {member.member_id: None for member in members})
        records.append(GroupEpoch(name, (group.epoch + 1, metadata_hash)))
        for member in members:
            self.timers.forget(name, member.member_id)
        return CommandResult(response, records)

    def undo_downgrade(self, group: ConsumerGroup, classic: Group) -> None:
        self._migration.undo_downgrade(group, classic)
        for member in group.members.values():
            self.touch(group.group_id, member.member_id)

    def forget(self, group: ConsumerGroup) -> None:
        """The group is no consumer group any more."""
        for member_id in group.members:
            self.timers.forget(group.group_id, member_id)


def _removed(group_id: str, member_id: str) -> list[GroupRecord]:
    return [
        CurrentMember(group_id, member_id, None),
        TargetMember(group_id, member_id, None),
        MemberRecord(group_id, member_id, None),
    ]
