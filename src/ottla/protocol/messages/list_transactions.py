"""ListTransactions, API 66, versions 0 to 2. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from ottla.protocol.message import Field, Message


class ListTransactionsRequest(Message):
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0
    __slots__ = ("duration_filter", "producer_id_filters", "state_filters",
        "transactional_id_pattern")  # fmt: skip
    FIELDS = (
        Field("state_filters", "string", array=True),
        Field("producer_id_filters", "int64", array=True),
        Field("duration_filter", "int64", since=1, default=-1),
        Field("transactional_id_pattern", "string", since=2, nullable_since=2),
    )

    def __init__(
        self,
        *,
        state_filters: list[str] | None = None,
        producer_id_filters: list[int] | None = None,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is None else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is None else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


class TransactionState(Message):
    __slots__ = ("producer_id", "transaction_state", "transactional_id")  # fmt: skip
    FIELDS = (
        Field("transactional_id", "string", default=""),
        Field("producer_id", "int64", default=0),
        Field("transaction_state", "string", default=""),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_SINCE = 0
    __slots__ = ("error_code", "throttle_time_ms", "transaction_states",
        "unknown_state_filters")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("error_code", "int16", default=0),
        Field("unknown_state_filters", "string", array=True),
        Field("transaction_states", "struct", array=True, of=TransactionState),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | None = None,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is None else unknown_state_filters
        self.transaction_states: list[TransactionState] = (
            [] if transaction_states is None else transaction_states
        )
