"""Replays producers and transactions over a log, and holds snapshots and transaction indexes against the result.

In a compacted log, or one whose beginning is gone, files may know more than the batches that are left. There, only
what contradicts the batches counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.errors import CorruptSnapshotError
from ottla.logtools.findings import DEFECT, Finding, Findings
from ottla.logtools.listing import Partition, read_or_tell
from ottla.logtools.verify.producer_trace import ProducerTrace, TracedMarker
from ottla.logtools.verify.segment_facts import SegmentFacts
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.indexes import txn_index
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.producers import snapshot_file as producer_snapshot
from ottla.storage.producers.snapshot_file import SnapshotEntry
from ottla.storage.producers.state import ProducerState

_NEVER_MS = 2**63 - 1


@dataclass(slots=True)
class ProducerChecks:
    """The state of all producers while the log goes by."""

    findings: Findings
    state: ProducerState = field(default_factory=lambda: ProducerState(_NEVER_MS))
    knows_all: bool = True  # False: the log's beginning is gone, or a part of it damaged
    is_broken: bool = False  # a part is damaged: what ended a transaction may be missing
    if_not_compacted: list[Finding] = field(default_factory=list)
    aborted: list[AbortedTxn] = field(default_factory=list)  # in the current segment
    # Abort markers of the current segment: offset, producer.
    markers: dict[int, int] = field(default_factory=dict)

    def begin(self, fs: FileSystem, partition: Partition) -> None:
        """Start where the log does: from nothing, or from the snapshot at the first segment's base."""
        base = partition.segments[0].base_offset if partition.segments else 0
        if base == 0:
            return
        self.knows_all = False
        path = f"{partition.path}/{layout.segment_file(base, layout.SNAPSHOT)}"
        data = read_or_tell(fs, path, Findings())  # whoever checks the snapshot tells of it
        if data is not None:
            try:
                self.state.load(producer_snapshot.decode(data, path), base, 0)
                self.knows_all = True
            except CorruptSnapshotError:
                pass

    def replay(self, trace: ProducerTrace) -> None:
        """The next segment, as it was traced."""
        self.aborted, self.markers = [], {}
        for step in trace.steps:
            if isinstance(step, TracedMarker):
                self._marker(step)
            else:
                step.apply(self.state)

    def _marker(self, marker: TracedMarker) -> None:
        producer_id, offset = marker.producer_id, marker.offset
        completed = self.state.append_marker(
            producer_id,
            marker.epoch,
            marker.coordinator_epoch,
            offset,
            marker.timestamp,
            is_abort=marker.is_abort,
        )
        if marker.is_abort:
            self.markers[offset] = producer_id
        if completed is None:
            return
        if completed.is_aborted:
            stable = self.state.last_stable_offset(completed)
            self.aborted.append(AbortedTxn(producer_id, completed.first_offset, offset, stable))
        self.state.complete(completed)
        self.state.high_watermark_moved(_NEVER_MS)

    # -- transaction index

    def check_txn_index(self, facts: SegmentFacts) -> None:
        """Of the segment that was replayed last. Where that is torn, entries behind its end are of a torn marker."""
        path = facts.segment.path(layout.TXN_INDEX)
        torn_at = facts.end_offset if facts.is_torn else None
        found = self._parse_txn_index(path, facts.segment.base_offset, facts.txn_index or b"")
        expected = {txn.last_offset: txn for txn in self.aborted}
        for number, entry in enumerate(found):
            position = number * txn_index.ENTRY.size
            if torn_at is not None and entry.last_offset >= torn_at:
                meaning = "the entry is of a marker behind the last whole batch"
                self.findings.note(
                    "txn-index-entry", path, meaning, position=position, offset=entry.last_offset
                )
            else:
                self._check_txn(path, position, entry, expected.pop(entry.last_offset, None))
        for missing in expected.values():
            if missing.last_offset < facts.txn_index_end:
                which = (
                    f"producer {missing.producer_id}, offsets {missing.first_offset} to {missing.last_offset}"
                )
                meaning = (
                    f"the aborted transaction of {which} is not listed: its records would count as committed"
                )
                self._unless_compacted("txn-index-missing", path, meaning, None, missing.last_offset)

    def _parse_txn_index(self, path: str, base_offset: int, data: bytes) -> list[AbortedTxn]:
        size = txn_index.ENTRY.size
        if len(data) % size:
            whole = len(data) // size * size
            self.findings.defect(
                "txn-index-size", path, f"{len(data)} bytes are not a multiple of {size}", position=whole
            )
        found: list[AbortedTxn] = []
        for position in range(0, len(data) - size + 1, size):
            version, *fields = txn_index.ENTRY.unpack_from(data, position)
            entry = AbortedTxn(*fields)
            previous = found[-1].last_offset if found else base_offset - 1
            if version != 0:
                self._bad_txn(path, position, entry, f"the entry has version {version}, which is not known")
            elif entry.last_offset <= previous or entry.first_offset > entry.last_offset:
                self._bad_txn(
                    path,
                    position,
                    entry,
                    f"the entry's offsets {entry.first_offset} to {entry.last_offset} cannot be",
                )
            else:
                found.append(entry)
        return found

    def _check_txn(self, path: str, position: int, entry: AbortedTxn, replayed: AbortedTxn | None) -> None:
        if self.markers.get(entry.last_offset) != entry.producer_id:
            meaning = f"producer {entry.producer_id} has no abort marker at offset {entry.last_offset}"
            if entry.last_offset in self.markers or self.knows_all:
                self._bad_txn(path, position, entry, meaning)
        elif replayed is None:
            meaning = f"producer {entry.producer_id} had no open transaction at offset {entry.last_offset}"
            self._unless_compacted("txn-index-entry", path, meaning, position, entry.last_offset)
        elif entry != replayed:
            meaning = (
                f"the entry says first offset {entry.first_offset} and last stable offset {entry.last_stable_offset}, "
                f"the log {replayed.first_offset} and {replayed.last_stable_offset}"
            )
            if entry.first_offset > replayed.first_offset and not self.is_broken:
                self._bad_txn(path, position, entry, meaning)
            else:
                self._unless_compacted("txn-index-entry", path, meaning, position, entry.last_offset)

    def _bad_txn(self, path: str, position: int, entry: AbortedTxn, meaning: str) -> None:
        self.findings.defect("txn-index-entry", path, meaning, position=position, offset=entry.last_offset)

    # -- snapshots

    def check_snapshot(self, path: str, data: bytes, offset: int) -> None:
        """The snapshot taken at `offset`, with the log replayed up to there."""
        try:
            entries = producer_snapshot.decode(data, path)
        except CorruptSnapshotError as error:
            self.findings.defect(
                "bad-snapshot", path, str(error).removeprefix(f"{path}: "), position=0, offset=offset
            )
            return
        replayed = {entry.producer_id: entry for entry in self.state.snapshot()}
        for entry in entries:
            known = replayed.pop(entry.producer_id, None)
            meaning = _difference(entry, known, offset)
            if meaning:
                self._unless_compacted("snapshot-differs", path, meaning, None, entry.last_offset)
        for missing in replayed.values():
            if missing.txn_first_offset >= 0:
                which = f"producer {missing.producer_id} since offset {missing.txn_first_offset}"
                meaning = f"the open transaction of {which} is not in the snapshot"
                self._unless_compacted("snapshot-differs", path, meaning, None, missing.txn_first_offset)

    def _unless_compacted(
        self, code: str, path: str, meaning: str, position: int | None, offset: int
    ) -> None:
        if self.knows_all:
            self.if_not_compacted.append(Finding(DEFECT, code, path, meaning, position, offset))


def _difference(entry: SnapshotEntry, replayed: SnapshotEntry | None, offset: int) -> str:
    """What is wrong with a snapshot's entry, in words; empty when nothing is."""
    if entry.last_offset >= offset or entry.txn_first_offset >= offset:
        largest = max(entry.last_offset, entry.txn_first_offset)
        return f"producer {entry.producer_id} has offset {largest}, past the snapshot's own"
    if replayed is None:
        return f"producer {entry.producer_id} is in the snapshot but not in the log before offset {offset}"
    if entry.coordinator_epoch == -1:  # it was forgotten and came back
        replayed = replayed._replace(coordinator_epoch=-1)
    names = [name for name in entry._fields if getattr(entry, name) != getattr(replayed, name)]
    said = ", ".join(f"{name} {getattr(entry, name)} instead of {getattr(replayed, name)}" for name in names)
    return f"producer {entry.producer_id}: {said}" if names else ""
