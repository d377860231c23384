"""Draws up the picture of a log: what each segment holds, without reading it through.

Headers at a segment's beginning and behind its last index entry, the last time-index entry and the newest snapshot
say nearly everything. What lies between is read only when asked for (`check`). What cannot be read is part of the
picture, and ends nothing.
"""

from __future__ import annotations

from functools import partial

from ottla.errors import CorruptionError
from ottla.logtools import side_files
from ottla.logtools.listing import DataDir, Partition, if_there, list_partition, read_if_there
from ottla.logtools.show.pictures import DAMAGE, GAP, Break, LogPicture, why
from ottla.logtools.show.segment import SegmentLook
from ottla.logtools.side_files import BadSideFileError
from ottla.names import TopicPartition
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.producers import snapshot_file as producer_snapshot


class Artist:
    """Makes pictures of the logs of one directory. What the directory says of them is read before they are."""

    def __init__(self, fs: FileSystem, data_dir: str, *, check: bool = False) -> None:
        self._fs = fs
        self._check = check
        self._recovery_points = _recovery_points(fs, data_dir)

    def picture_of(self, data_dir: DataDir, name: str) -> LogPicture | None:
        """Of the directory with this name; None if it is gone meanwhile."""
        path = f"{data_dir.path}/{name}"
        try:
            partition = if_there(partial(list_partition, self._fs, path))
        except OSError as error:
            return LogPicture(path, name, None, unreadable=[why(path, error)])
        return None if partition is None else self.picture(partition)

    def picture(self, partition: Partition) -> LogPicture:
        found = LogPicture(partition.path, partition.name, None)
        found.other_files = [*partition.leftovers, *partition.orphans]
        for segment in partition.segments:
            SegmentLook(self._fs, segment, found, check=self._check).draw(partition.next_base(segment))
            if found.segments and found.segments[-1].base_offset == segment.base_offset:
                found.segments[-1].has_snapshot = segment.base_offset in partition.snapshots
        _find_gaps(found, self._end_known(partition) if partition.whole else None)
        found.breaks.sort(key=lambda one: (one.first_offset or 0, one.file))
        if partition.whole:
            for load in (_load_epochs, _load_topic_id, _load_producers):
                try:
                    load(self._fs, partition, found)
                except OSError as error:
                    found.unreadable.append(why(partition.path, error))
        return found

    def _end_known(self, partition: Partition) -> int | None:
        """What the recovery point says that the log reached."""
        if partition.topic_partition is None or layout.parse_marked_dir(partition.name):
            return None
        return self._recovery_points.get(partition.topic_partition)


def _recovery_points(fs: FileSystem, data_dir: str) -> dict[TopicPartition, int]:
    try:
        data = read_if_there(fs, f"{data_dir}/{layout.RECOVERY_POINTS}")
        return {
            TopicPartition(topic, n): offset for topic, n, offset, _ in side_files.parse_offsets(data or b"")
        }
    except (OSError, BadSideFileError):  # `verify` has a word for it
        return {}


def _find_gaps(log: LogPicture, reached: int | None) -> None:
    """Between segments, and between the last one and what the log is known to have reached."""
    expected, time, before = None, None, ""
    for segment in log.segments:
        if segment.first_offset is None or segment.last_offset is None:
            continue
        if expected is not None and segment.first_offset > expected:
            meaning = f"between {before} and {segment.file}: compacted away, or lost"
            last = segment.first_offset - 1
            log.breaks.append(
                Break(GAP, segment.file, meaning, expected, last, time, segment.first_timestamp)
            )
        elif expected is not None and segment.first_offset < expected:
            meaning = f"these offsets are in {before} too"
            log.breaks.append(
                Break(DAMAGE, segment.file, meaning, segment.first_offset, expected - 1, time, time)
            )
        expected, time, before = segment.last_offset + 1, segment.max_timestamp, segment.file
    end = expected if expected is not None else log.segments[-1].base_offset if log.segments else 0
    if reached is not None and reached > end:
        meaning = f"the log reached offset {reached} once (its recovery point), and ends before"
        log.breaks.append(Break(GAP, before, meaning, end, reached - 1, time, time))


def _load_epochs(fs: FileSystem, partition: Partition, found: LogPicture) -> None:
    data = read_if_there(fs, f"{partition.path}/{layout.LEADER_EPOCHS}")
    try:
        found.epochs = side_files.parse_epochs(data)[0] if data is not None else []
    except BadSideFileError:  # `verify` has a word for it
        found.epochs = []


def _load_topic_id(fs: FileSystem, partition: Partition, found: LogPicture) -> None:
    data = read_if_there(fs, f"{partition.path}/{layout.PARTITION_METADATA}")
    try:
        found.topic_id = str(side_files.parse_topic_id(data)) if data is not None else None
    except BadSideFileError:
        found.topic_id = None


def _load_producers(fs: FileSystem, partition: Partition, found: LogPicture) -> None:
    """From the newest snapshot that can be read."""
    for offset in reversed(partition.snapshots):
        path = f"{partition.path}/{layout.segment_file(offset, layout.SNAPSHOT)}"
        data = read_if_there(fs, path)
        try:
            if data is not None:
                found.producers = producer_snapshot.decode(data, path)
                found.snapshot_offset = offset
                return
        except CorruptionError:
            continue
