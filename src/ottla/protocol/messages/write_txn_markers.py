"""WriteTxnMarkers, API 27, versions 1 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class WritableTxnMarkerTopic(Message):
    __slots__ = ("name", "partition_indexes")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partition_indexes", "int32", array=True),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes


class WritableTxnMarker(Message):
    __slots__ = ("coordinator_epoch", "producer_epoch", "producer_id", "topics",
        "transaction_result", "transaction_version")  # fmt: skip
    FIELDS = (
        Field("producer_id", "int64", default=0),
        Field("producer_epoch", "int16", default=0),
        Field("transaction_result", "bool", default=False),
        Field("topics", "struct", array=True, of=WritableTxnMarkerTopic),
        Field("coordinator_epoch", "int32", default=0),
        Field("transaction_version", "int8", since=2, default=0),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is None else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Message):
    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 1
    __slots__ = ("markers",)  # fmt: skip
    FIELDS = (Field("markers", "struct", array=True, of=WritableTxnMarker),)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] | None = None,
    ) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is None else markers


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = ("error_code", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class WritableTxnMarkerTopicResult(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "struct", array=True, of=WritableTxnMarkerPartitionResult),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is None else partitions


class WritableTxnMarkerResult(Message):
    __slots__ = ("producer_id", "topics")  # fmt: skip
    FIELDS = (
        Field("producer_id", "int64", default=0),
        Field("topics", "struct", array=True, of=WritableTxnMarkerTopicResult),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is None else topics


class WriteTxnMarkersResponse(Message):
    API_KEY = 27
    VERSIONS = (1, 2)
    FLEXIBLE_SINCE = 1
    __slots__ = ("markers",)  # fmt: skip
    FIELDS = (Field("markers", "struct", array=True, of=WritableTxnMarkerResult),)

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] | None = None,
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is None else markers
