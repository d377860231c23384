"""SyncGroup, Heartbeat, LeaveGroup: what members do once they have joined."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordinator.classic.group import Group
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.classic.rebalances import Effects, Rebalances, synced
from ottla.coordinator.result import LATER, CommandResult, GroupResult, Reply
from ottla.errors import CodedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest


class Members:
    """The members of one shard's groups, at work."""

    def __init__(self, groups: dict[str, Group], rebalances: Rebalances) -> None:
        self._groups = groups
        self._rebalances = rebalances

    def sync(self, request: SyncGroupRequest, reply: Reply, now_ms: int) -> GroupResult:
        """Ask for the own assignment; the leader brings everybody's."""
        group = self._groups.get(request.group_id)
        if group is None or group.phase is GroupPhase.EMPTY:
            raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise CodedError(ErrorCode.ILLEGAL_GENERATION)
        if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
            None,
            group.protocol,
        ):
            raise CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.phase is GroupPhase.PREPARING:
            raise CodedError(ErrorCode.REBALANCE_IN_PROGRESS)
        group.not_synced.discard(member.member_id)
        if group.phase is GroupPhase.STABLE:
            return CommandResult(synced(group, member))
        fx = Effects(now_ms)
        if member.sync_reply is not None:
            fx.replies.append((member.sync_reply, CodedError(ErrorCode.REBALANCE_IN_PROGRESS)))
        member.sync_reply = reply
        if group.leader == member.member_id:
            assignments = {entry.member_id: entry.assignment for entry in request.assignments}
            self._rebalances.give_assignments(group, assignments, fx)
        return fx.result(LATER)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> GroupResult:
        group = self._groups.get(request.group_id)
        if group is None:
            raise CodedError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise CodedError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalances.touch(group, member)
        if group.phase is GroupPhase.PREPARING:
            raise CodedError(ErrorCode.REBALANCE_IN_PROGRESS)
        return CommandResult(HeartbeatResponse())

    def leave(self, group_id: str, identities: Sequence[MemberIdentity], now_ms: int) -> GroupResult:
        """Members leave, or are sent away by an administrator: each for itself, then one rebalance."""
        group = self._groups.get(group_id)
        fx = Effects(now_ms)
        answers, has_left = [], False
        for identity in identities:
            code = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._leave_one(group, identity, fx)
            has_left = has_left or not code
            answers.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        if group is not None and has_left:
            if group.phase in (GroupPhase.STABLE, GroupPhase.COMPLETING):
                self._rebalances.prepare_or_complete(group, fx)
            else:
                self._rebalances.complete_if_ready(group, fx)
        return fx.result(LeaveGroupResponse(members=answers))

    def _leave_one(self, group: Group, identity: MemberIdentity, fx: Effects) -> int:
        member_id = identity.member_id
        if not member_id:
            known = group.static.get(identity.group_instance_id or "")
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known
        elif member_id in group.pending:
            group.pending.pop(member_id).cancel()
            return ErrorCode.NONE
        try:
            member = group.check_member(member_id, identity.group_instance_id)
        except CodedError as error:
            return error.code
        self._rebalances.forget(group, member, fx)
        return ErrorCode.NONE
