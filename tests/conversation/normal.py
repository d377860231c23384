"""Answers in a form that can be compared: what must differ from broker to broker has a name in place of its value.

Ids are named by the topic or the step that they are first seen with, times that are now are "now", the texts of
messages are "text". A list of parts becomes a dict by what names each part, because Kafka keeps no order in most of
them. Fields that have their default value are left out.
"""

from __future__ import annotations

import re
import time
from typing import Any
from uuid import UUID
from zlib import crc32

from ottla.protocol.message import Field, Message
from ottla.protocol.messages.fetch import FetchableTopicResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.records import batch, record
from ottla.records.compression.codec import Codec

NOW_WITHIN_MS = 600_000
MADE_UP_ID_BITS = 64  # ids that a script makes up are small numbers: they are the same everywhere
_LONG_BYTES = 40
_TEXTS = {"error_message", "batch_index_error_message", "documentation"}
_TIMES = {"log_append_time_ms", "timestamp", "transaction_start_time_ms", "last_timestamp"}
_SIZES = {"total_bytes", "usable_bytes"}
_MEMBERS = {"member_id", "leader"}
_MEMBER_ID = re.compile(r"(.*)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}")
_SETS = {"subscribed_topic_names"}
_NAMES = (
    "name", "topic", "topic_name", "topic_id", "partition_index", "index", "partition", "api_key", "node_id",
    "broker_id", "resource_name", "log_dir", "key", "transactional_id", "group_id", "member_id",
)  # fmt: skip


class Normaliser:
    """Names for what one broker has given out in one conversation."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._topic_ids: dict[UUID, str] = {}
        self._producer_ids: dict[int, str] = {}
        self._session_ids: dict[int, str] = {}
        self._member_ids: dict[str, str] = {}
        self.step = ""  # what is being asked

    def message(self, message: Message, version: int) -> dict[str, Any]:
        """All fields of this version of a message."""
        if isinstance(message, InitProducerIdResponse) and message.producer_id >= 0:
            number = len(self._producer_ids) + 1
            self._producer_ids.setdefault(message.producer_id, f"producer {number}")
        name = getattr(message, "name", None) or getattr(message, "topic", None)
        if name and (topic_id := getattr(message, "topic_id", None)) is not None:
            self.topic_id(topic_id, name)
        blank = type(message)(**_needed(message))
        result = {}
        for field in message.FIELDS:
            if field.since <= version <= field.until:
                value = getattr(message, field.name)
                if value != getattr(blank, field.name):
                    result[field.name] = self._field(field, value, version)
        return result

    def _field(self, field: Field, value: Any, version: int) -> Any:
        if field.array and field.of is not None:
            return None if value is None else self._parts(value, version)
        if isinstance(value, Message):
            return self.message(value, version)
        if isinstance(value, list) and field.kind != "records":
            values = [self._value(field.name, item) for item in value]
            return sorted(values) if field.name in _SETS else values
        if field.kind == "records":
            return self.records(b"" if value is None else bytes(value))
        return self._value(field.name, value)

    def _parts(self, parts: list[Message], version: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for part in parts:
            field, name = self._name(part, version, len(result))
            fields = self.message(part, version)
            fields.pop(field, None)
            if isinstance(part, FetchableTopicResponse) and name in result:
                # Kafka names a topic again whenever its partitions do not follow each other.
                result[name]["partitions"].update(fields["partitions"])
                continue
            while name in result:
                name += " again"
            result[name] = fields
        return dict(sorted(result.items()))

    def _name(self, part: Message, version: int, position: int) -> tuple[str, str]:
        """The field that names a part among its like, and its value."""
        fields = {field.name for field in part.FIELDS if field.since <= version <= field.until}
        for name in _NAMES:
            if name in fields and (value := getattr(part, name)) is not None:
                return name, str(self._value(name, value))
        return "", f"#{position}"

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, UUID):
            return self.topic_id(value)
        if name in _TEXTS:
            return value and "text"
        if name in _TIMES:
            return self._time(value)
        if name in _SIZES:
            return "some" if value > 0 else value
        if name == "port":
            return "port" if value == self._port else value
        if name == "cluster_id":
            return value and "cluster"
        if name == "producer_id":
            return self._producer_ids.get(value, value)
        if name == "session_id":
            return self._session_ids.setdefault(value, f"session of: {self.step}") if value else 0
        if name == "finalized_features_epoch":
            return "some" if value >= 0 else value
        if name in _MEMBERS and isinstance(value, str) and (found := _MEMBER_ID.fullmatch(value)):
            prefix = "member" if found[1] is None else found[1]
            return self._member_ids.setdefault(value, f"{prefix} {len(self._member_ids) + 1}")
        if isinstance(value, bytes | memoryview):
            return _shown(bytes(value))
        return value

    def topic_id(self, value: UUID, topic: str = "?") -> str:
        """The name of an id; those of later topics of the same name have a number."""
        if value.int >> MADE_UP_ID_BITS == 0:
            return f"made-up id {value.int}"
        if value not in self._topic_ids:
            earlier = sum(name.partition(" (")[0] == f"id of {topic}" for name in self._topic_ids.values())
            self._topic_ids[value] = f"id of {topic} ({earlier + 1})" if earlier else f"id of {topic}"
        return self._topic_ids[value]

    def _time(self, timestamp_ms: int) -> int | str:
        return "now" if abs(timestamp_ms - time.time() * 1000) < NOW_WITHIN_MS else timestamp_ms

    def records(self, data: bytes) -> list[Any]:
        """Each batch with its header and records; what is cut off at the end is counted."""
        found: list[Any] = []
        position = 0
        while len(data) - position >= batch.HEADER_SIZE:
            if data[position + batch.MAGIC_AT] != batch.MAGIC_V2:
                found.append(f"magic {data[position + batch.MAGIC_AT]}")
                return found
            header = batch.parse_header(data, position)
            if position + header.size > len(data):
                break
            found.append(self._batch(data, position, header))
            position += header.size
        if position < len(data):
            found.append("the beginning of a batch")
        return found

    def _batch(self, data: bytes, position: int, header: batch.BatchHeader) -> str:
        good = batch.compute_crc(data, position, header.size) == header.crc
        codec = Codec(header.attributes & batch.CODEC_MASK).name.lower()
        flags = header.attributes & ~batch.CODEC_MASK
        producer = self._producer_ids.get(header.producer_id, header.producer_id)
        head = [
            f"{header.base_offset}..{header.last_offset}",
            codec,
            f"flags {flags}" if flags else "",
            f"epoch {header.leader_epoch}",
            f"times {self._time(header.base_timestamp)}..{self._time(header.max_timestamp)}",
            f"{producer}/{header.producer_epoch}/{header.base_sequence}" if header.producer_id >= 0 else "",
            "" if good else "BAD CRC",
        ]
        records = [self._record(found) for found in record.read_records(data, position)]
        shown = (
            " ".join(records)
            if len(records) <= 5
            else f"{len(records)} records {crc32(repr(records).encode())}"
        )
        return " ".join(filter(None, head)) + ": " + shown

    def _record(self, found: record.Record) -> str:
        parts = [str(found.offset), str(self._time(found.timestamp)), _shown(found.key), _shown(found.value)]
        headers = ",".join(f"{_shown(name)}={_shown(value)}" for name, value in found.headers)
        return "|".join(parts + ([headers] if headers else []))


def _needed(message: Message) -> dict[str, Message]:
    """The parts without which there is no such message."""
    return {
        field.name: field.of()
        for field in message.FIELDS
        if field.of is not None and not field.array and field.nullable_since is None and field.tag is None
    }


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    if len(data) > _LONG_BYTES:
        return f"<{len(data)} bytes {crc32(data)}>"
    return repr(data)[1:]
