"""The client libraries that write to and read from a broker, and records for them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.interop.client import Client, KafkaClient, record
from tests.interop.golang import GoClient
from tests.interop.kafka import NEWEST

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LIBRARIES = ("java", "franz", "sarama")
START_MS = 1_700_000_000_000
HEADERS: list[tuple[str, bytes | None]] = [("h", b"v"), ("h", b"v"), ("héader", None), ("empty", b"")]


def open_client(library: str, servers: str, log_file: Path) -> Client:
    """A client of that library, in a process of its own."""
    if library == "java":
        return KafkaClient(NEWEST, servers, log_file)
    return GoClient(library, servers, log_file)


def random_records(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Keys, values and headers with all that can be null or empty, at rising times."""
    words = [b"castle", b"process", b"", "žluťoučký".encode(), bytes(range(256)), None]
    return [
        record(
            rng.choice([None, b"", b"key-%d" % number]),
            rng.choice([None, b"%d" % number, b" ".join(w or b"" for w in rng.choices(words, k=9))]),
            START_MS + number * 1000,
            rng.choice([[], HEADERS, HEADERS[:1]]),
        )
        for number in range(count)
    ]


def expected(sent: list[dict[str, Any]], first_offset: int = 0) -> list[dict[str, Any]]:
    """What a consumer must get for what was sent."""
    return [
        {"offset": offset, "timestamp_type": "CreateTime", "leader_epoch": 0, **one}
        for offset, one in enumerate(sent, first_offset)
    ]


def as_told(found: list[dict[str, Any]], told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the records `found`, what the library that told of `told` can tell at all."""
    return [{name: one[name] for name in other} for one, other in zip(found, told, strict=True)]
