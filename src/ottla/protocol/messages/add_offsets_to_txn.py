"""AddOffsetsToTxn, API 25, versions 0 to 4. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class AddOffsetsToTxnRequest(Message):
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 3
    __slots__ = ("group_id", "producer_epoch", "producer_id", "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", default=""),
        Field("producer_id", "int64", default=0),
        Field("producer_epoch", "int16", default=0),
        Field("group_id", "string", default=""),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


class AddOffsetsToTxnResponse(Message):
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_SINCE = 3
    __slots__ = ("error_code", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
