"""The producer snapshots of one partition directory: taking, finding, loading and removing them.

A snapshot is taken at the base offset of every new segment, so that after a crash only the segments from the
recovery point on have to be read again. Its file name is the offset up to which it holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.errors import CorruptSnapshotError
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.layout import SegmentFile
from ottla.storage.producers import snapshot_file as producer_snapshot
from ottla.storage.producers.state import ProducerState


def path_of(directory: str, offset: int) -> str:
    return f"{directory}/{layout.segment_file(offset, layout.SNAPSHOT)}"


def take(fs: FileSystem, directory: str, producers: ProducerState) -> None:
    """Write the state down at its end offset. Not synced: whoever moves the recovery point past it does that."""
    file = fs.open(path_of(directory, producers.end_offset), create=True)
    try:
        data = producer_snapshot.encode(producers.snapshot())
        file.pwrite(data, 0)
        file.truncate(len(data))
    finally:
        file.close()


def offsets(fs: FileSystem, directory: str) -> list[int]:
    """The offsets that have a snapshot, ascending."""
    return taken_in(layout.segment_files(fs.list_dir(directory)))


def taken_in(files: Iterable[SegmentFile]) -> list[int]:
    """The same from what lies in the directory."""
    return sorted(file.base_offset for file in files if file.suffix == layout.SNAPSHOT and not file.marker)


def load_latest(
    fs: FileSystem,
    directory: str,
    producers: ProducerState,
    start_offset: int,
    end_offset: int,
    now_ms: int,
    taken: list[int] | None = None,
) -> None:
    """Start from the newest readable snapshot in (start_offset, end_offset]; from nothing at `start_offset` otherwise.

    Snapshots that cannot be read are removed: what they said is rebuilt from the log. `taken`: what `offsets` says,
    where that is known; kept up to date.
    """
    taken = offsets(fs, directory) if taken is None else taken
    for offset in reversed(list(taken)):
        if start_offset < offset <= end_offset:
            path = path_of(directory, offset)
            try:
                producers.load(producer_snapshot.decode(fs.read_bytes(path), path), offset, now_ms)
            except CorruptSnapshotError:
                fs.unlink(path)
                taken.remove(offset)
                continue
            return
    producers.clear(start_offset)


def delete_at(fs: FileSystem, directory: str, offset: int) -> None:
    """The snapshot of a segment that is gone, if there is one."""
    if fs.exists(path_of(directory, offset)):
        fs.unlink(path_of(directory, offset))


def delete_after(fs: FileSystem, directory: str, offset: int, taken: list[int] | None = None) -> None:
    """Snapshots of a state that a truncation has undone."""
    for taken_at in offsets(fs, directory) if taken is None else taken:
        if taken_at > offset:
            fs.unlink(path_of(directory, taken_at))


def delete_before(fs: FileSystem, directory: str, offset: int) -> None:
    """Snapshots of segments that are gone."""
    for taken_at in offsets(fs, directory):
        if taken_at < offset:
            fs.unlink(path_of(directory, taken_at))


def delete_strays(fs: FileSystem, directory: str, bases: list[int], taken: list[int]) -> list[int]:
    """Keep those at a segment's base, and the largest one behind the last segment (a clean stop leaves it)."""
    keep = set(bases)
    if taken and taken[-1] > max(bases, default=-1):
        keep.add(taken[-1])
    for offset in taken:
        if offset not in keep:
            fs.unlink(path_of(directory, offset))
    return [offset for offset in taken if offset in keep]
