"""Reads a log's committed batches: the markers in the log say which they are.

The batches themselves are read once. Most transactions end in the block of batches in which they began; for those that
do not, the log is looked through from there on, in small pieces and only until their markers are found. What the
transaction indexes list is left out too, so that a log whose markers are gone gives nothing that is known as aborted.
But an index that does not list a transaction says nothing: it may be missing, or old.

Where a transaction's end cannot be known, because the log is damaged before its marker, its batches are given out as
`Undecided`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ottla.records import batch, kernel
from ottla.spark.transport.base import MAX_OFFSET, Aborted, BadBytes, Block, Lost, Undecided, abort_ranges
from ottla.spark.transport.log_files import LogFiles
from ottla.spark.transport.transactions import TransactionsSoFar, Unknown

_AHEAD_BYTES = 256 << 10  # a transaction that crosses the end of a block rarely goes much further
_NO_END = "the log ends before it does"


def read_committed(log: LogFiles, start: int, end: int) -> Iterator[Block | BadBytes | Lost]:
    """The batches that hold offsets of [start, end), with all that was aborted in them."""
    judge = _Judge(log, start, end)
    try:
        for found in log.read(start, end):
            judge.transactions.take(found)
            if isinstance(found, Block):
                yield from judge.judge(found)
            else:
                yield found
    finally:
        judge.close()


class _Judge:
    """Knows what became of the transactions in [start, end), as far as the log has been read."""

    def __init__(self, log: LogFiles, start: int, end: int) -> None:
        self.transactions = TransactionsSoFar(start)
        self._log = log
        self._start = start
        self._end = end
        # What the indexes list: the next one last, and those that may be in the block.
        self._listed = sorted(log.aborted(start, end), key=lambda txn: -txn.first_offset)
        self._near: list[Aborted] = []
        self._ahead: Generator[Block | BadBytes | Lost, None, None] | None = None
        self._ahead_at = -1  # how far it has come

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def judge(self, block: Block) -> Iterator[Block | BadBytes | Lost]:
        """The block, with what was aborted; batches of which that is not known are taken out of it."""
        seen = self.transactions
        first = block.rows[kernel.BASE_OFFSET]
        last = min(self._end - 1, block.rows[(block.count - 1) * kernel.ROW + kernel.LAST_OFFSET])
        self._look_ahead(last)
        while self._listed and self._listed[-1].first_offset <= last:
            self._near.append(self._listed.pop())
        self._near = [txn for txn in self._near if txn.last_offset >= first]
        seen.aborted = [txn for txn in seen.aborted if txn[2] >= first]
        seen.unknown = [txn for txn in seen.unknown if txn.last_offset >= first]
        block.aborted = abort_ranges((*self._near, *map(Aborted._make, seen.aborted)))
        unknown = [txn for txn in seen.unknown if txn.first_offset <= last]
        unknown += [
            Unknown(producer_id, offset, last, _NO_END)
            for producer_id, offset in seen.began.items()
            if offset <= last
        ]
        yield from self._without(block, unknown) if unknown else (block,)

    def _look_ahead(self, last: int) -> None:
        """Read on until every transaction that began at `last` or before has its end, or the log ends."""
        seen = self.transactions
        while seen.is_open_before(last + 1):
            if self._ahead is None or self._ahead_at < seen.at:  # the blocks have come further
                self.close()
                self._ahead = self._log.read(seen.at, MAX_OFFSET, _AHEAD_BYTES)
            found = next(self._ahead, None)
            if found is None:
                self.close()
                return
            seen.take(found)
            self._ahead_at = seen.at

    def _without(self, block: Block, unknown: list[Unknown]) -> Iterator[Block | BadBytes | Lost]:
        """The block in pieces; between them, the batches of it that are not known to be committed or aborted."""
        done = 0
        for number in range(block.count):
            row = block.rows[number * kernel.ROW : (number + 1) * kernel.ROW]
            txn = self._unknown(row.tolist(), unknown)
            if txn is not None:
                if done < number:
                    yield block.part(done, number)
                yield self._undecided(block, row.tolist(), txn)
                done = number + 1
        if done < block.count:
            yield block.part(done, block.count)

    def _unknown(self, row: list[int], unknown: list[Unknown]) -> Unknown | None:
        kind = row[kernel.ATTRIBUTES] & (batch.TRANSACTIONAL | batch.CONTROL)
        offset = row[kernel.BASE_OFFSET]
        if row[kernel.MAGIC] != batch.MAGIC_V2 or kind != batch.TRANSACTIONAL or offset >= self._end:
            return None

        def holds(txn: Aborted | Unknown) -> bool:
            return (
                txn.producer_id == row[kernel.PRODUCER_ID] and txn.first_offset <= offset <= txn.last_offset
            )

        return None if any(map(holds, self._near)) else next(filter(holds, unknown), None)

    def _undecided(self, block: Block, row: list[int], txn: Unknown) -> Undecided | Lost:
        from_offset, to_offset = row[kernel.BASE_OFFSET], row[kernel.LAST_OFFSET] + 1
        if isinstance(txn.hidden_by, Lost):  # retention took the marker while this batch was on its way out
            return Lost(max(self._start, from_offset), min(self._end, to_offset))
        position = row[kernel.POSITION]
        start = position - block.shift
        data = bytes(memoryview(block.data)[start : start + row[kernel.SIZE]])
        meaning = f"whether its transaction was committed is not known: {txn.hidden_by}"
        return Undecided(block.where, position, from_offset, to_offset, meaning, data)
