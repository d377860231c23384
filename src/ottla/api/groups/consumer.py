"""Consumer groups of the newer protocol (KIP-848): ConsumerGroupHeartbeat (v0, v1), ConsumerGroupDescribe (v0, v1).

ConsumerGroupHeartbeat v1 brings patterns of topics, and members choose their id themselves. ConsumerGroupDescribe v1
says which protocol a member speaks. The rules are the coordinator's (coordinator/consumer/heartbeats.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.api.access import Operation, Resource, authorized_operations
from ottla.api.call import PENDING, Call
from ottla.api.gather import gather
from ottla.api.groups.classic import code_of, refusal
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import ClusterImage
from ottla.coordinator.consumer.group import LEFT, LEFT_FOR_NOW, ConsumerGroup, ConsumerMember
from ottla.coordinator.consumer.heartbeats import Beat
from ottla.coordinator.groups.state import GroupState
from ottla.coordinator.result import CommandResult
from ottla.errors import BrokerError
from ottla.internal_topics.consumer_group_records import NOTHING, Assigned
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_OWN_IDS_SINCE = 1  # ConsumerGroupHeartbeat: a member without id is given none
_CLASSIC, _CONSUMER = 0, 1  # types of members


# -- ConsumerGroupHeartbeat


@api(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def consumer_group_heartbeat(
    services: Services, call: Call, request: ConsumerGroupHeartbeatRequest
) -> object:
    def failed(code: int, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)

    def reply(response: ConsumerGroupHeartbeatResponse | None, error: BrokerError | None) -> None:
        if response is None:
            response = failed(code_of(error), str(error) if error is not None and str(error) else None)
        call.reply(response)

    def allowed(topic: str) -> bool:
        return services.allows(call, Operation.DESCRIBE, Resource.TOPIC, topic)

    if not services.allows(call, Operation.READ, Resource.GROUP, request.group_id):
        return failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not all(map(allowed, request.subscribed_topic_names or ())):
        return failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    problem = _problem(request, call.version)
    if problem is not None:
        return failed(ErrorCode.INVALID_REQUEST, problem)
    assignors = services.config.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        return failed(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    host = "/" + call.peer.address.rpartition(":")[0]  # as Kafka writes addresses
    beat = Beat(request, call.client_id or "", host, allowed)
    services.groups.run(request.group_id, lambda state, now_ms: state.beat(beat, now_ms), reply)
    return PENDING


def _problem(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """What is wrong with a request that cannot be right, whatever the group is like."""
    epoch = request.member_epoch
    needs_id = version >= _OWN_IDS_SINCE or epoch > 0 or epoch == LEFT
    if needs_id and not request.member_id.strip():
        return "MemberId can't be empty."
    for name, value in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    if epoch < LEFT_FOR_NOW:
        return "MemberEpoch is invalid."
    if epoch == LEFT_FOR_NOW and request.instance_id is None:
        return "InstanceId can't be null."
    return _problem_of_join(request) if epoch == 0 else None


def _problem_of_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


# -- ConsumerGroupDescribe


@api(ApiKey.CONSUMER_GROUP_DESCRIBE)
def consumer_group_describe(services: Services, call: Call, request: ConsumerGroupDescribeRequest) -> object:
    if not request.group_ids:
        return ConsumerGroupDescribeResponse()

    def ask(group_id: str, take: Callable[[DescribedGroup], None]) -> None:
        code = refusal(services, call, group_id, Operation.DESCRIBE)
        if code:
            take(DescribedGroup(group_id=group_id, error_code=code))
            return

        def reply(described: DescribedGroup | None, error: BrokerError | None) -> None:
            if described is None:
                described = DescribedGroup(group_id=group_id, error_code=code_of(error))
            elif not described.error_code:
                described = _as_far_as_allowed(services, call, request, described)
            take(described)

        services.groups.run(
            group_id, lambda state, now_ms: CommandResult(_describe(services, state, group_id)), reply
        )

    def done(groups: list[DescribedGroup]) -> None:
        call.reply(ConsumerGroupDescribeResponse(groups=groups))

    gather(request.group_ids, ask, done, services.groups.call_soon)
    return PENDING


def _as_far_as_allowed(
    services: Services, call: Call, request: ConsumerGroupDescribeRequest, described: DescribedGroup
) -> DescribedGroup:
    """A group with topics that the client may not see is not described at all."""
    allows, peer = services.authorizer.allows, call.peer
    topics = {
        entry.topic_name
        for member in described.members
        for assignment in (member.assignment, member.target_assignment)
        for entry in assignment.topic_partitions
    }
    if not all(allows(peer, Operation.DESCRIBE, Resource.TOPIC, topic) for topic in topics):
        return DescribedGroup(
            group_id=described.group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
        )
    if request.include_authorized_operations:
        described.authorized_operations = authorized_operations(
            services.authorizer, peer, Resource.GROUP, described.group_id
        )
    return described


def _describe(services: Services, state: GroupState, group_id: str) -> DescribedGroup:
    group = state.find(group_id)
    if not isinstance(group, ConsumerGroup):
        problem = "not found" if group is None else "is not a consumer group"
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {problem}.",
        )
    image = services.metadata.image
    assignor = group.preferred_assignor()
    return DescribedGroup(
        group_id=group_id,
        group_state=group.phase.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor or services.config.group_consumer_assignors[0],
        members=[_described(group, member, image) for member in group.members.values()],
    )


def _described(group: ConsumerGroup, member: ConsumerMember, image: ClusterImage) -> Member:
    details = member.details
    return Member(
        member_id=member.member_id,
        instance_id=details.instance_id,
        rack_id=details.rack_id,
        member_epoch=member.epoch,
        client_id=details.client_id,
        client_host=details.client_host,
        subscribed_topic_names=sorted(details.topics),
        subscribed_topic_regex=details.pattern,
        assignment=_assignment(member.standing.assigned, image),
        target_assignment=_assignment(group.targets.get(member.member_id, NOTHING), image),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(assigned: Assigned, image: ClusterImage) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id, topic_name=image.topic_names[topic_id], partitions=sorted(numbers)
            )
            for topic_id, numbers in assigned.items()
            if topic_id in image.topic_names
        ]
    )
