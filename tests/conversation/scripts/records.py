"""Records that a broker must refuse, or must change before it keeps them."""

from __future__ import annotations

import time

from ottla.protocol.messages.fetch import FetchPartition
from ottla.records import batch
from ottla.records.compression.codec import Codec
from tests.conversation.say import (
    MAX_BYTES,
    NEWEST_FETCH_BY_NAME,
    T0,
    fetch,
    fetch_all,
    list_offsets,
    old_records,
    produce,
    records,
    with_field,
)
from tests.conversation.talk import Talk

HOUR_MS = 3_600_000
VERSIONS = (3, 7, 8, 12)
NAME = "records"


def script(talk: Talk) -> None:
    damaged = _damaged()
    talk.topic(NAME, len(damaged))
    for version in VERSIONS:
        for partition, (step, data) in enumerate(damaged.items()):
            talk.ask(step, version, produce(NAME, data, partition=partition))
    for partition, step in enumerate(damaged):
        wanted = FetchPartition(partition=partition, partition_max_bytes=MAX_BYTES)
        request = fetch_all([(NAME, None, wanted)])
        talk.ask(f"what is kept of: {step}", NEWEST_FETCH_BY_NAME, request)
    _sizes(talk)
    _times(talk)
    _append_time(talk)
    _compacted(talk)
    _recompressed(talk)
    _internal(talk)
    _min_isr(talk)


def _damaged() -> dict[str, bytes]:
    good = records(b"a", b"b")
    gzip = records(b"a", b"b", codec=Codec.GZIP)
    return {
        "wrong CRC": with_field(good, batch.CRC_AT, ">I", 1, crc=False),
        "magic 3": with_field(good, batch.MAGIC_AT, ">b", 3),
        "magic -1": with_field(good, batch.MAGIC_AT, ">b", -1),
        "magic 0": old_records(0, b"a"),
        "magic 1": old_records(1, b"a"),
        "magic 0, large": old_records(0, b"a" * 100),
        "magic 1, large": old_records(1, b"a" * 100),
        "cut short": good[:-3],
        "only a header": good[: batch.HEADER_SIZE],
        "less than a header": good[:30],
        "a byte too many": good + b"\x00",
        "garbage behind it": good + b"\x00" * 100,
        "two batches": good + good,
        "base offset 5": with_field(good, 0, ">q", 5, crc=False),
        "base offset -1": with_field(good, 0, ">q", -1, crc=False),
        "leader epoch 9": with_field(good, 12, ">i", 9, crc=False),
        "length too large": with_field(good, 8, ">i", len(good) + 88, crc=False),
        "length 0": with_field(good, 8, ">i", 0, crc=False),
        "length negative": with_field(good, 8, ">i", -9, crc=False),
        "length 30": with_field(good, 8, ">i", 30, crc=False),
        "count 3 of 2": with_field(good, 57, ">i", 3),
        "count 1 of 2": with_field(good, 57, ">i", 1),
        "count 0": with_field(good, 57, ">i", 0),
        "count negative": with_field(good, 57, ">i", -1),
        "no records at all": records(),
        "last offset delta too large": with_field(good, 23, ">i", 5),
        "last offset delta too small": with_field(good, 23, ">i", 0),
        "last offset delta negative": with_field(good, 23, ">i", -1),
        "holes between offsets": records(b"a", b"b", offset_deltas=[0, 2]),
        "offsets that fall": records(b"a", b"b", offset_deltas=[1, 0], last_offset_delta=1),
        "codec 5": with_field(good, batch.ATTRIBUTES_AT, ">h", 5),
        "codec 7": with_field(good, batch.ATTRIBUTES_AT, ">h", 7),
        "gzip that is none": with_field(good, batch.ATTRIBUTES_AT, ">h", 1),
        "plain that is gzip": with_field(gzip, batch.ATTRIBUTES_AT, ">h", 0),
        "snappy that is none": with_field(good, batch.ATTRIBUTES_AT, ">h", 2),
        "lz4 that is none": with_field(good, batch.ATTRIBUTES_AT, ">h", 3),
        "zstd that is none": with_field(good, batch.ATTRIBUTES_AT, ">h", 4),
        "gzip, count 3 of 2": with_field(gzip, 57, ">i", 3),
        "gzip, count 1 of 2": with_field(gzip, 57, ">i", 1),
        "log append time by the client": with_field(good, batch.ATTRIBUTES_AT, ">h", 8),
        "a delete horizon by the client": with_field(good, batch.ATTRIBUTES_AT, ">h", 64),
        "an unused attribute": with_field(good, batch.ATTRIBUTES_AT, ">h", 128),
        "a control batch": records(b"\x00\x00\x00\x00\x00\x00", key=b"\x00\x00\x00\x01", control=True),
        "transactional without a transaction": records(b"a", transactional=True),
        "max timestamp below the records'": with_field(good, 35, ">q", T0 - 1000),
        "max timestamp above the records'": with_field(good, 35, ">q", T0 + 1000),
        "max timestamp -1": with_field(good, 35, ">q", -1),
        "base timestamp -1": records(b"a", time_ms=-1),
        "timestamps of long ago": records(b"a", time_ms=1),
        "timestamp negative": records(b"a", time_ms=-1000),
        "good at last": good,
    }


def _sizes(talk: Talk) -> None:
    talk.topic("records-small", max_message_bytes="1000", segment_bytes="1048576")
    for size in (900, 1000, 2000):
        talk.ask(f"{size} bytes into 1000", 12, produce("records-small", records(b"x" * size)))
        packed = records(b"x" * size, codec=Codec.GZIP)
        talk.ask(f"{size} bytes into 1000, gzip", 12, produce("records-small", packed))
    exact = records(b"x" * 918)
    talk.ask(f"{len(exact)} bytes of batch", 12, produce("records-small", exact))
    talk.topic("records-segment", max_message_bytes="5000000", segment_bytes="1048576")
    talk.ask("larger than a segment", 12, produce("records-segment", records(b"x" * 2_000_000)))
    talk.ask("up to the segment's size", 12, produce("records-segment", records(b"x" * 1_000_000)))
    talk.ask("the next segment", 12, produce("records-segment", records(b"y" * 1_000_000)))
    talk.topic("records-large")
    talk.ask("a megabyte by default", 12, produce("records-large", records(b"x" * 1_048_000)))
    talk.ask("more than a megabyte by default", 12, produce("records-large", records(b"x" * 1_048_588)))
    for name in ("records-small", "records-segment", "records-large"):
        talk.ask(f"the end of {name}", 7, list_offsets(name, -1))


def _times(talk: Talk) -> None:
    now_ms = int(time.time() * 1000)
    talk.topic("records-times")
    talk.ask("two hours ahead", 12, produce("records-times", records(b"a", time_ms=now_ms + 2 * HOUR_MS)))
    talk.ask("now", 12, produce("records-times", records(b"a", time_ms=now_ms)))
    talk.topic(
        "records-strict",
        message_timestamp_before_max_ms=str(HOUR_MS),
        message_timestamp_after_max_ms=str(HOUR_MS),
    )
    for version in VERSIONS:
        talk.ask("too old", version, produce("records-strict", records(b"a", b"b")))
        ahead = records(b"a", b"b", time_ms=now_ms + 2 * HOUR_MS, codec=Codec.GZIP)
        talk.ask("too new, gzip", version, produce("records-strict", ahead))
        talk.ask("no timestamp", version, produce("records-strict", records(b"a", time_ms=-1)))
        talk.ask("in time", version, produce("records-strict", records(b"a", time_ms=now_ms)))


def _append_time(talk: Talk) -> None:
    name = "records-append-time"
    talk.topic(name, message_timestamp_type="LogAppendTime")
    for version in VERSIONS:
        for codec in Codec:
            data = records(b"a", b"b", codec=codec)
            talk.ask(f"append time, {codec.name.lower()}", version, produce(name, data))
        marked = with_field(records(b"a"), batch.ATTRIBUTES_AT, ">h", 8)
        talk.ask("append time, as the client says too", version, produce(name, marked))
        talk.ask("append time, far ahead", version, produce(name, records(b"a", time_ms=T0 * 2)))
    talk.ask("what has an append time", NEWEST_FETCH_BY_NAME, fetch(name))


def _compacted(talk: Talk) -> None:
    name = "records-compacted"
    talk.topic(name, cleanup_policy="compact")
    for version in VERSIONS:
        talk.ask("a key", version, produce(name, records(b"a", b"b")))
        talk.ask("no key", version, produce(name, records(b"a", b"b", key=None)))
        talk.ask("no key, gzip", version, produce(name, records(b"a", b"b", key=None, codec=Codec.GZIP)))
        talk.ask("an empty key and no value", version, produce(name, records(None, key=b"")))
    talk.ask("what has a key", NEWEST_FETCH_BY_NAME, fetch(name))


def _recompressed(talk: Talk) -> None:
    for wanted in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        name = f"records-{wanted}"
        talk.topic(name, compression_type=wanted)
        for codec in Codec:
            data = records(b"x" * 500, b"y", codec=codec)
            talk.ask(f"{codec.name.lower()} into {wanted}", 12, produce(name, data))
        talk.ask(f"as {wanted}", NEWEST_FETCH_BY_NAME, fetch(name))
        talk.ask(f"as {wanted} for a client that does not know zstd", 9, fetch(name))


def _internal(talk: Talk) -> None:
    name = "__consumer_offsets"
    talk.topic(name, cleanup_policy="compact")
    for version in VERSIONS:
        talk.ask("an internal topic", version, produce(name, records(b"a")))
    talk.tell("an internal topic, acks 0", 12, produce(name, records(b"a"), acks=0))
    talk.ask("an internal topic that is not there", 12, produce("__share_group_state", records(b"a")))


def _min_isr(talk: Talk) -> None:
    talk.topic("records-min-isr", min_insync_replicas="3")
    for acks in (-1, 1):
        talk.ask(
            f"three replicas wanted, acks {acks}", 12, produce("records-min-isr", records(b"a"), acks=acks)
        )
