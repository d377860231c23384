"""Names that every floor uses: a partition of a topic, what a topic may be called, and what counts as bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

Bytes = bytes | bytearray | memoryview

MAX_TOPIC_LENGTH = 249
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class TopicPartition(NamedTuple):
    """A partition of a topic; its directory is named `<topic>-<partition>`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def is_topic_name(name: str) -> bool:
    return (
        name not in ("", ".", "..") and len(name) <= MAX_TOPIC_LENGTH and _TOPIC.fullmatch(name) is not None
    )
