"""InitProducerId, API 22, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class InitProducerIdRequest(Message):
    API_KEY = 22
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 2
    __slots__ = ("producer_epoch", "producer_id", "transaction_timeout_ms",
        "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", nullable_since=0, default=""),
        Field("transaction_timeout_ms", "int32", default=0),
        Field("producer_id", "int64", since=3, default=-1),
        Field("producer_epoch", "int16", since=3, default=-1),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


class InitProducerIdResponse(Message):
    API_KEY = 22
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 2
    __slots__ = ("error_code", "producer_epoch", "producer_id", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("producer_id", "int64", default=-1),
        Field("producer_epoch", "int16", default=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
