"""Classic members of consumer groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup in a group of the newer protocol.

A classic member's generation is its epoch. It is told to join again whenever there is a step to take: to give up
partitions, to get some, to follow the group's epoch. Nobody leads; the coordinator itself says who gets what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ottla.cluster.image import ClusterImage
from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import CONSUMER_PROTOCOL
from ottla.coordinator.classic.join import Joining
from ottla.coordinator.classic.rebalances import Effects, Rebalances
from ottla.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.member_timers import Clock
from ottla.coordinator.consumer.member_updates import MemberUpdates, Update
from ottla.coordinator.consumer.members import ConsumerMembers
from ottla.coordinator.consumer.migration import Migration
from ottla.coordinator.consumer.reconciling import Owned
from ottla.coordinator.result import CommandResult, GroupResult
from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import ClassicMember, MemberDetails, MemberState
from ottla.internal_topics.consumer_protocol import (
    Subscription,
    owned_partitions,
    read_subscription,
    write_assignment,
)
from ottla.internal_topics.fields import MalformedError
from ottla.internal_topics.group_records import GroupRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_ID_REQUIRED_SINCE = 4


@dataclass(eq=False)
class ClassicMembers:
    """What members of the classic protocol do in one shard's consumer groups."""

    _config: BrokerConfig
    _image: Callable[[], ClusterImage]
    _members: ConsumerMembers
    _updates: MemberUpdates
    _migration: Migration
    _rebalances: Rebalances

    # -- JoinGroup

    def join(self, group: ConsumerGroup, joining: Joining, now_ms: int) -> GroupResult:
        try:
            return self._join(group, joining, now_ms)
        except CodedError as error:
            return CommandResult(JoinGroupResponse(error_code=error.code, protocol_name=None))

    def _join(self, group: ConsumerGroup, joining: Joining, now_ms: int) -> GroupResult:
        request = joining.request
        instance_id = request.group_instance_id
        member_id = request.member_id or self._members.new_id()
        if len(group.members) >= self._config.group_consumer_max_size and member_id not in group.members:
            raise CodedError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        _check_protocols(group, joining)
        if not request.member_id and instance_id is None and joining.version >= _ID_REQUIRED_SINCE:
            code = ErrorCode.MEMBER_ID_REQUIRED
            return CommandResult(JoinGroupResponse(member_id=member_id, error_code=code, protocol_name=None))
        try:
            subscription = read_subscription(joining.protocols[0][1])
        except MalformedError as error:
            raise CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error
        records: list[GroupRecord] = []
        replaced = group.static_member(instance_id)
        old = self._joining_member(group, joining, member_id, replaced, records)
        update = Update(group, old, old, records)
        details = _details(old, joining, subscription)
        is_bumped = self._updates.subscribe(update, details, _everything, now_ms, classic=True)
        owned = owned_partitions(subscription, self._image())
        if self._migration.may_downgrade_by(group, replaced):
            return self._downgrade(update, owned, is_bumped, now_ms)
        self._updates.reconcile(update, *self._updates.assign(update), owned)
        member_id = update.member.member_id
        self._members.timers.stop(Clock.JOIN, group.group_id, member_id)
        self._members.touch(group.group_id, member_id, request.session_timeout_ms)
        self._members.wait_for(Clock.SYNC, group.group_id, member_id, joining.rebalance_timeout_ms)
        return CommandResult(_joined(update.member), records)

    def _joining_member(
        self,
        group: ConsumerGroup,
        joining: Joining,
        member_id: str,
        replaced: ConsumerMember | None,
        records: list[GroupRecord],
    ) -> ConsumerMember:
        instance_id = joining.request.group_instance_id
        if instance_id is not None and joining.request.member_id:
            return self._members.known_static(group, member_id, instance_id)
        if replaced is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        return self._members.replace(group, replaced, member_id, records)

    def _downgrade(self, update: Update, owned: Owned, is_bumped: bool, now_ms: int) -> GroupResult:
        """The last member of the newer protocol has come back as a classic one."""
        group = update.group
        if not is_bumped:
            target = group.target_of(update.member)
            self._updates.reconcile(update, group.target_epoch, target, owned)
        fx = Effects(now_ms, records=update.records)
        classic = self._migration.downgrade(group, [], update.member, fx)
        self._members.forget(group)
        fx.undo = partial(self._members.undo_downgrade, group, classic)
        if is_bumped:
            self._rebalances.prepare(classic, fx)
        return fx.result(_joined(update.member))

    # -- SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> GroupResult:
        member = self._classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        (name, metadata), *_ = _classic(member).protocols
        if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol_name not in (
            None,
            name,
        ):
            raise CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.epoch > member.epoch and member.standing.state is not MemberState.UNREVOKED_PARTITIONS:
            self._wait_for_join(group, member)
            raise CodedError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._members.timers.stop(Clock.SYNC, group.group_id, member.member_id)
        self._members.touch(group.group_id, member.member_id, _classic(member).session_timeout_ms)
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(member.standing.assigned, metadata, self._image()),
        )
        return CommandResult(response)

    # -- Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> GroupResult:
        member = self._classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._members.touch(group.group_id, member.member_id, _classic(member).session_timeout_ms)
        state = member.standing.state
        may_go_on = state is MemberState.UNRELEASED_PARTITIONS and not _is_waiting(group, member)
        if member.epoch < group.epoch or state is MemberState.UNREVOKED_PARTITIONS or may_go_on:
            self._wait_for_join(group, member)
            return CommandResult(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return CommandResult(HeartbeatResponse())

    def _wait_for_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if not self._members.timers.is_running(Clock.JOIN, group.group_id, member.member_id):
            timeout_ms = member.details.rebalance_timeout_ms
            self._members.wait_for(Clock.JOIN, group.group_id, member.member_id, timeout_ms)

    # -- LeaveGroup

    def leave(self, group: ConsumerGroup, identities: Sequence[MemberIdentity], now_ms: int) -> GroupResult:
        answers, leaving = [], {}
        for identity in identities:
            member_id, instance_id = identity.member_id, identity.group_instance_id
            code: int = ErrorCode.NONE
            try:
                if instance_id is not None and not member_id:  # an administrator sends it away
                    known = group.static_member(instance_id)
                    member_id = known.member_id if known is not None else ""
                member = self._any_member(group, member_id, instance_id)
                leaving[member.member_id] = member
            except CodedError as error:
                code = error.code
            answers.append(
                MemberResponse(member_id=identity.member_id, group_instance_id=instance_id, error_code=code)
            )
        return self._members.remove(group, leaving.values(), now_ms, LeaveGroupResponse(members=answers))

    # -- who asks

    def _any_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        if instance_id is None:
            return group.member(member_id)
        return self._members.known_static(group, member_id, instance_id)

    def _classic_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> ConsumerMember:
        member = self._any_member(group, member_id, instance_id)
        if not member.is_classic:
            raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member


def _classic(member: ConsumerMember) -> ClassicMember:
    assert member.details.classic is not None
    return member.details.classic


def _everything(topic: str) -> bool:
    """Classic members have no patterns: whose they are looked up for does not matter."""
    return True


def _check_protocols(group: ConsumerGroup, joining: Joining) -> None:
    """CodedError unless all classic members of the group can agree with this one."""
    spoken = [
        {name for name, _ in member.details.classic.protocols}
        for member in group.members.values()
        if member.details.classic is not None
    ]
    names = {name for name, _ in joining.protocols}
    common = names.intersection(*spoken)
    if joining.request.protocol_type != CONSUMER_PROTOCOL or not common:
        raise CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if member.epoch != generation:
        raise CodedError(ErrorCode.ILLEGAL_GENERATION)


def _is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether others still have what the member should get."""
    assigned = member.standing.assigned
    return any(
        number not in assigned.get(topic_id, ()) and group.is_owned(topic_id, number)
        for topic_id, numbers in group.targets.get(member.member_id, {}).items()
        for number in numbers
    )


def _details(old: ConsumerMember, joining: Joining, subscription: Subscription) -> MemberDetails:
    request = joining.request
    return old.details.updated(
        request.group_instance_id,
        subscription.rack_id,
        joining.client_id,
        joining.client_host,
        subscription.topics,
        "",
        joining.rebalance_timeout_ms,
        classic=ClassicMember(request.session_timeout_ms, joining.protocols),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=_classic(member).protocols[0][0],
    )
