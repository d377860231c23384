"""JoinGroup: a consumer wants to be a member of the next generation."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import NamedTuple

from ottla.config import BrokerConfig
from ottla.coordinator.classic.group import Group, Member
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.classic.rebalances import NEW_MEMBER_TIMEOUT_MS, Effects, Rebalances, joined
from ottla.coordinator.offsets.room import Room, is_long
from ottla.coordinator.result import LATER, CommandResult, GroupResult, Reply, Shard
from ottla.errors import CodedError
from ottla.internal_topics.group_records import GroupMetadata, GroupValue
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9


class Joining(NamedTuple):
    """A JoinGroup and who sent it."""

    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str
    reply: Reply

    @property
    def protocols(self) -> tuple[tuple[str, bytes], ...]:
        return tuple({entry.name: entry.metadata for entry in self.request.protocols}.items())

    @property
    def rebalance_timeout_ms(self) -> int:
        """v0 has one timeout for both."""
        timeout_ms = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if timeout_ms < 0 else timeout_ms


@dataclass(eq=False)
class Joins:
    """The way into the groups of one shard."""

    _shard: Shard
    _config: BrokerConfig
    _groups: dict[str, Group]
    _rebalances: Rebalances
    _room: Room

    def join(self, joining: Joining, now_ms: int) -> GroupResult:
        """The answer comes with the next generation, or at once where there is a reason."""
        request = joining.request
        if is_long(joining.client_id, request.group_instance_id, request.protocol_type):
            return CommandResult(_refused(request.member_id, ErrorCode.INVALID_REQUEST))
        group = self._groups.get(request.group_id)
        is_new_group = group is None
        if group is None:
            if request.member_id:
                return CommandResult(_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
            self._room.check_group(request.group_id)
            group = self._groups[request.group_id] = Group(request.group_id, now_ms)
        fx = Effects(now_ms)
        if not self._has_room(group, request.member_id) or not self._has_bytes(group, joining, now_ms):
            self._drop_pending(group, request.member_id)
            response: object = _refused("", ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not request.member_id:
            response = self._join_new(group, joining, fx)
        else:
            response = self._join_known(group, joining, fx)
        if is_new_group and not fx.records:
            # The group is known from its first request on, also to whoever takes over.
            fx.records.append(
                GroupMetadata(group.group_id, GroupValue("", 0, None, None, group.timestamp, ()))
            )
        return fx.result(response)

    def _has_room(self, group: Group, member_id: str) -> bool:
        if group.phase is GroupPhase.PREPARING:
            return member_id in group.joining or len(group.joining) < self._config.group_max_size
        if group.phase in (GroupPhase.COMPLETING, GroupPhase.STABLE):
            return member_id in group.members or len(group.members) < self._config.group_max_size
        return True

    def _has_bytes(self, group: Group, joining: Joining, now_ms: int) -> bool:
        request = joining.request
        size_bytes = sum([len(entry.metadata) for entry in request.protocols])
        member_id = request.member_id or group.static.get(request.group_instance_id or "", "")
        known = group.members.get(member_id)
        said_before = None if known is None else known.metadata_bytes
        return self._room.has_bytes(group.metadata_bytes, said_before, size_bytes, now_ms)

    @staticmethod
    def _drop_pending(group: Group, member_id: str) -> None:
        timer = group.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    # -- without an id

    def _join_new(self, group: Group, joining: Joining, fx: Effects) -> object:
        request = joining.request
        if not group.supports(request.protocol_type, [name for name, _ in joining.protocols]):
            return _refused("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        instance_id = request.group_instance_id
        prefix = joining.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{uuid.UUID(int=self._shard.randrange(1 << 128), version=4)}"
        if instance_id is not None:
            if instance_id in group.static:
                return self._replace_static(group, joining, member_id, fx)
        elif joining.version >= _ID_REQUIRED_SINCE:
            if len(group.pending) >= self._config.group_max_size:
                return _refused("", ErrorCode.GROUP_MAX_SIZE_REACHED)
            # A client that dies while it joins leaves no member behind: only who comes back with the id is one.
            self._rebalances.expect(group, member_id, request.session_timeout_ms)
            return _refused(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return self._add(group, joining, member_id, fx)

    def _add(self, group: Group, joining: Joining, member_id: str, fx: Effects) -> object:
        request = joining.request
        member = Member(
            member_id,
            request.group_instance_id,
            joining.client_id,
            joining.client_host,
            joining.rebalance_timeout_ms,
            request.session_timeout_ms,
            joining.protocols,
        )
        member.is_new = True
        if group.phase is GroupPhase.PREPARING and group.was_empty:
            group.has_new_member = True
        self._drop_pending(group, member_id)
        group.add(member, request.protocol_type)
        self._wait(group, member, joining.reply, fx)
        self._rebalances.touch(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._rebalances.prepare_or_complete(group, fx)
        return LATER

    @staticmethod
    def _wait(group: Group, member: Member, reply: Reply, fx: Effects) -> None:
        if member.join_reply is not None:  # an earlier JoinGroup, perhaps of a lost connection
            again = _refused(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
            fx.replies.append((member.join_reply, again))
        member.join_reply = reply
        group.joining.add(member.member_id)

    # -- static members

    def _replace_static(self, group: Group, joining: Joining, member_id: str, fx: Effects) -> object:
        """The instance has started again: it gets the place it had. Whoever still has the old id is fenced."""
        instance_id = joining.request.group_instance_id
        assert instance_id is not None
        member = group.members[group.static[instance_id]]
        old_leader = group.leader
        fenced = ErrorCode.FENCED_INSTANCE_ID
        if member.join_reply is not None:
            fx.replies.append((member.join_reply, _refused(member.member_id, fenced)))
            member.join_reply = None
        if member.sync_reply is not None:
            fx.replies.append((member.sync_reply, CodedError(fenced)))
            member.sync_reply = None
        group.joining.discard(member.member_id)
        group.rename(member, member_id)
        self._rebalances.touch(group, member)
        self._update(group, member, joining)
        if group.phase is GroupPhase.STABLE and group.select_protocol() == group.protocol:
            # Nothing changes for the others: no rebalance.
            fx.records.append(GroupMetadata(group.group_id, group.snapshot()))
            if joining.version >= _SKIP_ASSIGNMENT_SINCE:
                return joined(group, member, skip=group.leader == member.member_id)
            # Older clients must not think that they lead, or they would assign anew: they are told the old id.
            return joined(group, member, leader=old_leader)
        self._wait(group, member, joining.reply, fx)
        self._rebalances.prepare_or_complete(group, fx)
        return LATER

    @staticmethod
    def _update(group: Group, member: Member, joining: Joining) -> None:
        group.change_protocols(member, joining.protocols)
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms
        member.session_timeout_ms = joining.request.session_timeout_ms

    # -- with an id

    def _join_known(self, group: Group, joining: Joining, fx: Effects) -> object:
        request = joining.request
        member_id = request.member_id
        if not group.supports(request.protocol_type, [name for name, _ in joining.protocols]):
            return _refused(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member_id in group.pending:
            if request.group_instance_id is not None:
                return _refused(member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(group, joining, member_id, fx)
        try:
            member = group.check_member(member_id, request.group_instance_id)
        except CodedError as error:
            return _refused(member_id, error.code)
        is_unchanged = member.protocols == joining.protocols
        if group.phase is GroupPhase.COMPLETING and is_unchanged:
            # The answer got lost: the same again.
            return joined(group, member)
        if group.phase is GroupPhase.STABLE and is_unchanged and group.leader != member_id:
            return joined(group, member)
        if group.phase is GroupPhase.EMPTY:
            return _refused(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        self._update(group, member, joining)
        self._wait(group, member, joining.reply, fx)
        self._rebalances.prepare_or_complete(group, fx)
        return LATER


def _refused(member_id: str, code: int) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=member_id, error_code=code, protocol_name=None)
