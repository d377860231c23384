"""DeleteTopics, API 20, versions 1 to 6. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.message import Field, Message


class DeleteTopicState(Message):
    __slots__ = ("name", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", since=6, nullable_since=6),
        Field("topic_id", "uuid", since=6),
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: UUID | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Message):
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE_SINCE = 4
    __slots__ = ("timeout_ms", "topic_names", "topics")  # fmt: skip
    FIELDS = (
        Field("topic_names", "string", array=True, until=5),
        Field("topics", "struct", array=True, since=6, of=DeleteTopicState),
        Field("timeout_ms", "int32", default=0),
    )

    def __init__(
        self,
        *,
        topic_names: list[str] | None = None,
        topics: list[DeleteTopicState] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topic_names: list[str] = [] if topic_names is None else topic_names
        self.topics: list[DeleteTopicState] = [] if topics is None else topics
        self.timeout_ms = timeout_ms


class DeletableTopicResult(Message):
    __slots__ = ("error_code", "error_message", "name", "topic_id")  # fmt: skip
    FIELDS = (
        Field("name", "string", nullable_since=6, default=""),
        Field("topic_id", "uuid", since=6),
        Field("error_code", "int16", default=0),
        Field("error_message", "string", since=5, nullable_since=5),
    )

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: UUID | None = None,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Message):
    API_KEY = 20
    VERSIONS = (1, 6)
    FLEXIBLE_SINCE = 4
    __slots__ = ("responses", "throttle_time_ms")  # fmt: skip
    FIELDS = (
        Field("throttle_time_ms", "int32", default=0),
        Field("responses", "struct", array=True, of=DeletableTopicResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is None else responses
