"""Groups that change their protocol while they are at work: classic to consumer group, and back.

A classic group of consumers becomes a consumer group when the first member joins by the newer protocol; its members
go on as classic members of it. It becomes a classic group again when the last member of the newer protocol is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from ottla.cluster.image import ClusterImage
from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import CONSUMER_PROTOCOL, Group, Member
from ottla.coordinator.classic.phases import GroupEvent
from ottla.coordinator.classic.rebalances import Effects, Rebalances
from ottla.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.topic_hash import TopicHashes
from ottla.coordinator.result import Reply
from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import (
    ClassicMember,
    CurrentMember,
    MemberDetails,
    MemberRecord,
    Standing,
    TargetMember,
)
from ottla.internal_topics.consumer_protocol import read_assignment, read_subscription, write_assignment
from ottla.internal_topics.fields import MalformedError
from ottla.internal_topics.group_records import GroupMetadata, GroupRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse

_UPGRADES = ("upgrade", "bidirectional")
_DOWNGRADES = ("downgrade", "bidirectional")


@dataclass(eq=False)
class Migration:
    """The way from one kind of group to the other, for one shard."""

    _config: BrokerConfig
    _image: Callable[[], ClusterImage]
    _hashes: TopicHashes
    _groups: dict[str, Group]
    _consumer_groups: dict[str, ConsumerGroup]
    _rebalances: Rebalances

    def _allows(self, policies: tuple[str, ...]) -> bool:
        return self._config.group_consumer_migration_policy.lower() in policies

    # -- to a consumer group

    def upgraded(self, classic: Group) -> ConsumerGroup:
        """The same group as a consumer group; CodedError if it cannot become one. Nothing is changed yet."""
        if not self._allows(_UPGRADES):
            raise _refused(classic, "online upgrade is disabled")
        if not classic.is_consumers:
            raise _refused(classic, "the group does not use the consumer embedded protocol")
        if len(classic.members) > self._config.group_consumer_max_size:
            raise _refused(classic, "the group size exceeds the consumer group maximum size")
        group = ConsumerGroup(classic.group_id)
        try:
            for member in classic.members.values():
                self._add(group, classic, member)
        except MalformedError as error:
            raise _refused(classic, f"what its members say cannot be kept: {error}") from error
        places = [
            (topic_id, number)
            for target in group.targets.values()
            for topic_id, numbers in target.items()
            for number in numbers
        ]
        if len(set(places)) < len(places):
            raise _refused(classic, "some of its members have the same partitions")
        group.epoch = group.target_epoch = classic.generation
        topics = group.topics()
        group.metadata_hash = self._hashes.of_group(topics, self._image())
        return group

    def _add(self, group: ConsumerGroup, classic: Group, member: Member) -> None:
        assigned = read_assignment(member.assignment, self._image())
        # Before the first generation there is no protocol yet; all of a member's say the same.
        protocol = classic.protocol if classic.protocol is not None else member.protocols[0][0]
        subscription = read_subscription(member.metadata(protocol))
        details = MemberDetails(
            member.instance_id,
            subscription.rack_id,
            member.client_id,
            member.client_host,
            subscription.topics,
            "",
            member.rebalance_timeout_ms,
            None,
            ClassicMember(member.session_timeout_ms, member.protocols),
        )
        name, epoch = member.member_id, classic.generation
        group.replay(MemberRecord(group.group_id, name, details))
        group.replay(CurrentMember(group.group_id, name, Standing(epoch, epoch, assigned=assigned)))
        group.replay(TargetMember(group.group_id, name, assigned))

    @staticmethod
    def sent_back(classic: Group) -> list[tuple[Reply, Any]]:
        """What those are told who wait in a classic group that is none any more: to join again."""
        code = ErrorCode.REBALANCE_IN_PROGRESS
        replies: list[tuple[Reply, Any]] = []
        for member in classic.members.values():
            if member.join_reply is not None:
                refusal = JoinGroupResponse(member_id=member.member_id, error_code=code, protocol_name=None)
                replies.append((member.join_reply, refusal))
            if member.sync_reply is not None:
                replies.append((member.sync_reply, SyncGroupResponse(error_code=code)))
            member.join_reply = member.sync_reply = None
        return replies

    # -- to a classic group

    def may_downgrade(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Whether a consumer group is left with classic members only, and is to be a classic group then."""
        left = len(group.members) - len(leaving)
        classic_left = group.classic_count - sum(member.is_classic for member in leaving)
        return 0 < left <= self._config.group_max_size and self._allows(_DOWNGRADES) and classic_left == left

    def may_downgrade_by(self, group: ConsumerGroup, replaced: ConsumerMember | None) -> bool:
        """The same if a static member, the last one of the newer protocol, comes back as a classic one."""
        if replaced is None or replaced.is_classic or not self._allows(_DOWNGRADES):
            return False
        size = len(group.members)
        return group.classic_count == size - 1 and size <= self._config.group_max_size

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Collection[ConsumerMember],
        joining: ConsumerMember | None,
        fx: Effects,
    ) -> Group:
        """Put a classic group in the place of a consumer group. `joining` is a static member that has come back."""
        replaced = group.static_member(joining.details.instance_id) if joining is not None else None
        gone = {member.member_id for member in leaving}
        renamed = {}
        if joining is not None and replaced is not None:
            gone.add(replaced.member_id)
            renamed[replaced.member_id] = joining.member_id
        classic = Group(group.group_id, fx.now_ms)
        classic.protocol_type, classic.generation = CONSUMER_PROTOCOL, group.epoch
        staying = [member for member in group.members.values() if member.member_id not in gone]
        for member in [*staying, joining] if joining is not None else staying:
            classic.add(_as_classic(member), CONSUMER_PROTOCOL)
        classic.protocol = classic.select_protocol()
        classic.topics = classic.subscribed()
        for one in classic.members.values():
            target = group.target_of(
                group.members.get(one.member_id) or joining or ConsumerMember(one.member_id)
            )
            one.assignment = write_assignment(target, one.metadata(classic.protocol), self._image())
        classic.move(GroupEvent.RESTORED, fx.now_ms)
        records: list[GroupRecord] = [
            *group.tombstones(renamed),
            GroupMetadata(group.group_id, classic.snapshot()),
        ]
        fx.records += records
        del self._consumer_groups[group.group_id]
        self._groups[group.group_id] = classic
        for one in classic.members.values():
            self._rebalances.touch(classic, one)
        return classic

    def undo_downgrade(self, group: ConsumerGroup, classic: Group) -> None:
        """It could not be written down."""
        classic.end()
        self._groups.pop(group.group_id, None)
        self._consumer_groups[group.group_id] = group


def _as_classic(member: ConsumerMember) -> Member:
    details = member.details
    assert details.classic is not None
    return Member(
        member.member_id,
        details.instance_id,
        details.client_id,
        details.client_host,
        details.rebalance_timeout_ms,
        details.classic.session_timeout_ms,
        details.classic.protocols,
    )


def _refused(classic: Group, reason: str) -> CodedError:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
    return CodedError(ErrorCode.GROUP_ID_NOT_FOUND, message)
