"""FindCoordinator, v0 to v6: which broker looks after a group or a transactional id.

v0 knows groups only, v1 transactional ids too, v4 asks for many keys at once. v6 brought share groups, which ottla
does not have: their kind of key is INVALID_REQUEST, as it is in Kafka before v6.

A key belongs to a partition of an internal topic, and is looked after by who leads that. The topic is made when it is
first asked for; the answer waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.api.access import Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import BrokerInfo
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_MANY_KEYS_SINCE = 4
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_KINDS = {
    _GROUP: (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _TRANSACTION: (Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


@api(ApiKey.FIND_COORDINATOR)
def find_coordinator(services: Services, call: Call, request: FindCoordinatorRequest) -> object:
    many = call.version >= _MANY_KEYS_SINCE
    keys = request.coordinator_keys if many else [request.key]
    if not keys:
        return FindCoordinatorResponse()
    found: dict[int, Coordinator] = {}

    def take(place: int, coordinator: Coordinator) -> None:
        found[place] = coordinator
        if len(found) == len(keys):
            call.reply(_response(many, [found[at] for at in range(len(keys))]))

    for place, key in enumerate(keys):
        _find(services, call, request.key_type, key, partial(take, place))
    return PENDING


def _response(many: bool, coordinators: list[Coordinator]) -> FindCoordinatorResponse:
    if many:
        return FindCoordinatorResponse(coordinators=coordinators)
    (found,) = coordinators
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # Kafka says "NONE" here and, from v4 on, nothing.
        error_message=found.error_message or ErrorCode(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(
    services: Services, call: Call, key_type: int, key: str, take: Callable[[Coordinator], None]
) -> None:
    kind = _KINDS.get(key_type)
    if kind is None:
        message = "" if key_type == _SHARE else f"{key_type} is not a kind of coordinator that ottla has"
        take(_failed(key, ErrorCode.INVALID_REQUEST, message))
        return
    resource, refusal = kind
    if not services.allows(call, Operation.DESCRIBE, resource, key):
        take(_failed(key, refusal, ""))
        return

    def done(broker: BrokerInfo | None) -> None:
        if broker is None:
            take(_failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, ""))
        else:
            take(
                Coordinator(
                    key=key, node_id=broker.node_id, host=broker.host, port=broker.port, error_message=""
                )
            )

    coordinator = services.groups if key_type == _GROUP else services.transactions
    coordinator.find(key, done)


def _failed(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
