"""ConsumerGroupHeartbeat: a member of a consumer group joins, is alive, has partitions, or leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.consumer.group import LEFT, LEFT_FOR_NOW, ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.member_timers import Clock
from ottla.coordinator.consumer.member_updates import MemberUpdates, Update
from ottla.coordinator.consumer.members import ConsumerMembers
from ottla.coordinator.consumer.migration import Migration
from ottla.coordinator.consumer.pattern_resolver import Allowed
from ottla.coordinator.consumer.reconciling import Owned
from ottla.coordinator.offsets.room import MAX_NAME, Room, is_long
from ottla.coordinator.result import CommandResult, GroupResult
from ottla.errors import CodedError
from ottla.internal_topics.consumer_group_records import (
    NOTHING,
    Assigned,
    CurrentMember,
    MemberDetails,
    MemberState,
)
from ottla.internal_topics.group_records import GroupMetadata, GroupRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


class Beat(NamedTuple):
    """A heartbeat and who sent it."""

    request: ConsumerGroupHeartbeatRequest
    client_id: str
    client_host: str
    allowed: Allowed

    @property
    def owned(self) -> Owned | None:
        partitions = self.request.topic_partitions
        if partitions is None:
            return None
        return [(entry.topic_id, entry.partitions) for entry in partitions if entry.topic_id is not None]

    @property
    def is_full(self) -> bool:
        """Whether it says everything, as a member does that joins or that has lost an answer."""
        request = self.request
        wants = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        return request.rebalance_timeout_ms != -1 and wants and request.topic_partitions is not None


@dataclass(eq=False)
class ConsumerHeartbeats:
    """The heartbeats of one shard's consumer groups."""

    _config: BrokerConfig
    _classic_groups: dict[str, Group]
    _groups: dict[str, ConsumerGroup]
    _members: ConsumerMembers
    _updates: MemberUpdates
    _migration: Migration
    _room: Room

    def beat(self, beat: Beat, now_ms: int) -> GroupResult:
        if beat.request.member_epoch in (LEFT, LEFT_FOR_NOW):
            return self._leave(beat.request, now_ms)
        return self._stay(beat, now_ms)

    # -- coming and staying

    def _stay(self, beat: Beat, now_ms: int) -> GroupResult:
        request = beat.request
        if is_long(request.member_id, request.instance_id, request.rack_id, beat.client_id):
            raise CodedError(ErrorCode.INVALID_REQUEST, f"Names have at most {MAX_NAME} characters.")
        records: list[GroupRecord] = []
        group, upgraded = self._find_or_make(request.group_id, records, make=request.member_epoch == 0)
        self._check_room(group, request.member_id)
        old = self._member(group, beat, records)
        update = Update(group, old, old, records)
        details = _details(old, beat)
        if details != old.details and not self._has_bytes(group, old, details, now_ms):
            raise CodedError(ErrorCode.GROUP_MAX_SIZE_REACHED, "Members of groups may not say more.")
        self._updates.subscribe(update, details, beat.allowed, now_ms, classic=False)
        has_moved = self._updates.reconcile(update, *self._updates.assign(update), beat.owned)
        member = update.member
        self._members.touch(group.group_id, member.member_id)
        if has_moved and member.standing.state is MemberState.UNREVOKED_PARTITIONS:
            self._members.wait_for_revocation(group.group_id, member)
        elif has_moved:
            self._members.timers.stop(Clock.REBALANCE, group.group_id, member.member_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._members.settings(group.group_id).heartbeat_interval_ms,
        )
        is_changed = member.standing.assigned != old.standing.assigned
        if request.member_epoch == 0 or beat.is_full or is_changed:
            response.assignment = _assignment(member.standing.assigned)
        if upgraded is None:
            return CommandResult(response, records)
        for one in group.members.values():
            if one.details.classic is not None and one.member_id != member.member_id:
                self._members.touch(group.group_id, one.member_id, one.details.classic.session_timeout_ms)
        return CommandResult(response, records, replies=self._migration.sent_back(upgraded))

    def _find_or_make(
        self, group_id: str, records: list[GroupRecord], *, make: bool
    ) -> tuple[ConsumerGroup, Group | None]:
        """The group, and the classic one that it was until now."""
        group = self._groups.get(group_id)
        if group is not None:
            return group, None
        classic = self._classic_groups.get(group_id)
        if not make:
            problem = "not found" if classic is None else "is not a consumer group"
            raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")
        if classic is None:
            self._room.check_group(group_id)
            return ConsumerGroup(group_id), None
        if classic.phase is GroupPhase.EMPTY:
            records.append(GroupMetadata(group_id, None))
            return ConsumerGroup(group_id), None
        group = self._migration.upgraded(classic)
        records.append(GroupMetadata(group_id, None))
        records += group.snapshot()
        return group, classic

    def _check_room(self, group: ConsumerGroup, member_id: str) -> None:
        limit = self._config.group_consumer_max_size
        if len(group.members) >= limit and member_id not in group.members:
            raise CodedError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has its {limit} members.")

    def _has_bytes(
        self, group: ConsumerGroup, old: ConsumerMember, details: MemberDetails, now_ms: int
    ) -> bool:
        said_before = old.details.size_bytes if old.member_id in group.members else None
        return self._room.has_bytes(group.metadata_bytes, said_before, details.size_bytes, now_ms)

    def _member(self, group: ConsumerGroup, beat: Beat, records: list[GroupRecord]) -> ConsumerMember:
        """The member that asks, as it was before."""
        request = beat.request
        instance_id, epoch = request.instance_id, request.member_epoch
        if epoch != 0:
            if instance_id is None:
                member = group.member(request.member_id)
            else:
                member = self._members.known_static(group, request.member_id, instance_id)
            _check_epoch(member, epoch, beat.owned)
            return member
        member_id = request.member_id or self._members.new_id()
        before = group.static_member(instance_id)
        if before is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not before.is_classic and before.epoch != LEFT_FOR_NOW:
            message = f"Instance id {instance_id} is owned by member {before.member_id}."
            raise CodedError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        return self._members.replace(group, before, member_id, records)

    # -- leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> GroupResult:
        group = self._groups.get(request.group_id)
        if group is None:
            is_classic = request.group_id in self._classic_groups
            problem = "is not a consumer group" if is_classic else "not found"
            raise CodedError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {problem}.")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = self._members.known_static(group, request.member_id, request.instance_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )
        if request.instance_id is not None and request.member_epoch == LEFT_FOR_NOW:
            # It will be back: nobody gets its partitions while its session lasts.
            standing = member.standing._replace(epoch=LEFT_FOR_NOW, revoking=NOTHING)
            return CommandResult(response, [CurrentMember(group.group_id, member.member_id, standing)])
        return self._members.remove(group, [member], now_ms, response)


def _details(old: ConsumerMember, beat: Beat) -> MemberDetails:
    """Who the member is and what it wants; what a heartbeat leaves out is as before."""
    request = beat.request
    return old.details.updated(
        request.instance_id,
        request.rack_id,
        beat.client_id,
        beat.client_host,
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.rebalance_timeout_ms,
        request.server_assignor,
    )


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """CodedError unless the member is in that epoch, or was and did not hear of the next one."""
    if epoch == member.epoch:
        return
    if epoch < member.epoch and epoch == member.standing.previous_epoch and owned is not None:
        assigned = member.standing.assigned
        if all(assigned.get(topic_id, frozenset()).issuperset(numbers) for topic_id, numbers in owned):
            return
    size = "greater" if epoch > member.epoch else "smaller"
    message = f"Epoch {epoch} is {size} than the member's epoch {member.epoch}: it has to join again."
    raise CodedError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _assignment(assigned: Assigned) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in assigned.items()
        ]
    )
