"""DescribeCluster, API 60, versions 0 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DescribeClusterRequest(Message):
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0
    __slots__ = ("endpoint_type", "include_cluster_authorized_operations",
        "include_fenced_brokers")  # fmt: skip
    FIELDS = (
        Field("include_cluster_authorized_operations", "bool", default=False),
        Field("endpoint_type", "int8", since=1, default=1),
        Field("include_fenced_brokers", "bool", since=2, default=False),
    )

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers


class DescribeClusterBroker(Message):
    __slots__ = ("broker_id", "host", "is_fenced", "port", "rack")  # fmt: skip
    FIELDS = (
        Field("broker_id", "int32", default=0),
        Field("host", "string", default=""),
        Field("port", "int32", default=0),
        Field("rack", "string", nullable_since=0),
        Field("is_fenced", "bool", since=2, default=False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Message):
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0
    __slots__ = ("brokers", "cluster_authorized_operations", "cluster_id", "controller_id",
        "endpoint_type", "error_code", "error_message", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", nullable_since=0),
        Field("endpoint_type", "int8", since=1, default=1),
        Field("cluster_id", "string", default=""),
        Field("controller_id", "int32", default=-1),
        Field("brokers", "struct", array=True, of=DescribeClusterBroker),
        Field("cluster_authorized_operations", "int32", default=-2147483648),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | None = None,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if brokers is None else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
