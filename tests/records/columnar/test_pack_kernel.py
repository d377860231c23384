"""Records made from columns are those that the builder makes from tuples; partitions are those of Kafka's clients."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records import kernel
from ottla.records.batch import HEADER_SIZE
from ottla.records.builder import build_batch, seal_batch
from ottla.records.columnar import pack_kernel
from ottla.records.compression.codec import Codec

# From Kafka's own tests of its hash.
HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

texts = st.binary(max_size=200)
cells = st.none() | texts
rows_of = st.lists(
    st.tuples(cells, cells, st.lists(st.tuples(texts, cells), max_size=3)), min_size=1, max_size=40
)


Column = tuple[bytes | None, "array[int]", bytes]  # which cells there are, where they end, the cells


def column(cells: Sequence[bytes | None]) -> Column:
    valid = bytearray(len(cells) // 8 + 1)
    offsets = array("i", [0])
    for row, cell in enumerate(cells):
        valid[row // 8] |= (cell is not None) << (row % 8)
        offsets.append(offsets[-1] + len(cell or b""))
    return (bytes(valid) if None in cells else None), offsets, b"".join(cell or b"" for cell in cells)


def headers_column(
    lists: Sequence[Sequence[tuple[bytes, bytes | None]]],
) -> tuple[bytes | None, array[int], Column, Column]:
    offsets = array("i", [0])
    for entries in lists:
        offsets.append(offsets[-1] + len(entries))
    pairs = [pair for entries in lists for pair in entries]
    return None, offsets, column([name for name, _ in pairs]), column([value for _, value in pairs])


def packer(
    rows: Sequence[tuple[bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]],
) -> pack_kernel.Packer:
    return pack_kernel.Packer(
        column([key for key, _, _ in rows]),
        column([value for _, value, _ in rows]),
        headers_column([headers for _, _, headers in rows]),
    )


@pytest.mark.parametrize(("key", "expected"), HASHES.items())
def test_keys_hash_as_in_kafka(key: bytes, expected: int) -> None:
    assert pack_kernel.murmur2(key) == expected & 0xFFFFFFFF


def test_an_empty_key_has_a_hash_too() -> None:
    assert pack_kernel.murmur2(b"") == 275646681


@settings(max_examples=100)
@given(rows_of, st.sampled_from(Codec), st.integers(0, 2**40))
def test_a_packed_batch_is_what_the_builder_makes(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]], codec: Codec, time: int
) -> None:
    batch = bytearray(HEADER_SIZE)
    order = array("i", range(len(rows)))
    assert packer(rows).pack(batch, 0, order, 0, len(rows), 1 << 30) == len(rows)
    producer: dict[str, Any] = {
        "producer_id": 7,
        "producer_epoch": 1,
        "base_sequence": 5,
        "transactional": True,
    }
    seal_batch(batch, len(rows), time, codec=codec, **producer)
    assert batch == build_batch([(time, *row) for row in rows], codec=codec, **producer)


@settings(max_examples=100)
@given(rows_of, st.integers(HEADER_SIZE, 3000), st.randoms(use_true_random=False))
def test_batches_are_filled_to_their_limit_in_any_order(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]],
    limit: int,
    random: object,
) -> None:
    order = array("i", range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    packed = packer(rows)
    at = 0
    while at < len(rows):
        batch, count = bytearray(HEADER_SIZE), 0
        # In two goes, as rows of one partition come from several Arrow batches.
        for end in (min(at + 2, len(rows)), len(rows)):
            stop = packed.pack(batch, count, order, at + count, end, limit)
            count = stop - at
            if stop < end:
                break
        assert count > 0
        expected = bytearray(HEADER_SIZE)
        kernel.encode_records(expected, [(0, *rows[row]) for row in order[at : at + count]], 0, None)
        assert batch == expected
        assert len(batch) <= limit or count == 1
        if at + count < len(rows):
            one_more = bytearray(HEADER_SIZE)
            kernel.encode_records(one_more, [(0, *rows[row]) for row in order[at : at + count + 1]], 0, None)
            assert len(one_more) > limit
        at += count


@settings(max_examples=100)
@given(st.lists(cells, max_size=50), st.integers(1, 12), st.data())
def test_rows_go_where_their_keys_say(keys: list[bytes | None], partitions: int, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.integers(-1, partitions - 1), min_size=len(keys), max_size=len(keys)))
    found = array("i", wanted)
    values = column([b"x"] * len(keys))
    pack_kernel.partition_rows(column(keys), values[1], partitions, 0, 1 << 30, found)
    for key, asked, partition in zip(keys, wanted, found, strict=True):
        if asked >= 0:
            assert partition == asked
        elif key is None:
            assert partition == 0
        else:
            assert partition == (pack_kernel.murmur2(key) & 0x7FFFFFFF) % partitions


def test_rows_without_a_key_take_turns_by_bytes() -> None:
    found = array("i", [-1]) * 10
    values = column([b"x" * 50] * 10)
    assert pack_kernel.partition_rows(column([None] * 10), values[1], 3, 2, 100, found) == 1
    assert list(found) == [2, 2, 0, 0, 1, 1, 2, 2, 0, 0]


@given(st.lists(st.integers(0, 4)))
def test_rows_are_grouped_in_their_order(numbers: list[int]) -> None:
    order, ends = array("i", [0]) * len(numbers), array("i", [0]) * 5
    pack_kernel.group_rows(array("i", numbers), order, ends)
    assert list(order) == sorted(range(len(numbers)), key=numbers.__getitem__)
    assert list(ends) == [sum(number <= last for number in numbers) for last in range(5)]


@pytest.mark.parametrize("number", [-1, 2])
def test_a_row_of_no_group_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="row 1"):
        pack_kernel.group_rows(array("i", [0, number]), array("i", [0, 0]), array("i", [0, 0]))
