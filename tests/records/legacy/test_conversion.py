"""Between message sets and v2 batches: what stays, what goes, what is refused."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import (
    CorruptRecordError,
    DecompressionLimitError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedCompressionTypeError,
)
from ottla.records import batch, kernel
from ottla.records.builder import build_batch
from ottla.records.compression.codec import Codec
from ottla.records.legacy.conversion import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    LegacyRecord,
    build_message_set,
    from_v2,
    read_message_set,
    to_v2,
)

CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
CAP = 1 << 20

fields = st.none() | st.binary(max_size=40)
contents = st.lists(st.tuples(st.integers(-1, 2**50), fields, fields), min_size=1, max_size=15)
Content = list[tuple[int, bytes | None, bytes | None]]

SOME: Content = [(50, b"a", b"one"), (70, None, b"two"), (60, b"c", None)]


def legacy(content: Content, base_offset: int = 0, kind: int = CREATE_TIME) -> list[LegacyRecord]:
    return [
        LegacyRecord(base_offset + n, timestamp, kind, key, value)
        for n, (timestamp, key, value) in enumerate(content)
    ]


def v2(content: Content, **options: Any) -> bytearray:
    return build_batch(
        [(timestamp, key, value, [(b"h", b"x")]) for timestamp, key, value in content], **options
    )


def up(data: bytes | bytearray, codec: Codec | None = None) -> bytearray:
    return to_v2(data, max_output_bytes=CAP, codec=codec)


def down(data: bytes | bytearray, magic: int, first_offset: int = 0) -> list[LegacyRecord]:
    packed = from_v2(data, magic, first_offset=first_offset, max_output_bytes=CAP)
    return list(read_message_set(packed, 0, len(packed), max_output_bytes=CAP))


def without_times(records: list[LegacyRecord]) -> list[LegacyRecord]:
    return [record._replace(timestamp=-1, timestamp_type=CREATE_TIME) for record in records]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@given(content=contents)
@settings(max_examples=30)
def test_up_and_down_again_keeps_the_records(magic: int, codec: Codec, content: Content) -> None:
    records = legacy(content)
    packed = build_message_set(records, magic, codec)
    batch_bytes = up(packed)
    assert kernel.check_batch(batch_bytes, 0, len(batch_bytes))[0] == kernel.OK
    header = batch.parse_header(batch_bytes)
    assert (header.codec, header.count, header.base_offset, header.producer_id) == (
        codec,
        len(content),
        0,
        -1,
    )
    assert down(batch_bytes, magic) == (records if magic else without_times(records))
    if magic == 0:
        assert (header.base_timestamp, header.max_timestamp) == (-1, -1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@given(content=contents, base_offset=st.integers(0, 2**50))
@settings(max_examples=30)
def test_down_keeps_offsets_keys_values_and_codec(
    magic: int, codec: Codec, content: Content, base_offset: int
) -> None:
    data = v2(content, base_offset=base_offset, codec=codec)
    records = legacy(content, base_offset)
    expected = records if magic else without_times(records)
    assert down(data, magic) == expected
    packed = from_v2(data, magic, max_output_bytes=CAP)
    assert packed == build_message_set(expected, magic, codec)


class TestUp:
    def test_offsets_start_at_zero_whatever_the_set_says(self) -> None:
        packed = build_message_set(legacy(SOME, 1000), 1)
        assert down(up(packed), 1) == legacy(SOME)

    def test_another_codec_can_be_asked_for(self) -> None:
        packed = build_message_set(legacy(SOME), 1, Codec.GZIP)
        converted = up(packed, Codec.LZ4)
        assert batch.parse_header(converted).codec is Codec.LZ4
        assert down(converted, 1) == legacy(SOME)

    def test_an_empty_set_is_invalid(self) -> None:
        with pytest.raises(InvalidRecordError):
            up(b"")

    def test_both_magics_in_one_set_are_invalid(self) -> None:
        with pytest.raises(InvalidRecordError, match="magic"):
            up(build_message_set(legacy(SOME), 0) + build_message_set(legacy(SOME), 1))

    def test_a_wrapper_behind_other_messages_is_invalid_before_them_it_is_not(self) -> None:
        wrapper, plain = build_message_set(legacy(SOME), 1, Codec.GZIP), build_message_set(legacy(SOME), 1)
        for packed in (wrapper * 2, plain + wrapper):
            with pytest.raises(InvalidRecordError, match="alone"):
                up(packed)
        assert down(up(wrapper + plain), 1) == legacy(SOME) + legacy(SOME, len(SOME))

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_a_producer_must_not_claim_log_append_time(self, codec: Codec) -> None:
        with pytest.raises(InvalidTimestampError, match="log-append"):
            up(build_message_set(legacy(SOME, kind=LOG_APPEND_TIME), 1, codec))

    def test_a_negative_timestamp_is_invalid(self) -> None:
        with pytest.raises(InvalidTimestampError, match="negative"):
            up(build_message_set(legacy([(-2, None, b"x")]), 1))

    def test_a_timestamp_too_far_from_the_first_is_invalid(self) -> None:
        with pytest.raises(InvalidTimestampError):
            up(build_message_set(legacy([(-1, None, b"x"), (2**63 - 1, None, b"y")]), 1))

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    @pytest.mark.parametrize("count", [999, 5_001])
    def test_large_sets_become_the_same_batch_as_small_ones(self, codec: Codec, count: int) -> None:
        content: Content = [(50 + n % 7, b"%d" % n, None) for n in range(count)]
        found = up(build_message_set(legacy(content), 1, codec), Codec.NONE)
        assert found == build_batch([(timestamp, key, value, ()) for timestamp, key, value in content])

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_of_very_many_messages_only_some_are_objects_at_a_time(self, codec: Codec) -> None:
        packed = build_message_set(legacy([(50, None, b"")] * 30_000), 1, codec)
        before, most, done = sys.getallocatedblocks(), 0, threading.Event()

        def watch() -> None:
            nonlocal most
            while not done.wait(0.001):
                most = max(most, sys.getallocatedblocks() - before)

        watching = threading.Thread(target=watch)
        watching.start()
        to_v2(packed, max_output_bytes=1 << 30)
        done.set()
        watching.join()
        assert most < 60_000

    def test_damage_and_bombs_are_refused(self) -> None:
        packed = bytearray(build_message_set(legacy(SOME), 1, Codec.GZIP))
        with pytest.raises(DecompressionLimitError):
            to_v2(packed, max_output_bytes=10)
        packed[-1] ^= 1
        with pytest.raises(CorruptRecordError):
            up(packed)


class TestDown:
    def test_control_batches_are_left_out(self) -> None:
        control = v2(
            [(5, b"\0\0\0\1", b"\0" * 6)], base_offset=3, producer_id=1, producer_epoch=0, control=True
        )
        assert down(control, 1) == []
        around = v2(SOME) + control + v2(SOME, base_offset=4)
        assert down(around, 1) == legacy(SOME) + legacy(SOME, 4)

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_log_append_time_is_kept(self, codec: Codec, magic: int) -> None:
        data = v2(SOME, codec=codec, log_append_time=777)
        found = down(data, magic)
        expected = (777, LOG_APPEND_TIME) if magic else (-1, CREATE_TIME)
        assert {(record.timestamp, record.timestamp_type) for record in found} == {expected}

    @pytest.mark.parametrize("codec", CODECS)
    def test_gaps_that_compaction_left_stay(self, codec: Codec) -> None:
        data = v2(SOME, base_offset=10, codec=codec, offset_deltas=[2, 3, 9])
        for magic in (0, 1):
            assert [record.offset for record in down(data, magic)] == [12, 13, 19]

    def test_records_before_the_first_offset_go_only_from_uncompressed_batches(self) -> None:
        plain, packed = v2(SOME, base_offset=10), v2(SOME, base_offset=10, codec=Codec.GZIP)
        assert [record.offset for record in down(plain, 1, first_offset=11)] == [11, 12]
        assert [record.offset for record in down(packed, 1, first_offset=11)] == [10, 11, 12]
        assert down(plain, 1, first_offset=13) == []

    def test_zstd_is_refused(self) -> None:
        with pytest.raises(UnsupportedCompressionTypeError):
            down(v2(SOME, codec=Codec.ZSTD), 1)

    def test_messages_that_are_old_enough_are_copied(self) -> None:
        old = build_message_set(legacy(SOME), 0, Codec.GZIP)
        newer = build_message_set(legacy(SOME, 3), 1, Codec.LZ4)
        data = old + newer + v2(SOME, base_offset=6)
        assert from_v2(data, 1, max_output_bytes=CAP).startswith(old + newer)
        assert down(data, 0) == without_times(legacy(SOME) + legacy(SOME, 3) + legacy(SOME, 6))
        assert from_v2(data, 0, max_output_bytes=CAP).startswith(old)

    def test_many_records_are_converted(self) -> None:
        content: Content = [(n, None, b"%d" % n) for n in range(2000)]
        assert down(v2(content, codec=Codec.SNAPPY), 1) == legacy(content)

    @pytest.mark.parametrize("codec", CODECS)
    def test_damage_is_corrupt_and_never_given_a_new_crc(self, codec: Codec) -> None:
        good = v2(SOME, codec=codec)
        for at in range(batch.CRC_AT, len(good)):
            damaged = bytearray(good)
            damaged[at] ^= 0x55
            with pytest.raises(CorruptRecordError):
                down(damaged, 1)

    def test_a_cut_batch_is_corrupt(self) -> None:
        good = v2(SOME)
        for end in range(1, len(good)):
            with pytest.raises(CorruptRecordError):
                down(good[:end], 1)

    def test_more_than_the_cap_is_refused(self) -> None:
        data = v2([(0, None, bytes(5000))], codec=Codec.GZIP)
        with pytest.raises(DecompressionLimitError):
            from_v2(data, 1, max_output_bytes=1000)

    @given(
        body=st.binary(max_size=60),
        base_offset=st.integers(-(2**63), 2**63 - 1),
        base_timestamp=st.integers(-(2**63), 2**63 - 1),
        attributes=st.integers(-(2**15), 2**15 - 1),
        count=st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3),
    )
    @settings(max_examples=200)
    def test_a_batch_of_garbage_with_a_good_crc_gives_no_other_error(
        self, body: bytes, base_offset: int, base_timestamp: int, attributes: int, count: int
    ) -> None:
        fields = (attributes, 0, base_timestamp, 0, -1, -1, -1, count)
        data = bytearray(batch.HEADER.pack(base_offset, 49 + len(body), 0, 2, 0, *fields) + body)
        batch.write_crc(data, 0, len(data))
        for magic in (0, 1):
            with suppress(CorruptRecordError, UnsupportedCompressionTypeError):
                from_v2(data, magic, max_output_bytes=CAP)
