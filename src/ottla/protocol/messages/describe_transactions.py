"""DescribeTransactions, API 65, versions 0 to 0. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class DescribeTransactionsRequest(Message):
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("transactional_ids",)  # fmt: skip
    FIELDS = (Field("transactional_ids", "string", array=True),)

    def __init__(
        self,
        *,
        transactional_ids: list[str] | None = None,
    ) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is None else transactional_ids


class TopicData(Message):
    __slots__ = ("partitions", "topic")  # fmt: skip
    FIELDS = (
        Field("topic", "string", default=""),
        Field("partitions", "int32", array=True),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions: list[int] = [] if partitions is None else partitions


class TransactionState(Message):
    __slots__ = ("error_code", "producer_epoch", "producer_id", "topics",
        "transaction_start_time_ms", "transaction_state", "transaction_timeout_ms",
        "transactional_id")  # fmt: skip
    FIELDS = (
        Field("error_code", "int16", default=0),
        Field("transactional_id", "string", default=""),
        Field("transaction_state", "string", default=""),
        Field("transaction_timeout_ms", "int32", default=0),
        Field("transaction_start_time_ms", "int64", default=0),
        Field("producer_id", "int64", default=0),
        Field("producer_epoch", "int16", default=0),
        Field("topics", "struct", array=True, of=TopicData),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] | None = None,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics: list[TopicData] = [] if topics is None else topics


class DescribeTransactionsResponse(Message):
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_SINCE = 0
    __slots__ = ("throttle_time_ms", "transaction_states")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("transaction_states", "struct", array=True, of=TransactionState),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states: list[TransactionState] = (
            [] if transaction_states is None else transaction_states
        )
