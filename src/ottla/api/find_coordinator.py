"""FindCoordinator, v0 to v6: which broker looks after a group or a transactional id.

v0 knows groups only, v1 transactional ids too, v4 asks for many keys at once. v6 brought share groups, which ottla
does not have: their kind of key is INVALID_REQUEST, as it is in Kafka before v6.

Every key belongs to one live broker, the same whichever broker is asked.
"""

from __future__ import annotations

import zlib

from ottla.api.access import Operation, Resource
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import BrokerInfo, ClusterImage
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

KEY = 10

_MANY_KEYS_SINCE = 4
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_KINDS = {
    _GROUP: (Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _TRANSACTION: (Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


@api(KEY)
def find_coordinator(
    services: Services, call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if call.version >= _MANY_KEYS_SINCE:
        return FindCoordinatorResponse(
            coordinators=[_find(services, call, request.key_type, key) for key in request.coordinator_keys]
        )
    found = _find(services, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # Kafka says "NONE" here and, from v4 on, nothing.
        error_message=found.error_message or ErrorCode(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def coordinator_of(image: ClusterImage, key: str) -> BrokerInfo | None:
    """The live broker that looks after a group or a transactional id."""
    nodes = sorted(image.brokers)
    return image.brokers[nodes[zlib.crc32(key.encode()) % len(nodes)]] if nodes else None


def _find(services: Services, call: Call, key_type: int, key: str) -> Coordinator:
    kind = _KINDS.get(key_type)
    if kind is None:
        message = "" if key_type == _SHARE else f"{key_type} is not a kind of coordinator that ottla has"
        return _failed(key, ErrorCode.INVALID_REQUEST, message)
    resource, refusal = kind
    if not services.authorizer.allows(call.peer, Operation.DESCRIBE, resource, key):
        return _failed(key, refusal, "")
    broker = coordinator_of(services.metadata.image, key)
    if broker is None:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    return Coordinator(key=key, node_id=broker.node_id, host=broker.host, port=broker.port, error_message="")


def _failed(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
