"""Records and names that lie: an error for the one who sent them, and nothing of it in a file."""

from __future__ import annotations

import os
import struct
import time
import zlib
from pathlib import Path

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.records import batch
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress
from ottla.records.legacy.message_set import LegacyRecord, build_message_set
from ottla.testing.embedded import EmbeddedBroker
from tests.server.bombs import BOMBS, bomb_batch, resealed, with_payload
from tests.server.bombs import gzip as gzip_bomb
from tests.server.conftest import TOPIC
from tests.server.wire import PRODUCE, Wire, produce, records

METADATA, CREATE_TOPICS = 3, 19
NOW_MS = time.time_ns() // 1_000_000


def log_bytes(broker: EmbeddedBroker) -> int:
    return broker.call(lambda: sum(log.size_bytes for log in broker.broker.logs.logs.values()))


def error_of(wire: Wire, data: bytes | None, version: int = 9) -> ErrorCode:
    response = wire.ask(PRODUCE, version, produce(TOPIC, data))
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def changed(position: int, format_: str, value: int, *, sealed: bool = True) -> bytes:
    data = bytearray(records(b"first", b"second"))
    struct.pack_into(format_, data, position, value)
    return bytes(resealed(data) if sealed else data)


REFUSED = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
LIES = {
    "length too large": changed(8, ">i", 1 << 30),
    "length too small": changed(8, ">i", 20),
    "length of nothing": changed(8, ">i", 0),
    "negative length": changed(8, ">i", -1),
    "wrong CRC": changed(batch.CRC_AT, ">I", 12345, sealed=False),
    "magic 3": changed(batch.MAGIC_AT, ">b", 3),
    "magic -1": changed(batch.MAGIC_AT, ">b", -1),
    "magic 1 around a v2 batch": changed(batch.MAGIC_AT, ">b", 1),
    "more records than there are": changed(57, ">i", 3),
    "two thousand million records": changed(57, ">i", 2**31 - 1),
    "fewer records than there are": changed(57, ">i", 1),
    "a negative count": changed(57, ">i", -1),
    "no records": changed(57, ">i", 0),
    "last offset delta that is too large": changed(23, ">i", 1000),
    "negative last offset delta": changed(23, ">i", -1),
    "base offset": changed(0, ">q", 7),
    "unknown codec": changed(batch.ATTRIBUTES_AT, ">h", 5),
    "codec of data that is not compressed": changed(batch.ATTRIBUTES_AT, ">h", 1),
    "control batch": records(b"first", control=True),
    "record length that lies": changed(batch.HEADER_SIZE, ">b", 126),
    "record length that lies inside compressed data": with_payload(
        compress(Codec.ZSTD, b"\xfe\xff\xff\xff\x0f" + bytes(40)), Codec.ZSTD
    ),
    "header count that lies": with_payload(
        compress(Codec.LZ4, bytes((20, 0, 0, 0, 1, 2)) + b"x" + b"\xfe\xff\xff\xff\x0f"), Codec.LZ4
    ),
    "two batches": records(b"first") + records(b"second"),
    "half a batch": records(b"first")[:70],
    "no whole header": b"\x00" * 20,
    "nothing": b"",
    "null": None,
}


@pytest.mark.parametrize("data", LIES.values(), ids=LIES.keys())
def test_a_batch_that_lies_is_refused_and_nothing_is_appended(
    data: bytes | None, broker: EmbeddedBroker, wire: Wire
) -> None:
    assert error_of(wire, data) in REFUSED
    assert log_bytes(broker) == 0
    assert error_of(wire, records(b"good")) == ErrorCode.NONE


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped_and_refused(name: str, broker: EmbeddedBroker, wire: Wire) -> None:
    broker.create_topic("large", config={"max.message.bytes": 64 << 20})
    response = wire.ask(PRODUCE, 9, produce("large", bomb_batch(name)))
    assert response.responses[0].partition_responses[0].error_code in (*REFUSED, ErrorCode.MESSAGE_TOO_LARGE)
    assert log_bytes(broker) == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_inside_a_wrapper_is_refused(magic: int, broker: EmbeddedBroker, wire: Wire) -> None:
    once = build_message_set([LegacyRecord(0, NOW_MS, 0, b"k", b"v")], magic, Codec.GZIP)
    twice = legacy_wrapper(compress(Codec.GZIP, once), magic)
    assert error_of(wire, twice, version=magic + 1) in REFUSED
    assert log_bytes(broker) == 0
    assert error_of(wire, once, version=magic + 1) == ErrorCode.NONE


@pytest.mark.parametrize("magic", [0, 1])
def test_a_bomb_in_an_old_wrapper_is_stopped_and_refused(
    magic: int, broker: EmbeddedBroker, wire: Wire
) -> None:
    broker.create_topic("large", config={"max.message.bytes": 64 << 20})
    request = produce("large", legacy_wrapper(gzip_bomb(), magic))
    response = wire.ask(PRODUCE, magic + 1, request)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert log_bytes(broker) == 0


def legacy_wrapper(packed: bytes, magic: int) -> bytes:
    """One message of the old kind whose value is this, marked as gzip."""
    content = struct.pack(">bb", magic, Codec.GZIP) + (struct.pack(">q", NOW_MS) if magic else b"")
    content += struct.pack(">ii", -1, len(packed)) + packed
    return struct.pack(">qiI", 0, len(content) + 4, zlib.crc32(content)) + content


# -- names

NAMES = {
    "parent": "..",
    "this": ".",
    "parents": "../../etc/passwd",
    "absolute": "/etc/passwd",
    "slash": "a/b",
    "backslash": "a\\b",
    "NUL": "a\x00b",
    "space": "a b",
    "empty": "",
    "long": "a" * 250,
    "umlaut": "ä",
    "newline": "a\nb",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_topic_name_that_is_none_is_refused_wherever_it_comes(name: str, tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "data") as broker, Wire(broker) as wire:
        before = everything_below(tmp_path)
        assert_refused(name, wire)
        assert everything_below(tmp_path) == before


def assert_refused(name: str, wire: Wire) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    made = wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=5000))
    assert made.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    found = wire.ask(METADATA, 9, asked)
    assert found.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    sent = wire.ask(PRODUCE, 9, produce(name, records(b"x")))
    assert sent.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def everything_below(directory: Path) -> set[str]:
    return {
        os.path.join(where, name) for where, dirs, files in os.walk(directory) for name in (*dirs, *files)
    }
