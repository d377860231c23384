"""Changes one log that no broker uses: new indexes, a part of it dropped, or compacted.

Each takes a partition, says what it would do, and does it when told to. A damaged log is refused: the storage engine
would cut it at the first bad batch, and that is for `repair` to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from ottla.config import LogConfig
from ottla.errors import CorruptRecordError, OffsetOutOfRangeError, StorageError
from ottla.logtools import listing
from ottla.logtools.derive import Derived, derive
from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.listing import Partition
from ottla.logtools.writing import NoSpaceError, bound_checkpoints, data_dir_of
from ottla.names import TopicPartition
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout
from ottla.storage.checkpoint import replace_file
from ottla.storage.cleaning import compaction
from ottla.storage.fs import FileSystem, is_out_of_space
from ottla.storage.log import retention, truncation
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.loading import load_log

Progress = Callable[[int], None]
_KEEP_ALL = LogConfig(retention_ms=-1, retention_bytes=-1)
_MAP_BYTES = 128 << 20
_MAP_LOAD_FACTOR = 0.9


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What a log holds before and after."""

    start_offset: int
    end_offset: int
    size: int
    segments: int


def reindex(
    fs: FileSystem,
    partition: Partition,
    *,
    interval: int,
    write: bool,
    on_progress: Progress = lambda _: None,
) -> list[str]:
    """Build all indexes and snapshots from the log; the paths that are (or would be) new or different."""
    derived = derive(fs, partition, interval=interval, on_progress=on_progress)
    refuse_damaged(partition, derived)
    changed = [path for path, data in derived.files.items() if differs(fs, path, data)]
    if write:
        for path in changed:
            replace_file(fs, path, derived.files[path])
    return changed


def refuse_damaged(partition: Partition, derived: Derived) -> None:
    """Only a torn tail may be passed over."""
    for segment, damage in derived.damages:
        if not damage.is_tail or partition.next_base(segment) is not None:
            raise _damaged(f"{segment.path(layout.LOG)} at position {damage.position}: {damage.meaning}")


def differs(fs: FileSystem, path: str, data: bytes) -> bool:
    """Whether a file does not hold what it should; the zeros at an index's end do not count."""
    return not fs.exists(path) or fs.read_bytes(path).rstrip(b"\0") != data.rstrip(b"\0")


def _damaged(where: str) -> CorruptRecordError:
    return CorruptRecordError(f"{where}; run `ottla log repair` first")


@contextmanager
def open_log(
    fs: FileSystem, partition: Partition, runtime: Runtime, config: LogConfig = _KEEP_ALL
) -> Iterator[Log]:
    """The log in the storage engine, closed cleanly afterwards."""
    name = partition.topic_partition
    if name is None:
        raise StorageError(
            f"{partition.path} is not named <topic>-<partition>; rename the directory, then try again"
        )
    derived = derive(fs, partition)
    for segment, damage in derived.damages:
        raise _damaged(f"{segment.path(layout.LOG)} at position {damage.position}: {damage.meaning}")
    data_dir = data_dir_of(fs, partition.path)
    log_dir = LogDir(fs, data_dir or partition.path.rpartition("/")[0] or ".")
    start_offset = read_offset(fs, data_dir, layout.LOG_START_OFFSETS, name) or 0
    log = load_log(
        log_dir,
        partition.path,
        name,
        config,
        runtime,
        clean=True,
        start_offset=start_offset,
        may_have_gaps=True,
    )
    try:
        log.raise_high_watermark(log.end_offset)
        yield log
        log.close()
    except BaseException:
        log.abandon()
        raise


def read_offset(fs: FileSystem, data_dir: str | None, file: str, partition: TopicPartition) -> int | None:
    return None if data_dir is None else checkpoint.read_offsets(fs, f"{data_dir}/{file}").get(partition)


def first_offset_at(fs: FileSystem, partition: Partition, timestamp: int) -> int | None:
    """The first offset with that timestamp or a later one."""
    for found in dump_records(fs, partition, Query(from_ms=timestamp)):
        if isinstance(found, FoundDamage):
            raise _damaged(f"{found.segment.path(layout.LOG)} at position {found.damage.position}")
        return found[1].offset
    return None


def measure(fs: FileSystem, partition: Partition) -> Trimmed:
    """What the log holds now."""
    listed = listing.list_partition(fs, partition.path)
    derived = derive(fs, listed)
    start = listed.segments[0].base_offset if listed.segments else 0
    if partition.topic_partition is not None:
        data_dir = data_dir_of(fs, partition.path)
        start = max(
            start, read_offset(fs, data_dir, layout.LOG_START_OFFSETS, partition.topic_partition) or 0
        )
    return Trimmed(start, derived.end_offset, listed.size, len(listed.segments))


def trim(
    fs: FileSystem, partition: Partition, runtime: Runtime, *, before: int | None, after: int | None
) -> None:
    """Drop what lies below `before` and above `after`. A batch that holds `after` stays whole."""
    try:
        _trim(fs, partition, runtime, before, after)
    except (OSError, StorageError) as error:
        if not is_out_of_space(error):
            raise
        if not _make_room(fs, partition, before, after):
            raise NoSpaceError(
                f"the disk of {partition.path} is full, and trim needs a block for its checkpoints; free some, or drop"
                " whole segments"
            ) from error
        _trim(fs, listing.list_partition(fs, partition.path), runtime, before, after)


def _trim(
    fs: FileSystem, partition: Partition, runtime: Runtime, before: int | None, after: int | None
) -> None:
    with open_log(fs, partition, runtime) as log:
        if before is not None and before > log.end_offset:
            raise OffsetOutOfRangeError(
                f"{before} lies past the log's end {log.end_offset}; choose an offset below it"
            )
        end = log.end_offset if after is None else min(_end_of_batch(log, after), log.end_offset)
        start = None if before is None else min(before, end)
        # First what a start believes: a log that is longer than its checkpoints say has lost nothing.
        is_inside = start is not None and start > log.segments.first.base_offset
        data_dir = data_dir_of(fs, partition.path)
        kept_start = start if is_inside else None
        write_points = partial(bound_checkpoints, fs, data_dir, partition.topic_partition, kept_start, end)
        if after is not None:
            truncation.truncate_to(log, end, write_points)
        write_points()  # where nothing was cut at the end
        if start is not None:
            log.raise_high_watermark(log.end_offset)
            log.raise_start_offset(start)
            retention.apply(log, runtime.now_ms())


def _make_room(fs: FileSystem, partition: Partition, before: int | None, after: int | None) -> bool:
    """Remove the segments that go as a whole, from the ends of the log inwards; whether there were any.

    Checkpoints come second here: should this be interrupted, the log is short of what they say, and the same trim again
    puts that right.
    """
    listed = listing.list_partition(fs, partition.path)
    if before is not None and before > derive(fs, listed).end_offset:
        return False
    below = [s for s in listed.segments[:-1] if before is not None and (listed.next_base(s) or 0) <= before]
    above = [s for s in listed.segments[1:] if after is not None and s.base_offset > after]
    for segment in [*below, *reversed(above)]:
        for suffix in (layout.LOG, layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX, layout.SNAPSHOT):
            if fs.exists(segment.path(suffix)):
                fs.unlink(segment.path(suffix))
        fs.sync_dir(partition.path)
    stale = [offset for offset in listed.snapshots if after is not None and offset > after + 1]
    for offset in stale:
        if fs.exists(path := f"{partition.path}/{layout.segment_file(offset, layout.SNAPSHOT)}"):
            fs.unlink(path)
    return bool(below or above or stale)


def _end_of_batch(log: Log, offset: int) -> int:
    """One past the last offset of the batch that holds `offset`, or of the one before it in a gap."""
    if offset < log.segments.first.base_offset:
        return offset + 1
    located = log.segments.from_offset(offset)[0].locate(offset)
    return located.last_offset + 1 if located is not None and located.base_offset <= offset else offset + 1


def compact(fs: FileSystem, partition: Partition, runtime: Runtime, config: LogConfig) -> int | None:
    """Keep only the newest record of each key; the new first dirty offset, or None if there was nothing to do."""
    cleaned_to = compact_log(fs, partition, runtime, config)
    if cleaned_to is not None:
        note_cleaned(fs, {partition.path: cleaned_to})
    return cleaned_to


def compact_log(fs: FileSystem, partition: Partition, runtime: Runtime, config: LogConfig) -> int | None:
    """The part of a compaction that lies in the partition's own directory."""
    with open_log(fs, partition, runtime, config) as log:
        return compaction.compact(
            log,
            None,
            runtime.now_ms(),
            runtime,
            map_bytes=_MAP_BYTES,
            load_factor=_MAP_LOAD_FACTOR,
            force=True,
        )


def note_cleaned(fs: FileSystem, cleaned: Mapping[str, int]) -> None:
    """Write down, by the path of a partition, up to where it is clean, in its data directory."""
    for path, offset in cleaned.items():
        data_dir, name = data_dir_of(fs, path), layout.parse_partition_dir(path.rpartition("/")[2])
        if data_dir is not None and name is not None:
            offsets = f"{data_dir}/{layout.CLEANER_OFFSETS}"
            checkpoint.write_offsets(fs, offsets, {**checkpoint.read_offsets(fs, offsets), name: offset})
