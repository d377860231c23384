"""Checks whatever a path is; of a data directory its partitions, and the files that say something about all of them."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.errors import CorruptSnapshotError
from ottla.logtools import listing, side_files
from ottla.logtools.findings import Finding, Findings
from ottla.logtools.index_files import load_index
from ottla.logtools.listing import OFFSET_CHECKPOINTS, DataDir, Partition, SideFile, Target, read_or_tell
from ottla.logtools.side_files import BadSideFileError
from ottla.logtools.verify.log import verify_log
from ottla.logtools.verify.log_report import LogReport, Surroundings
from ottla.logtools.verify.missing import check_lost_partition
from ottla.logtools.verify.segment import Progress
from ottla.names import TopicPartition
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.producers import snapshot_file as producer_snapshot
from ottla.storage.recovery.witnesses import Witness

_METADATA_TOPIC = "__cluster_metadata"
Checkpoints = dict[str, dict[TopicPartition, tuple[int, int]]]  # by file: offset and position in the file


def verify(fs: FileSystem, target: Target, on_progress: Progress = lambda _: None) -> Iterator[Finding]:
    """All findings, in the order of the files."""
    if isinstance(target, SideFile):
        yield from verify_side_file(fs, target)
    elif isinstance(target, DataDir):
        yield from verify_data_dir(fs, target, on_progress)
    else:
        yield from verify_partition(fs, target, on_progress)


def surroundings(fs: FileSystem, partition: Partition) -> Surroundings:
    """What the directory above a single partition says about it, if it is a data directory."""
    parent = partition.path.rpartition("/")[0] or "."
    if not fs.exists(f"{parent}/{layout.META_PROPERTIES}"):
        return Surroundings()
    checkpoints = _read_checkpoints(fs, parent, Findings())
    is_clean = fs.exists(f"{parent}/{layout.CLEAN_SHUTDOWN}")
    return _surroundings(checkpoints, partition.topic_partition, is_clean=is_clean)


def verify_partition(fs: FileSystem, partition: Partition, on_progress: Progress) -> list[Finding]:
    """A single partition, with what lies around it."""
    return partition_findings(
        fs, partition, verify_log(fs, partition, surroundings(fs, partition), on_progress)
    )


def partition_findings(fs: FileSystem, partition: Partition, report: LogReport) -> list[Finding]:
    """What a report of a single partition says, and its siblings about its topic id."""
    known = partition.topic_partition
    if report.topic_id is not None and known is not None:
        parent = partition.path.rpartition("/")[0] or "."
        reports = {known: report}
        for name in listing.if_there(lambda: fs.list_dir(parent)) or []:
            sibling = layout.parse_partition_dir(name)
            if sibling is not None and sibling != known and sibling.topic == known.topic:
                reports[sibling] = LogReport(topic_id=_topic_id(fs, f"{parent}/{name}"))
        _check_topic_ids(report.findings, parent, reports)
    return report.findings.all()


def _topic_id(fs: FileSystem, path: str) -> str | None:
    data = read_or_tell(fs, f"{path}/{layout.PARTITION_METADATA}", Findings())
    try:
        return str(side_files.parse_topic_id(data)) if data is not None else None
    except BadSideFileError:
        return None


def verify_data_dir(fs: FileSystem, data_dir: DataDir, on_progress: Progress) -> Iterator[Finding]:
    check = DataDirCheck(fs, data_dir)
    yield from check.own.all()
    for partition, around in check.logs():
        report = verify_log(fs, partition, around, on_progress)
        yield from report.findings.all()
        check.add(partition, report)
    yield from check.finish().all()


class DataDirCheck:
    """The checks of a data directory across its logs. What it says of them is read when this is made."""

    def __init__(self, fs: FileSystem, data_dir: DataDir) -> None:
        self._fs = fs
        self._data_dir = data_dir
        self._reports: dict[TopicPartition, LogReport] = {}
        self.own = Findings()
        self._is_clean = check_own_files(fs, data_dir, self.own)
        # Before the logs: a running broker moves offsets on, and writes them down only when they are true.
        self._checkpoints = _read_checkpoints(fs, data_dir.path, self.own)

    def logs(self) -> Iterator[tuple[Partition, Surroundings]]:
        """The logs to check, with what lies around them."""
        for partition in listing.all_partitions_of(self._fs, self._data_dir):
            marked = layout.parse_marked_dir(partition.name)
            if marked is None or marked[1] != layout.DELETE_DIR:
                name = partition.topic_partition
                yield partition, _surroundings(self._checkpoints, name, is_clean=self._is_clean)

    def add(self, partition: Partition, report: LogReport) -> None:
        """A log was checked, and its findings are told."""
        report.findings, report.checks = Findings(), []  # there may be thousands of partitions
        if layout.parse_marked_dir(partition.name) is None and partition.topic_partition is not None:
            self._reports[partition.topic_partition] = report

    def finish(self) -> Findings:
        """What the files for all logs say wrongly of them."""
        findings, reports, is_clean = Findings(), self._reports, self._is_clean
        marked = map(layout.parse_marked_dir, self._data_dir.marked)
        doomed = {found[0] for found in marked if found}
        for name, entries in self._checkpoints.items():
            path = f"{self._data_dir.path}/{name}"
            for partition, (offset, position) in entries.items():
                known = reports.get(partition)
                if known is not None:
                    _check_offset(findings, path, name, partition, offset, position, known, is_clean=is_clean)
                elif partition not in doomed and name == layout.RECOVERY_POINTS and offset > 0:
                    witness = _witness(self._checkpoints, partition)
                    check_lost_partition(
                        findings, self._fs, self._data_dir.path, partition, witness, position
                    )
                elif partition not in doomed:
                    add = findings.defect if is_clean else findings.note
                    add("checkpoint-entry", path, f"there is no partition {partition}", position=position)
        if is_clean:
            path = f"{self._data_dir.path}/{layout.RECOVERY_POINTS}"
            _check_complete(findings, path, self._checkpoints, reports)
        _check_topic_ids(findings, self._data_dir.path, reports)
        return findings


def check_own_files(fs: FileSystem, data_dir: DataDir, findings: Findings) -> bool:
    """Returns whether the directory was left by a clean stop."""
    for name in data_dir.unknown_dirs:
        meaning = "not a partition's directory: a broker refuses to start with it; move it away"
        findings.defect("strange-directory", f"{data_dir.path}/{name}", meaning)
    for name in data_dir.marked:
        findings.note("marked-directory", f"{data_dir.path}/{name}", "on its way out, or not in use yet")
    path = f"{data_dir.path}/{layout.META_PROPERTIES}"
    properties = read_or_tell(fs, path, findings)
    if properties is None and not fs.exists(path):
        findings.note(
            "no-meta-properties", path, "the file is missing; a broker would not know whose directory this is"
        )
    elif properties is not None:
        _try(findings, "meta-properties", path, lambda: side_files.check_meta_properties(properties))
    path = f"{data_dir.path}/{layout.CLEAN_SHUTDOWN}"
    marker = read_or_tell(fs, path, findings)
    if marker is not None:
        _try(findings, "clean-shutdown", path, lambda: side_files.check_clean_shutdown(marker))
    return marker is not None


def _try(findings: Findings, code: str, path: str, check: object) -> None:
    assert callable(check)
    try:
        check()
    except BadSideFileError as error:
        findings.defect(code, path, str(error), position=error.position)


def _read_checkpoints(fs: FileSystem, path: str, findings: Findings) -> Checkpoints:
    found: Checkpoints = {}
    for name in OFFSET_CHECKPOINTS:
        data = read_or_tell(fs, f"{path}/{name}", findings)
        entries: dict[TopicPartition, tuple[int, int]] = {}
        if data is not None:
            try:
                for topic, partition, offset, position in side_files.parse_offsets(data):
                    entries[TopicPartition(topic, partition)] = offset, position
            except BadSideFileError as error:
                findings.defect("checkpoint", f"{path}/{name}", str(error), position=error.position)
        found[name] = entries
    return found


def _surroundings(
    checkpoints: Checkpoints, partition: TopicPartition | None, *, is_clean: bool
) -> Surroundings:
    if partition is None:
        return Surroundings()
    witness = _witness(checkpoints, partition)
    is_compacted = partition in checkpoints[layout.CLEANER_OFFSETS]
    return Surroundings(is_compacted, witness.start_offset or 0, not is_clean, is_clean, witness)


def _witness(checkpoints: Checkpoints, partition: TopicPartition) -> Witness:
    names = (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOG_START_OFFSETS)
    found = (checkpoints[name].get(partition) for name in names)
    return Witness(*(entry[0] if entry is not None else None for entry in found))


def _check_offset(
    findings: Findings,
    path: str,
    name: str,
    partition: TopicPartition,
    offset: int,
    position: int,
    report: LogReport,
    *,
    is_clean: bool,
) -> None:
    """Every checkpoint holds offsets of the log; after a clean stop the recovery point is its end."""
    if report.is_damaged:
        return
    meaning = ""
    if offset > report.end_offset:
        meaning = f"{partition} has offset {offset}, past the log's end {report.end_offset}"
    elif offset < 0:
        meaning = f"{partition} has offset {offset}"
    elif name == layout.RECOVERY_POINTS and is_clean and offset < report.end_offset:
        meaning = f"{partition} has recovery point {offset}, but the log was closed at {report.end_offset}"
    if meaning:
        findings.defect("checkpoint-entry", path, meaning, position=position, offset=offset)
    elif offset < report.base_offset and name != layout.CLEANER_OFFSETS:
        meaning = f"{partition} has offset {offset}, below the log's first {report.base_offset}"
        findings.note("checkpoint-entry", path, meaning, position=position, offset=offset)


def _check_complete(
    findings: Findings, path: str, checkpoints: Checkpoints, reports: dict[TopicPartition, LogReport]
) -> None:
    entries = checkpoints[layout.RECOVERY_POINTS]
    for partition in reports:
        if entries and partition not in entries and partition.topic != _METADATA_TOPIC:
            meaning = f"{partition} has no recovery point: it will be read in full at the next start"
            findings.note("checkpoint-entry", path, meaning)


def _check_topic_ids(findings: Findings, directory: str, reports: dict[TopicPartition, LogReport]) -> None:
    """All partitions of a topic have its id. Which one is wrong cannot be told: both are named."""
    seen: dict[str, tuple[str, TopicPartition]] = {}
    for partition, report in reports.items():
        if report.topic_id is None:
            continue
        topic_id, first = seen.setdefault(partition.topic, (report.topic_id, partition))
        if topic_id != report.topic_id:
            for one, own_id, other, other_id in (
                (partition, report.topic_id, first, topic_id),
                (first, topic_id, partition, report.topic_id),
            ):
                path = f"{directory}/{one}/{layout.PARTITION_METADATA}"
                meaning = f"the topic id is {own_id}, but that of {other} is {other_id}"
                findings.defect("partition-metadata", path, meaning, position=0)


def verify_side_file(fs: FileSystem, target: SideFile) -> list[Finding]:
    """A single file that is not a log: an index together with its log, anything else by itself."""
    findings = Findings()
    if target.suffix in (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX):
        return _verify_index(fs, target)
    data = fs.read_bytes(target.path)
    try:
        if target.suffix == layout.SNAPSHOT:
            producer_snapshot.decode(data, target.path)
        elif target.suffix == layout.LEADER_EPOCHS:
            side_files.parse_epochs(data)
        elif target.suffix == layout.PARTITION_METADATA:
            side_files.parse_topic_id(data)
        elif target.suffix == layout.META_PROPERTIES:
            side_files.check_meta_properties(data)
        else:
            side_files.parse_offsets(data)
    except BadSideFileError as error:
        findings.defect("bad-file", target.path, str(error), position=error.position)
    except CorruptSnapshotError as error:
        findings.defect("bad-snapshot", target.path, str(error).removeprefix(f"{target.path}: "), position=0)
    return findings.all()


def _verify_index(fs: FileSystem, target: SideFile) -> list[Finding]:
    """Check the whole segment, and tell what concerns the index."""
    log = target.path.removesuffix(target.suffix) + layout.LOG
    partition = listing.resolve(fs, log) if fs.exists(log) else None
    if isinstance(partition, Partition):
        report = verify_log(fs, partition, surroundings(fs, partition), lambda _: None)
        return [finding for finding in report.findings.all() if finding.file == target.path]
    findings = Findings()
    parsed = layout.parse_segment_file(target.path.rpartition("/")[2])
    if parsed is not None and target.suffix != layout.TXN_INDEX:
        index = load_index(fs, target.path, target.suffix, parsed.base_offset)
        if index is not None and index.odd_bytes:
            meaning = f"{len(index.data)} bytes are not a multiple of {index.entry.size}"
            findings.defect("index-size", target.path, meaning)
    findings.note("orphan-index", target.path, "an index without its log: its entries cannot be checked")
    return findings.all()
