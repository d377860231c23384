"""Compressed records checked window by window are judged as they are when they are checked at once."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError, DecompressionLimitError
from ottla.records import batch, kernel, unpacking
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress

LIMIT = 1 << 30
BASE = 1_700_000_000_000


def _payload(sizes: list[int], keyed: bool = True) -> bytes:
    records = [
        NewRecord(BASE + 7 * number, b"k" if keyed and number % 2 else None, bytes(size), [])
        for number, size in enumerate(sizes)
    ]
    return bytes(build_batch(records))[batch.HEADER_SIZE :]


def _both(payload: bytes, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    status, bad_index, least, most, _, null_keys = kernel.check_records(
        payload, 0, len(payload), count, BASE, True
    )
    packed = memoryview(compress(Codec.ZSTD, payload))
    found = unpacking.check_packed(Codec.ZSTD, packed, count, BASE, LIMIT)
    return (status, bad_index, least, most, null_keys), found


@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=20),
    st.integers(-1, 1),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=2),
)
def test_it_says_what_the_check_of_the_whole_says(
    monkeypatch_window: None, sizes: list[int], more: int, damage: list[tuple[int, int]]
) -> None:
    payload = bytearray(_payload(sizes))
    for at, value in damage:
        payload[at % len(payload)] = value
    at_once, by_window = _both(bytes(payload), len(sizes) + more)
    assert by_window == at_once


@pytest.fixture(scope="module", params=[64, 1 << 20])
def monkeypatch_window(request: pytest.FixtureRequest) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "_WINDOW_BYTES", request.param)
        yield


def test_a_record_larger_than_a_window_is_put_together() -> None:
    at_once, by_window = _both(_payload([10, 3 << 20, 10]), 3)
    assert by_window == at_once
    assert by_window[0] == kernel.OK


def test_unpacking_stops_at_the_limit() -> None:
    packed = memoryview(compress(Codec.GZIP, _payload([8 << 20])))
    with pytest.raises(DecompressionLimitError):
        unpacking.check_packed(Codec.GZIP, packed, 1, BASE, 4 << 20)


def test_unpacking_stops_at_the_first_bad_record() -> None:
    """The rest is not even valid zstd: whoever reads on finds that."""
    bad = compress(Codec.ZSTD, struct.pack("B", 255) * (4 << 20))
    status, bad_index, *_ = unpacking.check_packed(
        Codec.ZSTD, memoryview(bad[:-9] + b"nothing"), 5, BASE, LIMIT
    )
    assert (status, bad_index) == (kernel.BAD_RECORD, 0)
    with pytest.raises(CorruptRecordError):
        unpacking.check_packed(Codec.ZSTD, memoryview(b"nothing"), 5, BASE, LIMIT)
