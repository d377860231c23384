"""What one segment does to the state of producers, shortened, so that segments can be read apart and replayed in order.

Of the batches that a producer wrote in a row only the last one counts, and where a transaction began. Replaying a
trace leaves the same snapshot entries, in the same order, and ends transactions at the same last stable offsets as
replaying every batch would.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.errors import CorruptionError
from ottla.logtools.findings import Findings
from ottla.records import batch, control, kernel
from ottla.storage.batch_reader import batch_bytes
from ottla.storage.fs import File
from ottla.storage.producers.state import NO_SEQUENCE, ProducerState
from ottla.storage.scan import Window


class TracedMarker(NamedTuple):
    """A commit or abort marker."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    offset: int
    timestamp: int
    is_abort: bool


@dataclass(slots=True)
class TracedBatches:
    """Batches of one producer and epoch, with none of its markers between them."""

    producer_id: int
    epoch: int
    first_offset: int
    is_transactional: bool
    timestamp: int = -1
    last_numbered: tuple[int, int, int, int, int] | None = None  # sequence, count, offsets, timestamp

    def add(self, row: array[int]) -> None:
        self.timestamp = row[kernel.MAX_TIMESTAMP]
        if row[kernel.BASE_SEQUENCE] != NO_SEQUENCE:
            self.last_numbered = (
                row[kernel.BASE_SEQUENCE],
                row[kernel.LAST_DELTA] + 1,
                row[kernel.BASE_OFFSET],
                row[kernel.LAST_OFFSET],
                row[kernel.MAX_TIMESTAMP],
            )

    def apply(self, state: ProducerState) -> None:
        if self.last_numbered is not None:
            state.append_batch(self.producer_id, self.epoch, *self.last_numbered, False)
        first, transactional = self.first_offset, self.is_transactional
        state.append_batch(
            self.producer_id, self.epoch, NO_SEQUENCE, 0, first, first, self.timestamp, transactional
        )


@dataclass(slots=True)
class ProducerTrace:
    """The steps of one segment, in order."""

    steps: list[TracedBatches | TracedMarker] = field(default_factory=list)
    _open: dict[int, TracedBatches] = field(default_factory=dict)

    def window(self, file: File, window: Window, findings: Findings) -> None:
        rows, count = window.rows, window.count
        keep = array("q", bytes(8 * count))
        for number in keep[: kernel.producer_rows(rows, count, keep)]:
            row = rows[number * kernel.ROW : (number + 1) * kernel.ROW]
            if row[kernel.ATTRIBUTES] & batch.CONTROL:
                self._marker(batch_bytes(file, window, row), row, file.path, findings)
            else:
                self._batch(row)

    def _batch(self, row: array[int]) -> None:
        producer_id, epoch = row[kernel.PRODUCER_ID], row[kernel.PRODUCER_EPOCH]
        transactional = bool(row[kernel.ATTRIBUTES] & batch.TRANSACTIONAL)
        known = self._open.get(producer_id)
        # A transaction that begins later must not seem to have begun before the markers in between.
        if known is None or known.epoch != epoch or (transactional and not known.is_transactional):
            known = TracedBatches(producer_id, epoch, row[kernel.BASE_OFFSET], transactional)
            self._open[producer_id] = known
            self.steps.append(known)
        known.add(row)

    def _marker(self, data: memoryview, row: array[int], path: str, findings: Findings) -> None:
        position, offset = row[kernel.POSITION], row[kernel.LAST_OFFSET]
        try:
            marker = control.parse_marker(data)
        except CorruptionError as error:
            meaning = f"a control batch whose record is wrong: {error}"
            findings.defect("bad-marker", path, meaning, position=position, offset=offset)
            return
        if marker is None:
            return
        producer_id = row[kernel.PRODUCER_ID]
        self._open.pop(producer_id, None)
        self.steps.append(
            TracedMarker(
                producer_id,
                row[kernel.PRODUCER_EPOCH],
                marker.coordinator_epoch,
                offset,
                row[kernel.MAX_TIMESTAMP],
                marker.is_abort,
            )
        )
