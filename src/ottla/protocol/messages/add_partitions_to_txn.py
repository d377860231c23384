"""AddPartitionsToTxn, API 24, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class AddPartitionsToTxnTopic(Message):
    __slots__ = ("name", "partitions")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partitions: list[int] = [] if partitions is None else partitions


class AddPartitionsToTxnTransaction(Message):
    __slots__ = ("producer_epoch", "producer_id", "topics", "transactional_id", "verify_only")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", since=4, default=""),
        Field("producer_id", "int64", since=4, default=0),
        Field("producer_epoch", "int16", since=4, default=0),
        Field("verify_only", "bool", since=4, default=False),
        Field("topics", "struct", array=True, since=4, of=AddPartitionsToTxnTopic),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is None else topics


class AddPartitionsToTxnRequest(Message):
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("transactions", "v3_and_below_producer_epoch", "v3_and_below_producer_id",
        "v3_and_below_topics", "v3_and_below_transactional_id")  # fmt: skip
    FIELDS = (
        Field("v3_and_below_transactional_id", "string", until=3, default=""),
        Field("v3_and_below_producer_id", "int64", until=3, default=0),
        Field("v3_and_below_producer_epoch", "int16", until=3, default=0),
        Field("v3_and_below_topics", "struct", array=True, until=3, of=AddPartitionsToTxnTopic),
        Field("transactions", "struct", array=True, since=4, of=AddPartitionsToTxnTransaction),
    )

    def __init__(
        self,
        *,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
    ) -> None:
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = (
            [] if v3_and_below_topics is None else v3_and_below_topics
        )
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is None else transactions


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = ("partition_error_code", "partition_index")  # fmt: skip
    FIELDS = (
        Field("partition_index", "int32", default=0),
        Field("partition_error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = ("name", "results_by_partition")  # fmt: skip
    FIELDS = (
        Field("name", "string", default=""),
        Field("results_by_partition", "struct", array=True, of=AddPartitionsToTxnPartitionResult),
    )

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = (
            [] if results_by_partition is None else results_by_partition
        )


class AddPartitionsToTxnResult(Message):
    __slots__ = ("topic_results", "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", since=4, default=""),
        Field("topic_results", "struct", array=True, since=4, of=AddPartitionsToTxnTopicResult),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = (
            [] if topic_results is None else topic_results
        )


class AddPartitionsToTxnResponse(Message):
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("error_code", "results_by_topic_v3_and_below", "results_by_transaction",
        "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field(
            "results_by_topic_v3_and_below", "struct", array=True, until=3, of=AddPartitionsToTxnTopicResult
        ),
        Field("error_code", "int16", since=4, default=0),
        Field("results_by_transaction", "struct", array=True, since=4, of=AddPartitionsToTxnResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = (
            [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        )
        self.error_code = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = (
            [] if results_by_transaction is None else results_by_transaction
        )
