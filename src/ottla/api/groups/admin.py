"""Groups as an administrator sees them: DescribeGroups (v0 to v6), ListGroups (v0 to v5), DeleteGroups (v0 to v2).

A group id may be empty here, as it may be where offsets are committed.

DescribeGroups v6 says GROUP_ID_NOT_FOUND where there is no such group; before, it is just dead. ListGroups v4 picks by
state, v5 by type of group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.api.access import CLUSTER_NAME, NOT_ASKED, Operation, Resource, authorized_operations
from ottla.api.call import PENDING, Call
from ottla.api.gather import gather
from ottla.api.groups.classic import code_of
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.classic.group import CONSUMER_PROTOCOL, Group
from ottla.coordinator.classic.phases import GroupPhase
from ottla.coordinator.consumer.group import ConsumerGroup
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.result import CommandResult
from ottla.errors import BrokerError
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_NOT_FOUND_SINCE = 6


@api(ApiKey.DESCRIBE_GROUPS)
def describe_groups(services: Services, call: Call, request: DescribeGroupsRequest) -> object:
    if not request.groups:
        return DescribeGroupsResponse()

    def ask(group_id: str, take: Callable[[DescribedGroup], None]) -> None:
        if not services.allows(call, Operation.DESCRIBE, Resource.GROUP, group_id):
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            take(DescribedGroup(group_id=group_id, error_code=code))
            return

        def reply(described: DescribedGroup | None, error: BrokerError | None) -> None:
            if described is None:
                described = DescribedGroup(group_id=group_id, error_code=code_of(error))
            elif request.include_authorized_operations and not described.error_code:
                described.authorized_operations = authorized_operations(
                    services.authorizer, call.peer, Resource.GROUP, group_id
                )
            take(described)

        services.groups.run(
            group_id, lambda state, now_ms: CommandResult(_describe(state, group_id, call.version)), reply
        )

    def done(groups: list[DescribedGroup]) -> None:
        call.reply(DescribeGroupsResponse(groups=groups))

    gather(request.groups, ask, done, services.groups.call_soon)
    return PENDING


def _describe(state: GroupState, group_id: str, version: int) -> DescribedGroup:
    group = state.find(group_id)
    if not isinstance(group, Group):
        is_told = version >= _NOT_FOUND_SINCE
        problem = "not found" if group is None else "is not a classic group"
        return DescribedGroup(
            group_id=group_id,
            group_state=GroupPhase.DEAD.value,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.NONE,
            error_message=f"Group {group_id} {problem}." if is_told else None,
        )
    is_stable = group.phase is GroupPhase.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.phase.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Until all is settled nobody can say what a member's words mean; what it has, it may still have.
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
        authorized_operations=NOT_ASKED,
    )


@api(ApiKey.LIST_GROUPS)
def list_groups(services: Services, call: Call, request: ListGroupsRequest) -> object:
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    allows, peer = services.authorizer.allows, call.peer
    sees_all = allows(peer, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)

    def wanted(group: Group | ConsumerGroup) -> bool:
        return (not states or group.phase.value.lower() in states) and (not types or _type(group) in types)

    def done(answers: list[tuple[Any, BrokerError | None]]) -> None:
        response = ListGroupsResponse()
        for groups, error in answers:
            if error is not None:
                # Part of the truth would look like all of it.
                call.reply(ListGroupsResponse(error_code=code_of(error)))
                return
            response.groups += (
                group
                for group in groups
                if sees_all or allows(peer, Operation.DESCRIBE, Resource.GROUP, group.group_id)
            )
        call.reply(response)

    def command(state: GroupState, now_ms: int) -> CommandResult[Any]:
        return CommandResult([_listed(group) for group in state.all_groups() if wanted(group)])

    services.groups.run_everywhere(command, done)
    return PENDING


def _type(group: Group | ConsumerGroup) -> str:
    return "classic" if isinstance(group, Group) else "consumer"


def _listed(group: Group | ConsumerGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=(group.protocol_type or "") if isinstance(group, Group) else CONSUMER_PROTOCOL,
        group_state=group.phase.value,
        group_type=_type(group),
    )


@api(ApiKey.DELETE_GROUPS)
def delete_groups(services: Services, call: Call, request: DeleteGroupsRequest) -> object:
    wanted = list(dict.fromkeys(request.groups_names))
    if not wanted:
        return DeleteGroupsResponse()

    def ask(group_id: str, take: Callable[[DeletableGroupResult], None]) -> None:
        def tell(code: int) -> None:
            take(DeletableGroupResult(group_id=group_id, error_code=code))

        if not services.allows(call, Operation.DELETE, Resource.GROUP, group_id):
            tell(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            return
        services.groups.run(
            group_id,
            lambda state, now_ms: state.delete(group_id, now_ms),
            lambda _, error: tell(ErrorCode.NONE if error is None else code_of(error)),
        )

    def done(results: list[DeletableGroupResult]) -> None:
        call.reply(DeleteGroupsResponse(results=results))

    gather(wanted, ask, done, services.groups.call_soon)
    return PENDING
