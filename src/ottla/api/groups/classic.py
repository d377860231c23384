"""Members of classic groups: JoinGroup (v0 to v9), SyncGroup (v0 to v5), Heartbeat (v0 to v4), LeaveGroup (v0 to v5).

JoinGroup v1 brings a rebalance timeout of its own, v4 ids that have to be asked for first, v5 static members, v7
answers without a protocol where there is none, v9 leaders that need not assign. LeaveGroup v3 and later names many
members. The rules are the coordinator's (coordinator/classic/join.py, group_members.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.classic.join import Joining
from ottla.errors import BrokerError, RecordTooLargeError
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NO_PROTOCOL_SINCE = 7  # JoinGroup: the protocol may be null
_NAMED_PROTOCOL_SINCE = 5  # SyncGroup: type and name of the protocol must be given
_MANY_MEMBERS_SINCE = 3  # LeaveGroup


def refusal(
    services: Services, call: Call, group_id: str, operation: Operation = Operation.READ
) -> ErrorCode:
    """Why nothing is to be done for a group; NONE if it may."""
    if not services.allows(call, operation, Resource.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID


def code_of(error: BrokerError | None) -> int:
    """What a client is told that gets no response. Records that cannot be written are no fault of its own."""
    if error is None or isinstance(error, RecordTooLargeError):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return error.code


def _answer(call: Call, failed: Callable[[int], Any]) -> Callable[[Any, BrokerError | None], None]:
    def reply(response: Any, error: BrokerError | None) -> None:
        call.reply(response if error is None else failed(code_of(error)))

    return reply


@api(ApiKey.JOIN_GROUP)
def join_group(services: Services, call: Call, request: JoinGroupRequest) -> object:
    def failed(code: int) -> JoinGroupResponse:
        name = None if call.version >= _NO_PROTOCOL_SINCE else ""
        return JoinGroupResponse(member_id=request.member_id, error_code=code, protocol_name=name)

    def reply(response: JoinGroupResponse | None, error: BrokerError | None) -> None:
        if response is None:
            response = failed(code_of(error))
        if response.protocol_name is None and call.version < _NO_PROTOCOL_SINCE:
            response.protocol_name = ""
        call.reply(response)

    code = refusal(services, call, request.group_id)
    if code:
        return failed(code)
    config = services.config
    if (
        not config.group_min_session_timeout_ms
        <= request.session_timeout_ms
        <= config.group_max_session_timeout_ms
    ):
        return failed(ErrorCode.INVALID_SESSION_TIMEOUT)
    if len({protocol.name for protocol in request.protocols}) != len(request.protocols):
        return failed(ErrorCode.INVALID_REQUEST)
    host = "/" + call.peer.address.rpartition(":")[0]  # as Kafka writes addresses
    joining = Joining(request, call.version, call.client_id or "", host, reply)
    services.groups.run(request.group_id, lambda state, now_ms: state.join(joining, now_ms), reply)
    return PENDING


@api(ApiKey.SYNC_GROUP)
def sync_group(services: Services, call: Call, request: SyncGroupRequest) -> object:
    def failed(code: int) -> SyncGroupResponse:
        return SyncGroupResponse(error_code=code)

    if call.version >= _NAMED_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    code = refusal(services, call, request.group_id)
    if code:
        return failed(code)
    reply = _answer(call, failed)
    services.groups.run(request.group_id, lambda state, now_ms: state.sync(request, reply, now_ms), reply)
    return PENDING


@api(ApiKey.HEARTBEAT)
def heartbeat(services: Services, call: Call, request: HeartbeatRequest) -> object:
    def failed(code: int) -> HeartbeatResponse:
        # While the group is read nobody can tell: a member that was there goes on as if nothing had happened.
        return HeartbeatResponse(error_code=0 if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)

    code = refusal(services, call, request.group_id)
    if code:
        return failed(code)
    services.groups.run(
        request.group_id, lambda state, now_ms: state.heartbeat(request, now_ms), _answer(call, failed)
    )
    return PENDING


@api(ApiKey.LEAVE_GROUP)
def leave_group(services: Services, call: Call, request: LeaveGroupRequest) -> object:
    def failed(code: int) -> LeaveGroupResponse:
        return LeaveGroupResponse(error_code=code)

    def reply(response: LeaveGroupResponse | None, error: BrokerError | None) -> None:
        if response is None:
            response = failed(code_of(error))
        elif call.version < _MANY_MEMBERS_SINCE:
            response = failed(response.members[0].error_code)
        call.reply(response)

    code = refusal(services, call, request.group_id)
    if code:
        return failed(code)
    members = request.members
    if call.version < _MANY_MEMBERS_SINCE:
        members = [MemberIdentity(member_id=request.member_id)]
    services.groups.run(
        request.group_id, lambda state, now_ms: state.leave(request.group_id, members, now_ms), reply
    )
    return PENDING
