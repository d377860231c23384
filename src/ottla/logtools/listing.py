"""Finds out what a path is (a file, a partition directory or a data directory) and lists what lies in it.

A listing is only true for a moment when a broker runs: whoever opens a listed file must expect that it is gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ottla.errors import StorageError
from ottla.logtools.findings import Findings
from ottla.names import TopicPartition
from ottla.storage import layout, quarantine
from ottla.storage.find_batch import find_batch
from ottla.storage.fs import File, FileSystem

T = TypeVar("T")
_LOOKED_AT_BYTES = 64 << 20  # for a first batch, in a file of which nothing is known
MAX_BASE_OFFSET = 2**63 - 1 - 2**31  # every offset of a segment must fit into 64 bits
OFFSET_CHECKPOINTS = (
    layout.RECOVERY_POINTS,
    layout.HIGH_WATERMARKS,
    layout.LOG_START_OFFSETS,
    layout.CLEANER_OFFSETS,
)
_DATA_DIR_FILES = (layout.META_PROPERTIES, layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOCK)


class NotALogError(StorageError):
    """The path is nothing that the log tools know."""


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files that share a base offset, with the sizes they had when they were listed."""

    directory: str
    base_offset: int
    sizes: dict[str, int]
    name: str = ""  # of a log file with a name of its own

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.file_name(suffix)}"

    def file_name(self, suffix: str) -> str:
        return self.name or layout.segment_file(self.base_offset, suffix)

    @property
    def size(self) -> int:
        return self.sizes.get(layout.LOG, 0)


@dataclass(slots=True)
class Partition:
    """A partition directory: its segments in order, and everything else in it."""

    path: str
    name: str
    topic_partition: TopicPartition | None
    segments: list[SegmentFiles] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)  # index files without a log
    snapshots: list[int] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)  # .deleted, .cleaned, .swap, .tmp
    unknown_files: list[str] = field(default_factory=list)
    has_quarantine: bool = False
    whole: bool = True  # False: a single file of it was asked for
    unreadable: OSError | None = None  # why its directory cannot be listed
    bases: list[int] = field(default_factory=list)  # of all segments, also if only one was asked for

    def next_base(self, segment: SegmentFiles) -> int | None:
        """The base offset of the segment after this one; None for the last, which a writer may be adding to."""
        at = bisect_right(self.bases, segment.base_offset)
        return self.bases[at] if at < len(self.bases) else None

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)


@dataclass(frozen=True, slots=True)
class DataDir:
    """A broker's directory: partitions, checkpoints, and directories on their way out."""

    path: str
    partitions: list[str]  # names of directories
    marked: list[str]  # -delete, -future, -stray
    unknown_dirs: list[str]  # that Kafka would refuse to start with


@dataclass(frozen=True, slots=True)
class SideFile:
    """A single file that is not a log."""

    path: str
    suffix: str  # .index .timeindex .txnindex .snapshot, or the file's name


Target = Partition | DataDir | SideFile


def resolve(fs: FileSystem, path: str) -> Target:
    """What lies at `path`."""
    path = path.rstrip("/") or "/"
    if not fs.exists(path):
        raise NotALogError(
            f"{path} does not exist; give a log file, a partition directory or a data directory"
        )
    if not fs.is_dir(path):
        return _file(fs, path)
    names = fs.list_dir(path)
    if any(layout.parse_segment_file(name) for name in names):
        return list_partition(fs, path)
    if any(name in _DATA_DIR_FILES for name in names) or any(
        _is_partition_dir(fs, path, name) for name in names
    ):
        return list_data_dir(fs, path)
    if layout.parse_partition_dir(_name(path)) or layout.parse_marked_dir(_name(path)):
        return list_partition(fs, path)
    raise NotALogError(f"{path} holds neither segments nor partition directories; check the path")


def list_data_dir(fs: FileSystem, path: str) -> DataDir:
    partitions, marked, unknown = [], [], []
    for name in sorted(fs.list_dir(path), key=_by_number):
        if not fs.is_dir(f"{path}/{name}"):
            continue
        if layout.parse_marked_dir(name):
            marked.append(name)
        elif layout.parse_partition_dir(name):
            partitions.append(name)
        else:
            unknown.append(name)
    return DataDir(path, partitions, marked, unknown)


def _by_number(name: str) -> tuple[str, int, str]:
    """orders-2 comes before orders-10."""
    marked = layout.parse_marked_dir(name)
    found = marked[0] if marked else layout.parse_partition_dir(name)
    return (found.topic, found.partition, name) if found else (name, -1, name)


def list_partition(fs: FileSystem, path: str) -> Partition:
    name = _name(path)
    marked = layout.parse_marked_dir(name)
    found = Partition(path, name, marked[0] if marked else layout.parse_partition_dir(name))
    sizes: dict[int, dict[str, int]] = {}
    for file_name in sorted(fs.list_dir(path)):
        parsed = layout.parse_segment_file(file_name)
        if parsed is None:
            found.has_quarantine = found.has_quarantine or quarantine.is_pieces(file_name)
            found.unknown_files.append(file_name)
        elif parsed.marker == layout.QUARANTINE:
            found.unknown_files.append(file_name)
        elif parsed.marker:
            found.leftovers.append(file_name)
        elif parsed.base_offset > MAX_BASE_OFFSET:
            found.unknown_files.append(file_name)
        elif parsed.suffix == layout.SNAPSHOT:
            found.snapshots.append(parsed.base_offset)
        else:
            size = if_there(partial(fs.size, f"{path}/{file_name}"))
            if size is not None:
                sizes.setdefault(parsed.base_offset, {})[parsed.suffix] = size
    for base_offset, by_suffix in sorted(sizes.items()):
        if layout.LOG in by_suffix:
            found.segments.append(SegmentFiles(path, base_offset, by_suffix))
        else:
            found.orphans += [layout.segment_file(base_offset, suffix) for suffix in by_suffix]
    found.bases = [segment.base_offset for segment in found.segments]
    return found


def _file(fs: FileSystem, path: str) -> Target:
    name = _name(path)
    parsed = layout.parse_segment_file(name)
    if parsed is not None and parsed.suffix != layout.LOG:
        return SideFile(path, parsed.suffix)
    if parsed is not None and not parsed.marker and parsed.base_offset <= MAX_BASE_OFFSET:
        partition = list_partition(fs, _parent(path))
        partition.segments = [s for s in partition.segments if s.base_offset == parsed.base_offset]
        partition.whole = False
        return partition
    if name in (layout.LEADER_EPOCHS, layout.PARTITION_METADATA, layout.META_PROPERTIES, *OFFSET_CHECKPOINTS):
        return SideFile(path, name)
    # Any other file with batches is taken for a log: a marked one, a controller's snapshot, something cut out by hand.
    if parsed is None and not _holds_batches(fs, path):
        raise NotALogError(f"{path} is no log file: there is no batch of Kafka's in it; check the path")
    base_offset = parsed.base_offset if parsed is not None else 0
    segment = SegmentFiles(_parent(path), base_offset, {layout.LOG: fs.size(path)}, name)
    return Partition(_parent(path), name, None, [segment], whole=False)


def _holds_batches(fs: FileSystem, path: str) -> bool:
    file = fs.open(path)
    try:
        end = min(file.size(), _LOOKED_AT_BYTES)
        return find_batch(file, 0, end, 0, MAX_BASE_OFFSET) is not None
    finally:
        file.close()


def partitions_of(fs: FileSystem, target: Target) -> Iterator[Partition]:
    """The partitions of a target, listed one by one; those that vanish meanwhile are left out."""
    for partition in all_partitions_of(fs, target):
        if partition.unreadable is not None:
            raise partition.unreadable
        yield partition


def all_partitions_of(fs: FileSystem, target: Target) -> Iterator[Partition]:
    """As `partitions_of`, with those whose directories cannot be listed: one of them does not hide the others."""
    if isinstance(target, Partition):
        yield target
    elif isinstance(target, DataDir):
        for name in [*target.partitions, *target.marked]:
            path = f"{target.path}/{name}"
            try:
                partition = if_there(partial(list_partition, fs, path))
            except OSError as error:
                partition = Partition(path, name, layout.parse_partition_dir(name), unreadable=error)
            if partition is not None:
                yield partition


def open_if_there(fs: FileSystem, path: str) -> File | None:
    return if_there(partial(fs.open, path))


def read_if_there(fs: FileSystem, path: str) -> bytes | None:
    return if_there(partial(fs.read_bytes, path))


def read_or_tell(fs: FileSystem, path: str, findings: Findings) -> bytes | None:
    """What a small file holds; None if it is not there, and also if it cannot be read, which is then a finding."""
    try:
        return read_if_there(fs, path)
    except OSError as error:
        findings.unreadable(path, error)
        return None


def if_there(read: Callable[[], T]) -> T | None:
    """What `read` gives, or None if the file or directory is gone."""
    try:
        return read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_partition_dir(fs: FileSystem, path: str, name: str) -> bool:
    known = layout.parse_partition_dir(name) or layout.parse_marked_dir(name)
    return known is not None and fs.is_dir(f"{path}/{name}")


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
