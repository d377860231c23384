"""The index of aborted transactions: order, overlap with a read, truncation, damage."""

from __future__ import annotations

import struct

import pytest

from ottla.errors import CorruptIndexError, StorageError
from ottla.storage.indexes.txn_index import AbortedTxn, TxnIndex
from tests.storage.world import World

NAME = f"{0:020d}.txnindex"
TXNS = [
    AbortedTxn(0, 0, 10, 11),
    AbortedTxn(1, 5, 15, 13),
    AbortedTxn(2, 18, 35, 25),
    AbortedTxn(3, 32, 50, 40),
]


def make(world: World, txns: list[AbortedTxn] | None = None) -> TxnIndex:
    world.fs.make_dir(world.path)
    index = TxnIndex(world.fs, f"{world.path}/{NAME}", 0)
    for txn in TXNS if txns is None else txns:
        index.append(txn)
    return index


def test_there_is_no_file_before_the_first_entry(any_world: World) -> None:
    index = make(any_world, [])
    index.sync()
    assert index.collect(0, 100) == ([], False)
    assert any_world.names() == []
    index.append(TXNS[0])
    assert any_world.names() == [NAME]


def test_an_entry_is_34_bytes_big_endian(any_world: World) -> None:
    make(any_world, [AbortedTxn(7, 1, 2, 3)]).close()
    assert any_world.read(NAME) == struct.pack(">hqqqq", 0, 7, 1, 2, 3)


def test_a_reopened_index_has_the_same_entries(any_world: World) -> None:
    make(any_world).close()
    index = make(any_world, [])
    index.sanity_check()
    assert index.entries == TXNS
    index.append(AbortedTxn(9, 60, 70, 71))
    index.close()
    assert make(any_world, []).entries[-1] == AbortedTxn(9, 60, 70, 71)


@pytest.mark.parametrize("last_offset", [50, 49])
def test_entries_are_ordered_by_their_last_offset(world: World, last_offset: int) -> None:
    index = make(world)
    with pytest.raises(StorageError):
        index.append(AbortedTxn(9, 0, last_offset, 60))
    assert index.entries == TXNS


@pytest.mark.parametrize(
    ("start", "end", "found", "complete"),
    [
        (0, 100, [0, 1, 2, 3], False),
        (0, 32, [0, 1, 2], True),
        (0, 35, [0, 1, 2, 3], True),
        (10, 35, [0, 1, 2, 3], True),
        (11, 35, [1, 2, 3], True),
        (20, 41, [2, 3], False),
        (20, 40, [2, 3], True),
        (51, 100, [], False),
        (0, 5, [0], True),
    ],
)
def test_a_read_gets_the_transactions_that_overlap_it(
    world: World, start: int, end: int, found: list[int], complete: bool
) -> None:
    assert make(world).collect(start, end) == ([TXNS[number] for number in found], complete)


@pytest.mark.parametrize(("offset", "left"), [(51, 4), (50, 3), (36, 3), (35, 2), (11, 1), (10, 0), (0, 0)])
def test_truncation_drops_transactions_whose_marker_goes(any_world: World, offset: int, left: int) -> None:
    index = make(any_world)
    index.truncate_to(offset)
    assert index.entries == TXNS[:left]
    index.close()
    assert any_world.fs.size(index.path) == left * 34
    assert make(any_world, []).entries == TXNS[:left]


@pytest.mark.parametrize(
    "content",
    [
        bytes(33),
        struct.pack(">hqqqq", 1, 7, 1, 2, 3),
        struct.pack(">hqqqq", 0, 7, 5, 2, 3),
        struct.pack(">hqqqq", 0, 7, -9, -5, 3),
    ],
    ids=["length", "version", "last before first", "before the segment"],
)
def test_the_sanity_check_notices(world: World, content: bytes) -> None:
    world.write(NAME, content)
    with pytest.raises(CorruptIndexError):
        make(world, []).sanity_check()


def test_a_reset_forgets_even_what_cannot_be_read(any_world: World) -> None:
    any_world.write(NAME, bytes(33))
    index = make(any_world, [])
    index.reset()
    assert index.entries == []
    index.append(TXNS[0])
    index.close()
    assert make(any_world, []).entries == [TXNS[0]]


def test_a_transaction_may_have_begun_before_the_segment(any_world: World) -> None:
    index = TxnIndex(any_world.fs, f"{any_world.path}/{NAME}", 100)
    any_world.fs.make_dir(any_world.path)
    index.append(AbortedTxn(1, 5, 100, 101))
    index.close()
    again = TxnIndex(any_world.fs, f"{any_world.path}/{NAME}", 100)
    again.sanity_check()
    assert again.collect(0, 50) == ([AbortedTxn(1, 5, 100, 101)], True)
