"""EndTxn, API 26, versions 0 to 5. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class EndTxnRequest(Message):
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("committed", "producer_epoch", "producer_id", "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", default=""),
        Field("producer_id", "int64", default=0),
        Field("producer_epoch", "int16", default=0),
        Field("committed", "bool", default=False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


class EndTxnResponse(Message):
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_SINCE = 3
    __slots__ = ("error_code", "producer_epoch", "producer_id", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("producer_id", "int64", since=5, default=-1),
        Field("producer_epoch", "int16", since=5, default=-1),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
