"""Follows the transactions of a log through its batches: open ones, aborted ones, and those that damage leaves unknown.

A batch belongs to the transaction that its producer's next marker ends. Where the log is damaged or has a gap in front
of that marker, there may have been another one: then nobody can tell.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records import kernel
from ottla.records.control import Marker, parse_marker
from ottla.spark.transport.base import MAX_OFFSET, Aborted, BadBytes, Block, Lost


class Unknown(NamedTuple):
    """Batches of a producer, in [first_offset, last_offset], whose end was not seen, and what may have hidden it."""

    producer_id: int
    first_offset: int
    last_offset: int
    hidden_by: BadBytes | Lost | str


class TransactionsSoFar:
    """What is known after all batches before the offset `at`."""

    def __init__(self, at: int, began: dict[int, int] | None = None) -> None:
        self.at = at
        self.began = began or {}  # the open ones: producer id, offset of the first batch
        self.aborted: list[tuple[int, int, int]] = []
        self.unknown: list[Unknown] = []

    def take(self, found: Block | BadBytes | Lost, end: int = MAX_OFFSET) -> None:
        """Go on with what comes next in the log; what lies before `at`, or from `end` on, does not count."""
        if isinstance(found, Block):
            self._take_block(found, end)
        elif found.to_offset >= self.at and found.from_offset < end:
            for producer_id in list(self.began):
                self._lose(producer_id, self.at - 1, found)

    def forget_ended(self) -> None:
        self.aborted.clear()
        self.unknown.clear()

    def is_open_before(self, offset: int) -> bool:
        return any(first < offset for first in self.began.values())

    def _take_block(self, block: Block, end: int) -> None:
        row = 0
        while True:
            row = kernel.transaction_rows(
                block.data, block.rows, row, block.count, block.shift, self.at, end, self.began, self.aborted
            )
            if row == block.count:
                break
            self._take_unusual(block, row * kernel.ROW)
            row += 1
        self.at = max(self.at, min(end, block.rows[(row - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1))

    def _take_unusual(self, block: Block, row: int) -> None:
        """A control batch that the kernel has left alone. One without a record: a cleaner has found nothing of its
        transaction any more, so it ends none."""
        producer_id, offset = block.rows[row + kernel.PRODUCER_ID], block.rows[row + kernel.BASE_OFFSET]
        position = block.rows[row + kernel.POSITION]
        try:
            marker: Marker | None = parse_marker(block.data, position - block.shift)
        except CorruptRecordError as error:
            what = f"{block.where}: at position {position}, offset {offset}: {error}"
            self._lose(producer_id, offset, what)
            return
        if (
            marker is not None
            and (first := self.began.pop(producer_id, None)) is not None
            and marker.is_abort
        ):
            self.aborted.append(Aborted(producer_id, first, offset))

    def _lose(self, producer_id: int, last_offset: int, hidden_by: BadBytes | Lost | str) -> None:
        first = self.began.pop(producer_id, None)
        if first is not None:
            self.unknown.append(Unknown(producer_id, first, last_offset, hidden_by))
