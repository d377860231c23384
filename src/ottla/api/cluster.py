"""DescribeCluster, v0 to v2: the brokers, the cluster's id, and which broker to ask for changes.

v1 lets a client ask for controllers instead of brokers, which is MISMATCHED_ENDPOINT_TYPE here: every broker is its
own controller and none listens apart. v2 tells which brokers are fenced; ottla fences none.
"""

from __future__ import annotations

from ottla.api.access import cluster_operations
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


@api(ApiKey.DESCRIBE_CLUSTER)
def describe_cluster(
    services: Services, call: Call, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="This is a broker's endpoint, not a controller's.",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"{request.endpoint_type} is not a type of endpoint.",
        )
    image = services.metadata.image
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=b.node_id, host=b.host, port=b.port, rack=b.rack)
            for _, b in sorted(image.brokers.items())
        ],
        cluster_authorized_operations=cluster_operations(
            services.authorizer, call.peer, asked=request.include_cluster_authorized_operations
        ),
    )
