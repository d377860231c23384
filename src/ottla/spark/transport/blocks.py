"""Reads one log file as blocks of good batches, and between them what is bad.

A batch's CRC does not cover its base offset. So offsets are held against those of the batches around: they only grow.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from ottla.logtools.walk import Damage, walk
from ottla.records import kernel
from ottla.spark.transport.base import MAX_OFFSET, BadBytes, Block
from ottla.storage.find_batch import is_good_batch
from ottla.storage.fs import File
from ottla.storage.scan import Window

_BAD_PIECE_BYTES = 16 << 20
_OFFSET_BYTES = 8


def read_blocks(
    file: File,
    start: int,
    base_offset: int,
    window_bytes: int | None,
    next_base: int | None,
    is_next_behind: Callable[[], bool],
) -> Iterator[Block | BadBytes]:
    """From the position `start` on. `next_base` is where the next segment begins, if there is one; whether that is
    still so, and not merged into this one, is asked for only where an offset of this one is larger."""
    expected = base_offset
    damages: list[Damage] = []  # which offsets they cost is known only when good batches follow
    size = file.size()
    for found in walk(file, size, start=start, min_offset=base_offset, window_bytes=window_bytes):
        if isinstance(found, Damage):
            damages.append(found)
            continue
        whole = _block(file, found)
        behind = _offset_behind(file, size, whole, base_offset)
        if behind is None and next_base is not None and _last_offset(whole) >= next_base and is_next_behind():
            behind = next_base
        done = 0
        for number in (*_misplaced(whole, expected, behind), whole.count):
            if done < number:
                block = whole if number - done == whole.count else whole.part(done, number)
                yield from _bad(file, damages, expected, block.rows[kernel.BASE_OFFSET])
                damages.clear()
                expected = _last_offset(block) + 1
                yield block
            if number < whole.count:
                damages.append(_misplaced_batch(whole, number))
            done = number + 1
    yield from _bad(file, damages, expected, next_base or MAX_OFFSET)


def _block(file: File, window: Window) -> Block:
    data = window.data
    if data is None:  # too large for a window: one batch
        data = memoryview(file.pread(window.rows[kernel.SIZE], window.rows[kernel.POSITION]))
    return Block(window.rows, window.count, data, window.position, file.path, array("q"))


def _last_offset(block: Block) -> int:
    return block.rows[(block.count - 1) * kernel.ROW + kernel.LAST_OFFSET]


def _offset_behind(file: File, size: int, block: Block, base_offset: int) -> int | None:
    """The base offset of the batch behind the block, if the block's last batch claims it too."""
    last = (block.count - 1) * kernel.ROW
    position = block.rows[last + kernel.POSITION] + block.rows[last + kernel.SIZE]
    if position >= size:
        return None
    offset = int.from_bytes(file.pread(_OFFSET_BYTES, position), "big", signed=True)
    overlaps = base_offset <= offset <= block.rows[last + kernel.LAST_OFFSET]
    return offset if overlaps and is_good_batch(file, position, size, offset, offset + 1) else None


def _misplaced(block: Block, expected: int, behind: int | None) -> list[int]:
    """Which batches have a wrong offset; of two that claim the same one, both if it may be either."""
    rows = block.rows
    if behind is None and kernel.rows_in_order(rows, block.count, expected) == block.count:
        return []
    kept: list[int] = []
    wrong: list[int] = []

    def end_of(kept: list[int]) -> int:
        return rows[kept[-1] * kernel.ROW + kernel.LAST_OFFSET] + 1 if kept else expected

    for number in range(block.count + 1):
        base = behind if number == block.count else rows[number * kernel.ROW + kernel.BASE_OFFSET]
        if base is None:
            break
        is_wrong = base < end_of(kept)
        if is_wrong and kept:
            room = base - end_of(kept[:-1])
            needed = rows[kept[-1] * kernel.ROW + kernel.LAST_DELTA] + 1
            if room >= needed:  # the one before may belong there, and have a wrong offset
                wrong.append(kept.pop())
                is_wrong = room > needed
        (wrong if is_wrong else kept).append(number)
    return sorted(number for number in wrong if number < block.count)


def _misplaced_batch(block: Block, number: int) -> Damage:
    row = block.rows[number * kernel.ROW : (number + 1) * kernel.ROW]
    position, size = row[kernel.POSITION], row[kernel.SIZE]
    return Damage(position, position + size, kernel.BAD_OFFSETS, row[kernel.BASE_OFFSET], size, is_tail=False)


def _bad(file: File, damages: list[Damage], from_offset: int, to_offset: int) -> Iterator[BadBytes]:
    for damage in damages:
        for position in range(damage.position, damage.end, _BAD_PIECE_BYTES):
            data = file.pread(min(_BAD_PIECE_BYTES, damage.end - position), position)
            yield BadBytes(file.path, position, from_offset, to_offset, damage.meaning, data)
