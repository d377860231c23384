"""Follows transactions while a cleaner goes through a log: whose records are void, and which markers are needed.

Records of aborted transactions go. A marker stays as long as records of its transaction were still there when the
cleaner came by, even if it dropped them just then: it can go in a later round at the earliest.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.records.control import Marker
from ottla.storage.indexes.txn_index import AbortedTxn


class CleanedTxns:
    """Must be told of every transactional and control batch, in the order of offsets."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._coming = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}  # by producer: the one that has begun last
        self._with_data: set[int] = set()  # producers of which data was seen since their last marker

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether the transactional data batch that ends at `last_offset` belongs to an aborted transaction."""
        self._advance(last_offset)
        self._with_data.add(producer_id)
        txn = self._aborted.get(producer_id)
        return txn is not None and last_offset < txn.last_offset

    def end(self, producer_id: int, offset: int, marker: Marker) -> tuple[bool, AbortedTxn | None]:
        """A marker: whether it is needed no more, and what the transaction index must hold because of it."""
        self._advance(offset)
        txn = self._aborted.pop(producer_id, None)
        if producer_id not in self._with_data:
            return True, None
        self._with_data.remove(producer_id)
        return False, txn if marker.is_abort else None

    def _advance(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            txn = self._coming.pop()
            self._aborted[txn.producer_id] = txn
