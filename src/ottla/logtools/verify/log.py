"""Checks everything in a log file, a partition directory or a data directory, and reads only.

A partition is listed, then read. When a running broker changes it meanwhile (a segment is deleted, compacted or cut),
what looked like a defect may be none: then it is read again. In a directory that never rests, what was found in files
that are gone is forgotten in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from ottla.logtools import listing, side_files
from ottla.logtools.findings import DEFECT, NOTE, Finding, Findings
from ottla.logtools.listing import Partition, read_or_tell
from ottla.logtools.side_files import BadSideFileError
from ottla.logtools.verify.epochs import EpochChecks
from ottla.logtools.verify.find_strangers import find_strangers
from ottla.logtools.verify.internal_topics import check_internal
from ottla.logtools.verify.log_report import LogReport, Surroundings
from ottla.logtools.verify.missing import check_ends, check_record
from ottla.logtools.verify.producer_trace import ProducerTrace
from ottla.logtools.verify.producers import ProducerChecks
from ottla.logtools.verify.segment import Progress, check_segment
from ottla.logtools.verify.segment_facts import MissingOffsets, SegmentFacts
from ottla.logtools.verify.strangers import MOVING, arrange
from ottla.storage import layout, losses
from ottla.storage.fs import FileSystem
from ottla.storage.recovery.witnesses import Hole

_TRIES = 3
_COMPACTED_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_KNOWN_FILES = (layout.LEADER_EPOCHS, layout.PARTITION_METADATA, "quorum-state", "remote_log_snapshot")


def verify_log(
    fs: FileSystem, partition: Partition, around: Surroundings, on_progress: Progress
) -> LogReport:
    """Check one partition (or the one segment of it that is listed)."""
    report = _verify_listed(fs, partition, around, on_progress)
    if not partition.whole or not report.may_have_strangers(around):
        return report
    strangers = listing.if_there(partial(find_strangers, fs, report.partition, around.known_end))
    if not strangers:
        return report
    arranged = LogCheck(fs, arrange(report.partition, strangers), around)
    report = arranged.judge(arranged.check(lambda _: None))
    report.strangers = strangers
    for stranger in strangers:
        report.findings.add(stranger.finding)
    return report


def _verify_listed(
    fs: FileSystem, partition: Partition, around: Surroundings, on_progress: Progress
) -> LogReport:
    if partition.unreadable is not None:
        report = LogReport(is_damaged=True, partition=partition)
        report.findings.unreadable(partition.path, partition.unreadable)
        return report
    for attempt in range(_TRIES):
        done = on_progress if attempt == 0 else lambda _: None
        check = LogCheck(fs, partition, around)
        report = check.judge(check.check(done))
        now = settle(fs, check, report)
        if now is None:
            return report
        partition = now
    return report


def settle(fs: FileSystem, check: LogCheck, report: LogReport) -> Partition | None:
    """The partition as it is now, if a report of defects may only come from changes since it was listed.

    Then what was found in files that changed is forgotten.
    """
    partition = check.partition
    if not report.findings.has_defects or not partition.whole:
        return None
    now = listing.if_there(partial(listing.list_partition, fs, partition.path))
    if now is None:
        report.findings = Findings()
        return Partition(partition.path, partition.name, partition.topic_partition)
    # A snapshot that is just being written is empty for a moment, or has only a part.
    moved = _moved(partition, now) | check.changed_snapshots()
    if not moved and read_or_tell(fs, check.epochs.path, Findings()) == check.epochs_data:
        return None
    report.findings.forget(moved)
    return now


def _moved(before: Partition, after: Partition) -> set[str]:
    """Files of segments that came, went or were cut meanwhile. The last one may grow: that is no news."""
    sizes = {segment.base_offset: segment.size for segment in after.segments}
    known = set(before.bases)
    moved = [segment for segment in after.segments if segment.base_offset not in known]
    for segment in before.segments:
        size = sizes.get(segment.base_offset, -1)
        if size < segment.size or (size > segment.size and segment is not before.segments[-1]):
            moved.append(segment)
    suffixes = (*layout.SEGMENT_SUFFIXES, layout.SNAPSHOT)
    return {segment.path(suffix) for segment in moved for suffix in suffixes}


class LogCheck:
    """The checks of one log across its segments: first `epochs.known` for each, then `judge` what they found."""

    def __init__(self, fs: FileSystem, partition: Partition, around: Surroundings) -> None:
        self.partition = partition
        self._fs = fs
        self._around = around
        self._findings = Findings()
        self._producers = ProducerChecks(self._findings)
        self.epochs_data: bytes | None = None
        self.epochs = self._load_epochs()
        self._record = self._read_record()
        self._holes: list[Hole] = []
        self._missing: list[MissingOffsets] = []
        self._checks: list[SegmentFacts] = []
        self._snapshots: dict[int, bytes] = {}
        self._snapshots_read: dict[int, bytes] = {}

    def check(self, on_progress: Progress) -> Iterator[SegmentFacts]:
        """Check the segments, one after the other."""
        partition, epochs = self.partition, self.epochs.known
        for segment in partition.segments:
            yield check_segment(self._fs, segment, partition.next_base(segment), epochs, on_progress)

    def judge(self, checked: Iterable[SegmentFacts]) -> LogReport:
        """What the checked segments, in order, say of the log. Files beside it are read first."""
        partition = self.partition
        self._note_other_files()
        self._snapshots_read = self._read_snapshots()
        self._snapshots = dict(self._snapshots_read)
        self._producers.begin(self._fs, partition)
        end_offset = self._judge_segments(checked)
        if partition.whole:
            self.epochs.finish(end_offset)
            self._check_late_snapshots(end_offset)
        self._judge_what_compaction_explains()
        if partition.whole:
            self._judge_what_is_missing()
        if not any(facts.is_unreadable for facts in self._checks):
            check_internal(self._fs, partition, self._findings)
        base = partition.segments[0].base_offset if partition.segments else 0
        damaged = any(facts.damages or facts.is_unreadable for facts in self._checks)
        topic_id = self._check_topic_id()
        return LogReport(
            self._findings,
            base,
            end_offset,
            damaged,
            topic_id,
            partition,
            self._checks,
            self.epochs.wrong,
            self._holes,
        )

    def _judge_segments(self, checked: Iterable[SegmentFacts]) -> int:
        end_offset = self.partition.segments[0].base_offset if self.partition.segments else 0
        for facts in checked:
            base, path = facts.segment.base_offset, facts.segment.path(layout.LOG)
            self._compare_snapshot(base)
            if base > end_offset and self._checks and not self._checks[-1].has_vanished:
                self._missing.append(MissingOffsets(path, None, end_offset, base - end_offset))
            self._findings.merge(facts.findings)
            if facts.is_unreadable:
                self._producers.knows_all, self._producers.is_broken = False, True
            elif not facts.has_vanished:
                self.epochs.replay(facts.epochs, path)
                self._judge_producers(facts)
            if facts.missing is not None:
                self._missing.append(facts.missing)
            # There may be thousands of segments.
            facts.findings, facts.producers = Findings(), ProducerTrace()
            self._checks.append(facts)
            end_offset = max(end_offset, facts.end_offset)
        return end_offset

    def _judge_producers(self, facts: SegmentFacts) -> None:
        self._producers.replay(facts.producers)
        if facts.is_broken:
            self._producers.knows_all, self._producers.is_broken = False, True
        if not facts.segment.name:  # else its indexes are not looked at
            self._producers.check_txn_index(facts)

    # -- side files

    def _load_epochs(self) -> EpochChecks:
        path = f"{self.partition.path}/{layout.LEADER_EPOCHS}"
        self.epochs_data = read_or_tell(self._fs, path, self._findings)
        entries: list[tuple[int, int]] = []
        lines: list[int] = []
        if self.epochs_data is not None and self.partition.topic_partition is not None:
            try:
                entries, lines = side_files.parse_epochs(self.epochs_data)
            except BadSideFileError as error:
                self._findings.defect("epoch-checkpoint", path, str(error), position=error.position)
        trimmed_below = 2**63 if self._around.is_trimmed else self._around.log_start
        return EpochChecks(self._findings, path, entries, lines, trimmed_below)

    def _read_record(self) -> losses.Record:
        try:
            if self.partition.whole:
                return losses.read(self._fs, self.partition.path)
        except OSError as error:
            self._findings.unreadable(f"{self.partition.path}/{losses.FILE}", error)
        return losses.Record([], [])

    def _check_topic_id(self) -> str | None:
        path = f"{self.partition.path}/{layout.PARTITION_METADATA}"
        data = read_or_tell(self._fs, path, self._findings) if self.partition.whole else None
        if data is None:
            return None
        try:
            return str(side_files.parse_topic_id(data))
        except BadSideFileError as error:
            self._findings.defect("partition-metadata", path, str(error), position=error.position)
            return None

    def _read_snapshots(self) -> dict[int, bytes]:
        found = {}
        for offset in self.partition.snapshots if self.partition.whole else []:
            data = read_or_tell(self._fs, self._snapshot_path(offset), self._findings)
            if data is not None:
                found[offset] = data
        return found

    def changed_snapshots(self) -> set[str]:
        """Those that do not hold any more what was read."""
        return {
            path
            for offset, data in self._snapshots_read.items()
            for path in (self._snapshot_path(offset),)
            if read_or_tell(self._fs, path, Findings()) != data
        }

    def _snapshot_path(self, offset: int) -> str:
        return f"{self.partition.path}/{layout.segment_file(offset, layout.SNAPSHOT)}"

    def _compare_snapshot(self, offset: int) -> None:
        data = self._snapshots.pop(offset, None)
        if data is not None:
            self._producers.check_snapshot(self._snapshot_path(offset), data, offset)

    def _check_late_snapshots(self, end_offset: int) -> None:
        """One at the log's end was left by a clean stop, others inside a segment by an earlier one."""
        self._compare_snapshot(end_offset)
        for offset, data in self._snapshots.items():
            path = self._snapshot_path(offset)
            self._producers.knows_all = False  # the state at its offset is not known any more
            self._producers.check_snapshot(path, data, offset)
            if offset > end_offset and not any(check.is_torn for check in self._checks):
                meaning = f"the snapshot is of offset {offset}, past the log's end {end_offset}"
                self._findings.defect("stray-snapshot", path, meaning, offset=offset)

    def _note_other_files(self) -> None:
        partition = self.partition
        if not partition.whole:
            return
        for name in partition.leftovers:
            if name.endswith(MOVING):
                meaning = "left by a repair that was interrupted; run `ottla log repair` again"
                self._findings.defect("interrupted-repair", f"{partition.path}/{name}", meaning)
                continue
            meaning = "left by an interrupted deletion or compaction; a broker deals with it when it starts"
            self._findings.note("leftover", f"{partition.path}/{name}", meaning)
        for name in partition.orphans:
            meaning = "an index without its log; a broker removes it when it starts"
            self._findings.note("orphan-index", f"{partition.path}/{name}", meaning)
        for name in partition.unknown_files:
            known = name in _KNOWN_FILES or name.endswith(
                (".checkpoint", layout.QUARANTINE, ".quarantine.json", losses.FILE)
            )
            if not known:
                self._findings.note(
                    "unknown-file", f"{partition.path}/{name}", "not a file of a Kafka log; ignored"
                )

    # -- gaps

    def _judge_what_compaction_explains(self) -> None:
        topic = self.partition.topic_partition
        news = [missing for missing in self._missing if not self._is_on_record(missing)]
        # A cleaner takes out batches between others; a file that is lost leaves a hole between two files.
        inside = sum(missing.places for missing in news if missing.position is not None)
        explained = (
            self._around.is_compacted
            or (topic is not None and topic.topic in _COMPACTED_TOPICS)
            or self._was_repaired_before
            or any(check.lost_records for check in self._checks)
            or inside > 1
        )
        if not explained and not any(check.joint_entries for check in self._checks):
            for finding in (finding for check in self._checks for finding in check.doubtful_entries):
                self._findings.add(finding)
        if not explained and not self._record.losses:
            for finding in self._producers.if_not_compacted:
                self._findings.add(finding)
        explained_by = "a repair" if self._was_repaired_before else "compaction"
        for missing in self._missing:
            more = f", and {missing.places - 1} more such places" if missing.places > 1 else ""
            what = f"offsets {missing.offset} to {missing.offset + missing.size - 1} are missing{more}"
            level = NOTE
            if missing not in news:
                meaning = f"{what}; that is on record"
            elif missing.offset + missing.size <= self._around.log_start:
                meaning = f"{what}; they lie below the log start"
            elif explained:
                meaning = f"{what}; {explained_by} does that"
            else:
                level = DEFECT
                lost = (
                    "a segment is" if missing.position is None else "a base offset is wrong, or batches are"
                )
                meaning = f"{what}, and no sign of compaction: {lost} lost"
                name = missing.file.rpartition("/")[2]
                self._holes.append(Hole(name, missing.offset, missing.offset + missing.size, meaning))
            self._findings.add(Finding(level, "gap", missing.file, meaning, missing.position, missing.offset))

    @property
    def _was_repaired_before(self) -> bool:
        """Repairs once left gaps and put nothing on record."""
        return self.partition.has_quarantine and losses.FILE not in self.partition.unknown_files

    def _is_on_record(self, missing: MissingOffsets) -> bool:
        end = missing.offset + missing.size
        known = self._record.losses
        near = sum(missing.offset <= loss.first_offset for loss in known) if missing.places > 1 else 1
        return not losses.uncovered(missing.offset, end, known) and near >= missing.places

    def _judge_what_is_missing(self) -> None:
        check_record(self._findings, self.partition.path, self._record)
        self._holes += check_ends(
            self._findings, self._fs, self.partition, self._checks, self.epochs.entries, self._around.witness,
            self._record, is_clean=self._around.is_clean,
        )  # fmt: skip
