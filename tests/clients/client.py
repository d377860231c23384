"""What a test wants of a Kafka client, whichever it is. One adapter for each real client implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

TIMEOUT_S = 60


class Sent(NamedTuple):
    """A record as a producer gives it to its client."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


class Read(NamedTuple):
    """A record as a consumer gets it."""

    offset: int
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Client(Protocol):
    """A client of one broker. Every call ends within TIMEOUT_S; errors are the client's own exceptions."""

    sends_null_headers: bool

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def topics(self) -> set[str]: ...

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[int]:
        """Send to partition 0, wait for all; the offset of each."""

    def consume(self, topic: str, offset: int, count: int) -> list[Read]:
        """So many records of partition 0, from this offset on."""

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        """The first offset at or after this time in partition 0; None if there is none."""

    def bounds(self, topic: str) -> tuple[int, int]:
        """The first offset of partition 0, and the one after the last."""

    def set_config(self, topic: str, key: str, value: str) -> None: ...

    def config(self, topic: str, key: str) -> str | None: ...

    def delete_records(self, topic: str, before: int) -> None:
        """Delete what lies below this offset in partition 0."""

    def close(self) -> None: ...
