"""Round trips, foreign frames, damage and caps of every codec. The memory has a file of its own."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError, DecompressionLimitError
from ottla.records.compression.codec import Codec
from ottla.records.compression.lz4_frame import _xxh32_short
from ottla.records.compression.streams import compress, decompress, windows

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"".join(b'{"id": %d, "name": "user-%d"}' % (n, n * 7919 % 1000) for n in range(40))
XERIAL_HEADER = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
LZ4_END = b"\0\0\0\0"

payloads = st.one_of(
    st.binary(max_size=2000),
    st.builds(lambda unit, times: unit * times, st.binary(min_size=1, max_size=50), st.integers(0, 4000)),
)


def mixed(size: int) -> bytes:
    """Bytes of which some parts compress and others do not."""
    noise = b"".join(zlib.crc32(n.to_bytes(4, "big")).to_bytes(4, "big") for n in range(2000))
    return ((TEXT + noise) * (size // 8000 + 1))[:size]


@pytest.mark.parametrize("codec", Codec)
@given(data=payloads, window_bytes=st.integers(1, 5000))
@settings(max_examples=40)
def test_what_is_compressed_comes_back(codec: Codec, data: bytes, window_bytes: int) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    pieces = list(windows(codec, packed, window_bytes))
    assert b"".join(pieces) == data
    assert all(1 <= len(piece) <= window_bytes for piece in pieces)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_plain_number_names_its_codec_too(codec: Codec) -> None:
    number: Any = int(codec)
    packed = compress(number, TEXT)
    assert len(packed) < len(TEXT)
    assert decompress(number, packed, len(TEXT)) == TEXT
    assert b"".join(windows(number, packed, 100)) == TEXT
    with pytest.raises(DecompressionLimitError, match=codec.name):
        decompress(number, compress(codec, TEXT * 100), len(TEXT))


@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 32769, 65535, 65536, 65537, 1 << 20, 3_000_001])
@pytest.mark.parametrize("codec", Codec)
def test_every_size_around_a_block_comes_back(codec: Codec, size: int) -> None:
    data = mixed(size)
    packed = compress(codec, memoryview(data))
    assert decompress(codec, bytearray(packed), size) == data
    assert b"".join(windows(codec, memoryview(packed), 100_000)) == data


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_level_changes_the_size_and_not_the_data(codec: Codec) -> None:
    data = mixed(300_000)
    low, high = compress(codec, data, 1), compress(codec, data, 9)
    assert decompress(codec, low, len(data)) == decompress(codec, high, len(data)) == data
    if codec is not Codec.SNAPPY:
        assert len(high) < len(low) < len(data)


@pytest.mark.parametrize("size", [1, 100, 100_000, 1_000_000])
@pytest.mark.parametrize("codec", Codec)
def test_one_byte_over_the_cap_is_refused(codec: Codec, size: int) -> None:
    packed = compress(codec, b"x" * size)
    with pytest.raises(DecompressionLimitError):
        decompress(codec, packed, size - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_every_truncation_is_corrupt(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    for end in range(len(packed)):
        with pytest.raises(CorruptRecordError):
            decompress(codec, packed[:end], 1 << 20)
        with pytest.raises(CorruptRecordError):
            list(windows(codec, packed[:end], 100))


def test_a_snappy_truncation_is_corrupt_or_ends_with_a_whole_block() -> None:
    data = mixed(70_000)
    packed = compress(Codec.SNAPPY, data)
    whole = {}
    position = len(XERIAL_HEADER)
    for blocks in range(4):
        whole[position] = data[: blocks * 32768]
        if position < len(packed):
            position += 4 + int.from_bytes(packed[position : position + 4], "big")
    assert max(whole) == len(packed)
    for end in [*range(2000), *(at + by for at in whole for by in (-1, 0, 1, 4, 5)), len(packed) - 1]:
        if end in whole:
            assert decompress(Codec.SNAPPY, packed[:end], 1 << 20) == whole[end]
        elif end < len(packed):
            with pytest.raises(CorruptRecordError):
                decompress(Codec.SNAPPY, packed[:end], 1 << 20)


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.data())
@settings(max_examples=150)
def test_damage_is_corrupt_or_unnoticed_and_nothing_else(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, TEXT))
    for at in data.draw(st.lists(st.integers(0, len(packed) - 1), min_size=1, max_size=4)):
        packed[at] = data.draw(st.integers(0, 255))
    with suppress(CorruptRecordError):
        assert len(decompress(codec, packed, 10_000)) <= 10_000


@pytest.mark.parametrize("codec", COMPRESSING)
@given(garbage=st.binary(max_size=200), keep=st.integers(0, 24))
@settings(max_examples=150)
def test_garbage_is_corrupt_or_unnoticed_and_nothing_else(codec: Codec, garbage: bytes, keep: int) -> None:
    data = compress(codec, TEXT)[:keep] + garbage
    with suppress(CorruptRecordError):
        assert all(1 <= len(piece) <= 1000 for piece in windows(codec, data, 1000))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_bytes_after_the_end_are_corrupt(codec: Codec) -> None:
    for tail in (b"\0", b"x" * 5, TEXT):
        with pytest.raises(CorruptRecordError):
            decompress(codec, compress(codec, TEXT) + tail, 1 << 20)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.ZSTD])
def test_streams_in_a_row_are_read_as_one(codec: Codec) -> None:
    data = mixed(200_000)
    packed = compress(codec, data) + compress(codec, b"") + compress(codec, TEXT)
    assert decompress(codec, packed, 1 << 20) == data + TEXT
    assert b"".join(windows(codec, packed, 3000)) == data + TEXT
    with pytest.raises(DecompressionLimitError):
        decompress(codec, packed, len(data) + len(TEXT) - 1)


def test_a_second_lz4_frame_is_corrupt_because_kafka_would_not_see_it() -> None:
    with pytest.raises(CorruptRecordError):
        decompress(Codec.LZ4, compress(Codec.LZ4, TEXT) * 2, 1 << 20)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_endless_empty_frames_are_refused_before_they_cost_seconds(codec: Codec) -> None:
    with pytest.raises(CorruptRecordError, match="in a row"):
        decompress(codec, compress(codec, b"") * 5000, 1 << 20)


class TestSnappy:
    def test_the_stream_is_the_one_java_writes(self) -> None:
        data = mixed(40_000)
        packed = compress(Codec.SNAPPY, data)
        assert packed[:16] == XERIAL_HEADER
        length = int.from_bytes(packed[16:20], "big")
        assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length])) == data[:32768]
        assert bytes(cramjam.snappy.decompress_raw(packed[24 + length :])) == data[32768:]

    def test_a_bare_block_as_librdkafka_writes_it_is_read(self) -> None:
        data = mixed(500_000)
        packed = bytes(cramjam.snappy.compress_raw(data))
        assert decompress(Codec.SNAPPY, packed, len(data)) == data
        assert b"".join(windows(Codec.SNAPPY, packed, 7777)) == data
        with pytest.raises(DecompressionLimitError):
            decompress(Codec.SNAPPY, packed, len(data) - 1)

    @pytest.mark.parametrize("prefix", [b"", XERIAL_HEADER + b"\0\0\0\x69"])
    def test_a_block_that_claims_four_gibibytes_is_corrupt(self, prefix: bytes) -> None:
        with pytest.raises(CorruptRecordError) as caught:
            decompress(Codec.SNAPPY, prefix + b"\xff\xff\xff\xff\x0f" + b"\0" * 100, 1 << 40)
        assert not isinstance(caught.value, DecompressionLimitError)

    @pytest.mark.parametrize(
        "block", [b"\xff\xff\xff\xff" + b"\0" * 20, b"\x7f\xff\xff\xff\0", b"\0\0\0\0", b"\0\0\0\x05\0"]
    )
    def test_a_block_length_that_cannot_be_is_corrupt(self, block: bytes) -> None:
        with pytest.raises(CorruptRecordError):
            decompress(Codec.SNAPPY, XERIAL_HEADER + block, 1 << 20)

    def test_version_zero_is_corrupt(self) -> None:
        with pytest.raises(CorruptRecordError, match="version"):
            decompress(Codec.SNAPPY, XERIAL_HEADER[:8] + b"\0" * 8, 1 << 20)


def lz4_frame_by(**options: bool) -> bytes:
    compressor = cramjam.lz4.Compressor(level=1, **options)
    compressor.compress(TEXT)
    return bytes(compressor.finish())


def our_lz4(frame: bytes) -> bytes:
    return bytes(decompress(Codec.LZ4, frame, 1 << 20))


def complaint(decode: Callable[[bytes], object], frame: bytes) -> str:
    try:
        decode(frame)
    except (CorruptRecordError, cramjam.DecompressionError) as error:
        return str(error)
    return "none"


class TestLz4:
    def test_the_header_is_the_one_java_writes(self) -> None:
        assert compress(Codec.LZ4, TEXT)[:7].hex() == "04224d18604082"

    def test_another_decoder_reads_our_frames(self) -> None:
        data = mixed(200_000)
        for level in (None, 9):
            assert bytes(cramjam.lz4.decompress(compress(Codec.LZ4, data, level))) == data

    @given(content_size=st.integers(0, 2**64 - 1), block_code=st.integers(4, 7), checksum=st.integers(0, 255))
    @settings(max_examples=30)
    def test_another_decoder_takes_just_the_header_checksum_that_we_take(
        self, content_size: int, block_code: int, checksum: int
    ) -> None:
        """liblz4 has an xxHash of its own; of the 256 values of the byte it must like the same one."""

        def header(checksum: int) -> bytes:
            return struct.pack("<4sBBQB", b"\x04\x22\x4d\x18", 0x68, block_code << 4, content_size, checksum)

        taken = [
            value for value in range(256) if "checksum" not in complaint(our_lz4, header(value) + LZ4_END)
        ]
        assert len(taken) == 1
        assert "headerChecksum" not in complaint(cramjam.lz4.decompress, header(taken[0]) + LZ4_END)
        if checksum not in taken:
            assert "headerChecksum" in complaint(cramjam.lz4.decompress, header(checksum) + LZ4_END)

    @pytest.mark.parametrize("content_checksum", [False, True])
    def test_block_and_content_checksums_are_read(self, content_checksum: bool) -> None:
        frame = lz4_frame_by(content_checksum=content_checksum, block_linked=False)
        assert frame[4] & 0x10
        assert decompress(Codec.LZ4, frame, 1 << 20) == TEXT

    @pytest.mark.parametrize(
        ("named", "expected"), [(6, "none"), (7, "content size"), (2**63, "content size")]
    )
    def test_a_content_size_that_lies_is_corrupt_because_clients_never_get_past_it(
        self, named: int, expected: str
    ) -> None:
        descriptor = struct.pack("<BBQ", 0x68, 0x40, named)
        checksum = _xxh32_short(descriptor) >> 8 & 0xFF
        block = struct.pack("<I", 6 | 0x8000_0000) + b"stored"
        frame = b"\x04\x22\x4d\x18" + descriptor + bytes([checksum]) + block + LZ4_END
        assert expected in complaint(our_lz4, frame)
        assert (complaint(cramjam.lz4.decompress, frame) == "none") is (expected == "none")

    def test_a_wrong_block_checksum_is_corrupt(self) -> None:
        frame = bytearray(lz4_frame_by(content_checksum=False, block_linked=False))
        frame[-5] ^= 1
        with pytest.raises(CorruptRecordError, match="blockChecksum"):
            decompress(Codec.LZ4, frame, 1 << 20)

    def test_linked_blocks_are_refused_as_kafka_does(self) -> None:
        with pytest.raises(CorruptRecordError, match="independent"):
            decompress(Codec.LZ4, lz4_frame_by(block_linked=True), 1 << 20)

    @pytest.mark.parametrize("flags", [0x00, 0xA0, 0x61, 0x62])
    def test_other_versions_dictionaries_and_reserved_bits_are_corrupt(self, flags: int) -> None:
        frame = bytearray(compress(Codec.LZ4, TEXT))
        frame[4] = flags
        with pytest.raises(CorruptRecordError, match="flags"):
            decompress(Codec.LZ4, frame, 1 << 20)

    @pytest.mark.parametrize("descriptor", [0x30, 0x41, 0xC0, 0x00])
    def test_a_block_descriptor_that_cannot_be_is_corrupt(self, descriptor: int) -> None:
        frame = bytearray(compress(Codec.LZ4, TEXT))
        frame[5] = descriptor
        with pytest.raises(CorruptRecordError, match="descriptor"):
            decompress(Codec.LZ4, frame, 1 << 20)

    def test_a_block_larger_than_the_frame_allows_is_corrupt(self) -> None:
        header = compress(Codec.LZ4, b"")[:7]
        packed = bytes(cramjam.lz4.compress_block(b"a" * 65537, store_size=False))
        for block in (packed, b"b" * 65537):
            stored = 0x8000_0000 if block is not packed else 0
            frame = header + struct.pack("<I", len(block) | stored) + block + LZ4_END
            with pytest.raises(CorruptRecordError):
                decompress(Codec.LZ4, frame, 1 << 20)

    def test_the_header_checksum_of_magic_0_is_wrong_on_purpose(self) -> None:
        right, wrong = compress(Codec.LZ4, TEXT), compress(Codec.LZ4, TEXT, lz4_legacy_checksum=True)
        assert right[6] != wrong[6]
        assert right[:6] + right[7:] == wrong[:6] + wrong[7:]
        assert decompress(Codec.LZ4, wrong, 1 << 20, lz4_legacy_checksum=True) == TEXT
        assert decompress(Codec.LZ4, right, 1 << 20, lz4_legacy_checksum=True) == TEXT
        with pytest.raises(CorruptRecordError, match="header checksum"):
            decompress(Codec.LZ4, wrong, 1 << 20)


class TestZstd:
    def test_a_window_past_the_decoders_limit_is_corrupt(self) -> None:
        frame = b"\x28\xb5\x2f\xfd\x00\xff" + b"\x01\x00\x00"
        with pytest.raises(CorruptRecordError):
            decompress(Codec.ZSTD, frame, 1 << 20)

    def test_a_content_size_that_is_a_lie_is_corrupt(self) -> None:
        raw_block = struct.pack("<I", len(TEXT) << 3 | 1)[:3] + TEXT
        for size in (len(TEXT) - 1, len(TEXT) + 1, 1 << 60):
            frame = b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", size) + raw_block
            with pytest.raises(CorruptRecordError):
                decompress(Codec.ZSTD, frame, 1 << 20)

    def test_skippable_frames_are_skipped(self) -> None:
        skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
        assert decompress(Codec.ZSTD, skippable + compress(Codec.ZSTD, TEXT), 1 << 20) == TEXT
