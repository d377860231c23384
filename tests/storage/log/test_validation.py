"""What a leader accepts from a client: every rule, its error code, and what it changes in the batch."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config import LogConfig
from ottla.errors import BrokerError, InvalidRecordError
from ottla.names import Bytes
from ottla.records.batch import HEADER, HEADER_SIZE, parse_header
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from ottla.storage.log.validation import Origin, Validated, validate
from ottla.testing.runtime import START_MS
from tests.storage.world import batch, marker, records_in

HOUR_MS = 3_600_000
CODECS = [codec for codec in Codec if codec]

MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, INVALID_TIMESTAMP, INVALID_RECORD = 10, 2, 32, 87


def check(
    data: Bytes, *, offset: int = 0, epoch: int = 0, origin: Origin = Origin.CLIENT, **config: Any
) -> Validated:
    return validate(data, offset, epoch, LogConfig(**config), START_MS, origin)


def code(data: bytes | bytearray, **more: Any) -> int:
    """Kafka's number for the error."""
    with pytest.raises(BrokerError) as refused:
        check(data, **more)
    return refused.value.code


def _compressed(name: str, level: int) -> dict[str, Any]:
    return {"compression_type": name, f"compression_{name}_level": level}


def rebuilt(data: bytes, **fields: int) -> bytes:
    """With header fields replaced and the CRC made right again."""
    header = parse_header(data)._replace(**fields)
    changed = bytearray(HEADER.pack(*header) + data[HEADER_SIZE:])
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


def is_sound(checked: Validated) -> None:
    """CRC, length and count of what would be written are right."""
    data = bytes(checked.data)
    header = parse_header(data)
    assert header.size == len(data) == checked.size
    assert header.crc == crc32c(data[21:])
    assert header.attributes == checked.attributes
    assert header.max_timestamp == checked.max_timestamp
    assert len(records_in(data)) == header.count


# -- structure


def test_a_good_batch_gets_its_offset_and_epoch() -> None:
    checked = check(batch(3), offset=100, epoch=7)
    assert (checked.first_offset, checked.last_offset, checked.max_timestamp) == (100, 102, START_MS + 2)
    header = parse_header(checked.data)
    assert (header.base_offset, header.leader_epoch) == (100, 7)
    is_sound(checked)


def test_a_read_only_buffer_is_copied_and_a_writable_one_is_not() -> None:
    data = batch()
    assert check(data, offset=5).data is not data
    assert check(memoryview(data), offset=5).size == len(data)
    assert parse_header(data).base_offset == 0
    buffer = bytearray(data)
    assert check(buffer, offset=5).data is buffer


def test_a_batch_larger_than_max_message_bytes_is_refused() -> None:
    data = batch(10)
    assert check(data, max_message_bytes=len(data)).size == len(data)
    assert code(data, max_message_bytes=len(data) - 1) == MESSAGE_TOO_LARGE


@settings(max_examples=80)
@given(st.integers(21, len(batch(2)) - 1), st.integers(1, 255))
def test_any_flipped_byte_under_the_crc_is_noticed(at: int, flip: int) -> None:
    data = bytearray(batch(2))
    data[at] ^= flip
    assert code(data) == CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-1, 0, 13, 48])
def test_a_length_below_the_header_is_corrupt(length: int) -> None:
    data = bytearray(batch())
    struct.pack_into(">i", data, 8, length)
    assert code(data) == CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    data = bytearray(batch())
    data[16] = magic
    assert code(data) == CORRUPT_MESSAGE


@pytest.mark.parametrize("size", [0, 1, 11, 12, 16, 17, 60, 61, 70])
def test_a_batch_that_is_not_all_there_counts_as_none(size: int) -> None:
    assert code(batch(2)[:size]) == INVALID_RECORD


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0},
        {"count": -1},
        {"count": 1},
        {"count": 3},
        {"last_offset_delta": 0},
        {"last_offset_delta": 2},
        {"last_offset_delta": -1},
        {"count": 3, "last_offset_delta": 2},
        {"count": 1, "last_offset_delta": 0},
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_wrong_number_of_records_is_invalid(fields: dict[str, int], codec: Codec) -> None:
    assert code(rebuilt(batch(2, codec=codec), **fields)) == INVALID_RECORD


def test_an_unknown_codec_is_not_valid() -> None:
    assert code(rebuilt(batch(), attributes=5)) == INVALID_RECORD


@pytest.mark.parametrize("deltas", [[0, 2], [1, 2], [0, 0], [1, 0]])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_offsets_inside_a_batch_are_0_1_2(deltas: list[int], codec: Codec) -> None:
    records = [NewRecord(START_MS, b"k", b"v")] * 2
    data = build_batch(records, codec=codec, offset_deltas=deltas, last_offset_delta=1)
    assert code(data) == INVALID_RECORD


@pytest.mark.parametrize("body", [b"\x00", b"\xff" * 8, b"\x02\x00", b"\x80\x80\x80\x80\x80\x01"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_record_that_makes_no_sense_is_invalid(body: bytes, codec: Codec) -> None:
    data = batch(codec=codec)[:HEADER_SIZE] + (compress(codec, body) if codec else body)
    assert code(rebuilt(data, length=len(data) - 12)) == INVALID_RECORD


@pytest.mark.parametrize("base_offset", [1, 1000])
def test_a_clients_base_offset_is_0(base_offset: int) -> None:
    assert code(batch(base_offset=base_offset)) == INVALID_RECORD
    assert check(batch(base_offset=base_offset), offset=4, origin=Origin.COORDINATOR).first_offset == 4


def test_a_client_may_not_write_control_batches() -> None:
    assert code(marker(1)) == INVALID_RECORD
    assert check(marker(1), origin=Origin.COORDINATOR).producer_id == 1


def test_a_producer_without_sequence_is_invalid() -> None:
    assert code(batch(producer_id=1, producer_epoch=0)) == INVALID_RECORD
    assert check(batch(producer_id=1, producer_epoch=0), origin=Origin.COORDINATOR).base_sequence == -1


def test_two_batches_are_one_too_many() -> None:
    assert code(batch() + batch()) == INVALID_RECORD


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 60, batch()[:-1], b"\xff" * 100])
def test_trailing_bytes_that_are_no_batch_are_trimmed(tail: bytes) -> None:
    data = batch(2)
    checked = check(data + tail)
    assert checked.size == len(data)
    assert bytes(checked.data)[16:] == data[16:]


# -- codecs


@pytest.mark.parametrize("codec", CODECS)
def test_the_producers_codec_is_kept(codec: Codec) -> None:
    data = batch(20, codec=codec)
    checked = check(data)
    assert bytes(checked.data)[16:] == data[16:]
    is_sound(checked)


@pytest.mark.parametrize("sent", list(Codec))
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_any_other_codec_is_changed_to_the_topics(sent: Codec, wanted: str) -> None:
    data = batch(20, codec=sent, producer_id=5, producer_epoch=1, base_sequence=9, transactional=True)
    checked = check(data, offset=7, compression_type=wanted)
    header = parse_header(checked.data)
    assert header.codec == (Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 9)
    assert header.is_transactional
    is_sound(checked)
    before, after = records_in(data), records_in(bytes(checked.data))
    assert [r[1:] for r in before] == [r[1:] for r in after]
    assert [r.offset for r in after] == list(range(7, 27))


@pytest.mark.parametrize(("name", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", -50, 19)])
def test_recompression_uses_the_topics_level(name: str, low: int, high: int) -> None:
    text = b"".join(b"%d and %d, " % (n * n % 997, n) for n in range(2000))
    data = batch(5, value=text)
    fast, small = (check(data, **_compressed(name, level)) for level in (low, high))
    assert small.size < fast.size
    is_sound(small)


@pytest.mark.parametrize(
    ("name", "level"), [("gzip", -1), ("lz4", 9), ("lz4", 17), ("zstd", 3), ("zstd", 22), ("zstd", -131072)]
)
def test_every_level_that_a_topic_may_ask_for_works(name: str, level: int) -> None:
    is_sound(check(batch(5), **_compressed(name, level)))


def test_what_grows_past_max_message_bytes_when_unpacked_is_refused() -> None:
    data = batch(20, codec=Codec.GZIP, value=b"x" * 100)
    assert code(data, compression_type="uncompressed", max_message_bytes=len(data)) == MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_compressed_data_under_a_good_checksum_is_not_valid(codec: Codec) -> None:
    data = bytearray(batch(50, codec=codec, value=bytes(range(100))))
    data[HEADER_SIZE + 2 :] = bytes(len(data) - HEADER_SIZE - 2)
    assert code(rebuilt(bytes(data))) == INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_at_the_cap(codec: Codec) -> None:
    data = batch(1, codec=codec, value=bytes(1_000_000))
    assert code(data, decompression_max_bytes=100_000) == MESSAGE_TOO_LARGE
    assert check(data, decompression_max_bytes=1_001_000).last_offset == 0


# -- times


def test_timestamps_within_the_limits_are_kept() -> None:
    for timestamp in (START_MS + HOUR_MS, START_MS - 10**12, 0, -1):
        checked = check(batch(timestamp=timestamp))
        assert checked.max_timestamp == timestamp
        assert checked.log_append_time == -1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_timestamps_outside_the_limits_are_refused(codec: Codec) -> None:
    late, early = (
        batch(timestamp=START_MS + HOUR_MS + 1, codec=codec),
        batch(timestamp=START_MS - 5001, codec=codec),
    )
    assert code(late) == INVALID_TIMESTAMP
    assert code(early, message_timestamp_before_max_ms=5000) == INVALID_TIMESTAMP
    assert check(late, message_timestamp_after_max_ms=HOUR_MS + 1).first_offset == 0
    assert check(early, message_timestamp_before_max_ms=5001).first_offset == 0


def test_one_bad_timestamp_among_many_is_enough() -> None:
    times = [START_MS, START_MS - 9000, START_MS]
    data = build_batch([NewRecord(time, b"k", b"v") for time in times])
    assert code(data, message_timestamp_before_max_ms=5000) == INVALID_TIMESTAMP
    assert check(data).max_timestamp == START_MS


def test_a_largest_timestamp_that_is_not_true_is_put_right() -> None:
    checked = check(rebuilt(batch(3), max_timestamp=START_MS + 77))
    assert checked.max_timestamp == START_MS + 2
    is_sound(checked)


@pytest.mark.parametrize("codec", list(Codec))
def test_log_append_time_replaces_the_producers(codec: Codec) -> None:
    data = batch(3, timestamp=START_MS - 10**12, codec=codec)
    checked = check(data, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=5)
    assert checked.log_append_time == checked.max_timestamp == START_MS
    assert parse_header(checked.data).timestamp_type == 1
    assert {record.timestamp for record in records_in(bytes(checked.data))} == {START_MS}
    is_sound(checked)


def test_log_append_time_together_with_another_codec() -> None:
    checked = check(batch(3), message_timestamp_type="LogAppendTime", compression_type="zstd")
    assert parse_header(checked.data).codec is Codec.ZSTD
    assert checked.log_append_time == START_MS
    is_sound(checked)


def test_a_producer_may_not_stamp_for_the_broker() -> None:
    data = batch(2, log_append_time=START_MS)
    assert code(data, message_timestamp_type="LogAppendTime") == INVALID_TIMESTAMP
    checked = check(data)  # under CreateTime the bit is cleared, as Kafka does
    assert parse_header(checked.data).timestamp_type == 0
    is_sound(checked)


# -- compacted topics


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_compacted_topic_names_the_records_without_key(codec: Codec) -> None:
    keys = [b"a", None, b"b", None, b""]
    data = build_batch([NewRecord(START_MS, key, b"v") for key in keys], codec=codec)
    for policy in ({"compact"}, {"compact", "delete"}):
        with pytest.raises(InvalidRecordError) as refused:
            check(data, cleanup_policy=frozenset(policy))
        assert [index for index, _ in refused.value.record_errors] == [1, 3]
        assert refused.value.code == INVALID_RECORD
    assert check(data).last_offset == 4


def test_not_more_records_are_named_than_anyone_reads() -> None:
    with pytest.raises(InvalidRecordError) as refused:
        check(batch(1000, key=None), cleanup_policy=frozenset({"compact"}))
    assert len(refused.value.record_errors) == 10


def test_a_compacted_topic_takes_tombstones_and_markers() -> None:
    tombstone = bytes(build_batch([NewRecord(START_MS, b"k", None)]))
    policy = frozenset({"compact"})
    assert check(tombstone, cleanup_policy=policy).last_offset == 0
    assert check(marker(1), origin=Origin.COORDINATOR, cleanup_policy=policy).last_offset == 0


# -- old formats


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_message_sets_are_stored_as_v2(magic: int, codec: Codec) -> None:
    time = START_MS if magic else -1
    sent = build_message_set(
        [LegacyRecord(n, time, 0, b"k%d" % n, b"v%d" % n) for n in range(4)], magic, codec
    )
    checked = check(sent, offset=50, epoch=3)
    assert (checked.first_offset, checked.last_offset, checked.max_timestamp) == (50, 53, time)
    assert parse_header(checked.data).codec is codec
    is_sound(checked)
    assert [(r.offset, r.key, r.value) for r in records_in(bytes(checked.data))] == [
        (50 + n, b"k%d" % n, b"v%d" % n) for n in range(4)
    ]


def test_an_old_message_with_a_wrong_crc_is_corrupt() -> None:
    sent = bytearray(build_message_set([LegacyRecord(0, START_MS, 0, b"k", b"v")], 1))
    sent[-1] ^= 1
    assert code(sent) == CORRUPT_MESSAGE


def test_old_messages_keep_the_rules_of_the_topic() -> None:
    keyless = build_message_set([LegacyRecord(0, START_MS, 0, None, b"v")], 1)
    assert code(keyless, cleanup_policy=frozenset({"compact"})) == INVALID_RECORD
    late = build_message_set([LegacyRecord(0, START_MS + HOUR_MS + 1, 0, b"k", b"v")], 1)
    assert code(late) == INVALID_TIMESTAMP
    checked = check(late, message_timestamp_type="LogAppendTime")
    assert checked.log_append_time == START_MS
    large = build_message_set([LegacyRecord(0, START_MS, 0, b"k", b"v" * 1000)], 1)
    assert code(large, max_message_bytes=500) == MESSAGE_TOO_LARGE
