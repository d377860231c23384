"""Message sets of magic 0 and 1: round trips, the offsets and timestamps of wrappers, and damage."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError, DecompressionLimitError, InvalidRecordError
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress
from ottla.records.legacy.conversion import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    LegacyRecord,
    build_message_set,
    check_message_set,
    read_message_set,
)

CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
CAP = 1 << 20

fields = st.none() | st.binary(max_size=40)


def message(
    offset: int, magic: int, attributes: int, key: bytes | None, value: bytes | None, timestamp: int = 0
) -> bytes:
    """A message written field by field, apart from the code under test."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for field in (key, value):
        body += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def record(offset: int, timestamp: int = -1, kind: int = CREATE_TIME) -> LegacyRecord:
    return LegacyRecord(offset, timestamp, kind, b"k%d" % offset, b"v" * offset)


def read(data: bytes | bytearray, cap: int = CAP) -> list[LegacyRecord]:
    return list(read_message_set(data, 0, len(data), max_output_bytes=cap))


@st.composite
def record_lists(draw: st.DrawFn, magic: int) -> list[LegacyRecord]:
    gaps = draw(st.lists(st.integers(1, 5), min_size=1, max_size=20))
    offset = draw(st.integers(0, 2**62))
    records = []
    for gap in gaps:
        offset += gap
        timestamp = draw(st.integers(-1, 2**62)) if magic else -1
        records.append(LegacyRecord(offset, timestamp, CREATE_TIME, draw(fields), draw(fields)))
    return records


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@given(data=st.data())
@settings(max_examples=40)
def test_records_come_back(magic: int, codec: Codec, data: st.DataObject) -> None:
    records = data.draw(record_lists(magic))
    packed = build_message_set(records, magic, codec)
    assert read(packed) == records
    assert check_message_set(packed, 0, len(packed), max_output_bytes=CAP) == len(records)
    around = b"head" + packed + b"tail"
    assert list(read_message_set(around, 4, 4 + len(packed), max_output_bytes=CAP)) == records


def test_messages_are_written_as_the_format_says() -> None:
    records = [
        LegacyRecord(7, 1234, LOG_APPEND_TIME, None, b"one"),
        LegacyRecord(9, 5, CREATE_TIME, b"", None),
    ]
    assert build_message_set(records, 1) == message(7, 1, 8, None, b"one", 1234) + message(
        9, 1, 0, b"", None, 5
    )
    assert build_message_set(records, 0) == message(7, 0, 0, None, b"one") + message(9, 0, 0, b"", None)


def test_a_magic_0_wrapper_holds_absolute_offsets() -> None:
    inner = message(10, 0, 0, b"a", b"b") + message(12, 0, 0, None, None)
    packed = message(12, 0, 1, None, compress(Codec.GZIP, inner))
    assert packed == build_message_set(read(packed), 0, Codec.GZIP)
    assert [found.offset for found in read(packed)] == [10, 12]


def test_a_magic_1_wrapper_holds_relative_offsets_and_the_largest_timestamp() -> None:
    inner = message(0, 1, 0, b"a", b"b", 500) + message(2, 1, 0, None, None, 400)
    packed = message(12, 1, 1, None, compress(Codec.GZIP, inner), 500)
    assert packed == build_message_set(read(packed), 1, Codec.GZIP)
    assert [(found.offset, found.timestamp) for found in read(packed)] == [(10, 500), (12, 400)]


def test_a_wrapper_offset_of_zero_leaves_inner_offsets_alone() -> None:
    inner = b"".join(message(n, 1, 0, None, b"x") for n in range(3))
    packed = message(0, 1, 1, None, compress(Codec.GZIP, inner))
    assert [found.offset for found in read(packed)] == [0, 1, 2]


def test_log_append_time_of_a_wrapper_overrides_its_records() -> None:
    inner = message(0, 1, 0, None, b"x", 111) + message(1, 1, 0, None, b"y", 222)
    packed = message(5, 1, 1 | 8, None, compress(Codec.GZIP, inner), 999)
    assert [(found.timestamp, found.timestamp_type) for found in read(packed)] == [(999, LOG_APPEND_TIME)] * 2


def test_lz4_in_magic_0_has_the_wrong_header_checksum_and_in_magic_1_the_right_one() -> None:
    old = build_message_set([record(3)], 0, Codec.LZ4)
    new = build_message_set([record(3)], 1, Codec.LZ4)
    at_old, at_new = old.index(b"\x04\x22\x4d\x18") + 6, new.index(b"\x04\x22\x4d\x18") + 6
    assert new[at_new] == 0x82
    assert old[at_old] != 0x82
    # A reader of magic 0 takes both, because newer clients write the right one.
    inner = message(3, 0, 0, b"k3", b"vvv")
    assert read(message(3, 0, 3, None, compress(Codec.LZ4, inner))) == [record(3)]
    inner = message(0, 1, 0, b"k3", b"vvv", -1)
    wrong = compress(Codec.LZ4, inner, lz4_legacy_checksum=True)
    with pytest.raises(CorruptRecordError, match="header checksum"):
        read(message(3, 1, 3, None, wrong))


@pytest.mark.parametrize("magic", [0, 1])
class TestRulesOfWrappers:
    def test_inside_another_wrapper(self, magic: int) -> None:
        inner = message(0, magic, 1, None, compress(Codec.GZIP, message(0, magic, 0, None, b"x")))
        with pytest.raises(InvalidRecordError, match="wraps a compressed"):
            read(message(0, magic, 1, None, compress(Codec.GZIP, inner)))

    def test_around_nothing(self, magic: int) -> None:
        with pytest.raises(InvalidRecordError, match="no records"):
            read(message(0, magic, 1, None, compress(Codec.GZIP, b"")))

    def test_with_a_null_value(self, magic: int) -> None:
        with pytest.raises(InvalidRecordError, match="null value"):
            read(message(0, magic, 1, None, None))

    def test_around_the_other_magic(self, magic: int) -> None:
        inner = message(0, 1 - magic, 0, None, b"x")
        with pytest.raises(InvalidRecordError, match="of magic"):
            read(message(0, magic, 1, None, compress(Codec.GZIP, inner)))

    @pytest.mark.parametrize("code", [4, 5, 6, 7])
    def test_with_zstd_or_a_codec_that_is_none(self, magic: int, code: int) -> None:
        inner = message(0, magic, 0, None, b"x")
        with pytest.raises(InvalidRecordError):
            read(message(0, magic, code, None, compress(Codec.ZSTD, inner)))
        with pytest.raises(InvalidRecordError):
            build_message_set([record(0)], magic, Codec.ZSTD)

    def test_around_a_damaged_record(self, magic: int) -> None:
        inner = bytearray(message(0, magic, 0, None, b"x"))
        inner[-1] ^= 1
        with pytest.raises(CorruptRecordError, match="CRC"):
            read(message(0, magic, 1, None, compress(Codec.GZIP, inner)))

    def test_around_more_than_the_cap(self, magic: int) -> None:
        packed = build_message_set([record(n) for n in range(100)], magic, Codec.GZIP)
        with pytest.raises(DecompressionLimitError):
            read(packed, cap=1000)


def test_a_wrapper_offset_below_its_last_relative_offset_is_invalid() -> None:
    inner = b"".join(message(n, 1, 0, None, b"x") for n in range(3))
    with pytest.raises(InvalidRecordError, match="relative offset"):
        read(message(1, 1, 1, None, compress(Codec.GZIP, inner)))


def test_offsets_past_the_largest_are_invalid() -> None:
    inner = message(5, 1, 0, None, b"x") + message(-5, 1, 0, None, b"x")
    with pytest.raises(InvalidRecordError, match="largest"):
        read(message(2**63 - 1, 1, 1, None, compress(Codec.GZIP, inner)))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_corrupt(magic: int, codec: Codec) -> None:
    packed = build_message_set([record(n) for n in range(3)], magic, codec)
    ends = {0}
    if codec is Codec.NONE:
        ends |= {len(build_message_set([record(n) for n in range(count)], magic)) for count in range(3)}
    for end in set(range(len(packed))) - ends:
        with pytest.raises(CorruptRecordError):
            read(packed[:end])


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_every_changed_byte_but_an_offset_is_noticed(magic: int, codec: Codec) -> None:
    packed = build_message_set([record(2)], magic, codec)
    for at in range(8, len(packed)):
        damaged = bytearray(packed)
        damaged[at] ^= 0x55
        with pytest.raises(CorruptRecordError):
            read(damaged)


@pytest.mark.parametrize("field", [-2, -(2**31), 100, 2**31 - 1])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_field_size_that_cannot_be_is_corrupt_even_with_a_good_crc(magic: int, field: int) -> None:
    for at in (18 + 8 * magic, 22 + 8 * magic + 1):
        data = bytearray(message(0, magic, 0, b"k", b"value"))
        struct.pack_into(">i", data, at, field)
        struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
        with pytest.raises(CorruptRecordError):
            read(data)


@pytest.mark.parametrize("magic", [0, 1])
def test_bytes_after_the_value_are_corrupt(magic: int) -> None:
    data = bytearray(message(0, magic, 0, b"k", b"value") + b"!")
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    with pytest.raises(CorruptRecordError, match="too many"):
        read(data)


@given(
    inner=st.binary(max_size=120), magic=st.integers(0, 1), code=st.integers(0, 7), offset=st.integers(-1, 9)
)
@settings(max_examples=200)
def test_a_wrapper_around_garbage_gives_no_other_error(
    inner: bytes, magic: int, code: int, offset: int
) -> None:
    value = compress(Codec(code), inner) if code <= 4 else inner
    try:
        read(message(offset, magic, code, None, value))
    except (CorruptRecordError, InvalidRecordError):
        return
    assert code == 0
