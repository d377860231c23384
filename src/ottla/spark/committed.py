"""Reads a log's committed batches, though its transaction indexes may be missing or not know all.

What an index lists was aborted. A segment without aborted transactions has no index, and so has one that was copied
without it. So where a transaction is not listed, the markers in the log itself say what became of it: they are looked
for once, from the first such batch on, and only logs with transactions are read twice for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.records import batch, kernel
from ottla.records.control import parse_marker
from ottla.spark.log_files import LogFiles
from ottla.spark.transport import MAX_OFFSET, Aborted, BadBytes, Block, Lost, abort_ranges

_KIND = batch.TRANSACTIONAL | batch.CONTROL


def read_committed(log: LogFiles, start: int, end: int) -> Iterator[Block | BadBytes | Lost]:
    """The batches that hold offsets of [start, end), with all that was aborted in them."""
    aborted = set(log.aborted(start, end))
    ranges = abort_ranges(aborted)
    knows_all = False
    for found in log.read(start, end):
        if isinstance(found, Block):
            if not knows_all and (offset := _first_unlisted(found, aborted)) is not None:
                aborted.update(_aborted_by_markers(log, offset, end))
                ranges = abort_ranges(aborted)
                knows_all = True
            found.aborted = ranges
        yield found


def _transactional(block: Block) -> Iterator[tuple[int, bool, int, int]]:
    """Its batches of transactions: place in `rows`, whether it is a marker, producer, offset."""
    attributes = block.rows[kernel.ATTRIBUTES : block.count * kernel.ROW : kernel.ROW]
    for number, bits in enumerate(attributes):
        if bits & batch.TRANSACTIONAL:
            row = number * kernel.ROW
            producer, offset = block.rows[row + kernel.PRODUCER_ID], block.rows[row + kernel.BASE_OFFSET]
            yield row, bits & _KIND == _KIND, producer, offset


def _first_unlisted(block: Block, aborted: set[Aborted]) -> int | None:
    for _, is_marker, producer, offset in _transactional(block):
        if not is_marker and not any(
            txn.producer_id == producer and txn.first_offset <= offset <= txn.last_offset for txn in aborted
        ):
            return offset
    return None


def _aborted_by_markers(log: LogFiles, start: int, end: int) -> Iterator[Aborted]:
    """Those with batches in [start, end): read on until each has its marker, or the log ends."""
    began: dict[int, int] = {}
    for block in log.read(start, MAX_OFFSET):
        if not isinstance(block, Block):
            continue
        for row, is_marker, producer, offset in _transactional(block):
            if not is_marker:
                if offset < end:
                    began.setdefault(producer, offset)
            elif producer in began:
                first = began.pop(producer)
                marker = parse_marker(block.data, block.rows[row + kernel.POSITION] - block.shift)
                if marker is not None and marker.is_abort:
                    yield Aborted(producer, first, offset)
        last = (block.count - 1) * kernel.ROW
        if not began and block.rows[last + kernel.LAST_OFFSET] + 1 >= end:
            return
