"""What the writing commands share: the lock, setting bytes aside before they go, and new files in old places.

Nothing is overwritten or cut before what was there has been copied into a `.quarantine` file and synced. Kafka and
ottla load `.log`, index and snapshot files by their endings and leave `.quarantine` files alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ottla.errors import CorruptCheckpointError, LogDirLockedError, StorageError
from ottla.logtools.listing import OFFSET_CHECKPOINTS, SegmentFiles
from ottla.names import TopicPartition
from ottla.records import batch
from ottla.storage import checkpoint, layout, quarantine
from ottla.storage.fs import File, FileSystem

REWRITTEN = ".rewritten"  # complete, and about to be written over the log that it was made from


class NoSpaceError(StorageError):
    """There is no room for what must be written. The log is as it was, or the next run goes on from there."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a log file that is taken out, or a batch whose base offset or leader epoch is put right."""

    position: int
    end: int
    meaning: str
    base_offset: int | None = None
    leader_epoch: int | None = None

    @property
    def drops(self) -> bool:
        return self.base_offset is None and self.leader_epoch is None


def data_dir_of(fs: FileSystem, partition_path: str) -> str | None:
    """The data directory that a partition lies in, if it lies in one."""
    parent = partition_path.rpartition("/")[0] or "."
    marks = (layout.META_PROPERTIES, layout.LOCK, *OFFSET_CHECKPOINTS)
    return parent if any(fs.exists(f"{parent}/{name}") for name in marks) else None


@contextmanager
def locked(fs: FileSystem, data_dir: str | None) -> Iterator[None]:
    """Hold the lock that brokers take; LogDirLockedError while one runs."""
    if data_dir is None:
        yield
        return
    path = f"{data_dir}/{layout.LOCK}"
    was_there = fs.exists(path)
    lock = fs.lock(path)
    if lock is None:
        raise LogDirLockedError(f"{data_dir} is in use by a running broker, so nothing is written there")
    try:
        yield
    finally:
        if not was_there:
            fs.unlink(path)
        lock.close()


def quarantine_path(segment: SegmentFiles, aside: str | None) -> str:
    """The file for pieces of a log: beside it, or in a directory on another disk."""
    name = quarantine.file_name(segment.base_offset)
    return f"{segment.directory}/{name}" if aside is None else _aside(segment.directory, name, aside)


def _aside(directory: str, name: str, aside: str) -> str:
    return f"{aside}/{directory.rpartition('/')[2]}.{name}"


def set_aside(fs: FileSystem, segment: SegmentFiles, edits: list[Edit], aside: str | None = None) -> str:
    """Copy what edits touch into the log's quarantine file."""
    path = quarantine_path(segment, aside)
    pieces = [quarantine.Piece(edit.position, edit.end, edit.meaning) for edit in edits]
    quarantine.keep(fs, segment.path(layout.LOG), pieces, path)
    return path


def copy_aside(fs: FileSystem, path: str, aside: str | None = None) -> None:
    """Copy a small file that is about to be replaced."""
    if fs.exists(path):
        directory, _, name = path.rpartition("/")
        target = path if aside is None else _aside(directory, name, aside)
        quarantine.replace_or_undo(fs, target + layout.QUARANTINE, fs.read_bytes(path).rstrip(b"\0"))


def move_aside(fs: FileSystem, path: str, aside: str | None = None) -> None:
    """Take away a file that follows from the log: a broker builds it anew where it is missing. This takes no space."""
    if aside is not None:
        copy_aside(fs, path, aside)
        _remove(fs, path)
    elif fs.exists(path):
        fs.rename(path, path + layout.QUARANTINE)


def _remove(fs: FileSystem, path: str) -> None:
    if fs.exists(path):
        fs.unlink(path)


def rewrite_log(fs: FileSystem, segment: SegmentFiles, edits: list[Edit], aside: str | None = None) -> None:
    """Write the log anew without the pieces that are dropped, and put it in the old one's place.

    First all that needs space: where it is not there, the log is as it was. Then its indexes go: without them a broker
    builds new ones, with wrong ones it would believe them.
    """
    set_aside(fs, segment, edits, aside)
    path = segment.path(layout.LOG)
    name = path.rpartition("/")[2]
    written = (path if aside is None else _aside(segment.directory, name, aside)) + layout.TEMPORARY
    try:
        _write_new(fs, path, written, sorted(edits, key=lambda edit: edit.position))
    except OSError:
        _remove(fs, written)
        raise
    for suffix in (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX):
        move_aside(fs, segment.path(suffix), aside)
    fs.sync_dir(segment.directory)
    if aside is None:
        fs.rename(written, path)
        fs.sync_dir(segment.directory)
    else:
        complete = written.removesuffix(layout.TEMPORARY) + REWRITTEN
        fs.rename(written, complete)
        fs.sync_dir(aside)
        put_back(fs, complete, path)


def put_back(fs: FileSystem, source_path: str, path: str) -> None:
    """Write a log that was written anew on another disk over the old one, which is at least as long."""
    source, target = fs.open(source_path), fs.open(path, write=True)
    try:
        target.truncate(quarantine.copy_bytes(source, 0, source.size(), target, 0))
        target.sync()
    finally:
        source.close()
        target.close()
    fs.unlink(source_path)


def finish_rewrites(fs: FileSystem, directory: str, aside: str | None) -> None:
    """Put back what an interrupted repair had ready in `aside`."""
    name = directory.rpartition("/")[2] + "."
    for file in fs.list_dir(aside) if aside is not None else []:
        if file.startswith(name) and file.endswith(REWRITTEN):
            put_back(fs, f"{aside}/{file}", f"{directory}/{file.removeprefix(name).removesuffix(REWRITTEN)}")


def _write_new(fs: FileSystem, path: str, written: str, edits: list[Edit]) -> None:
    source, target = fs.open(path), fs.open(written, create=True)
    try:
        target.truncate(0)
        _write_edited(source, target, edits)
        target.sync()
    finally:
        source.close()
        target.close()


def _write_edited(source: File, target: File, edits: list[Edit]) -> None:
    done = at = 0
    for edit in edits:
        at = quarantine.copy_bytes(source, done, edit.position, target, at)
        done = edit.end
        if not edit.drops:
            _write_patched(source, target, edit, at)
            at += edit.end - edit.position
    quarantine.copy_bytes(source, done, source.size(), target, at)


def _write_patched(source: File, target: File, edit: Edit, at: int) -> None:
    whole = bytearray(source.pread(edit.end - edit.position, edit.position))
    base_offset, _, leader_epoch, *_ = batch.parse_header(whole)
    base_offset = base_offset if edit.base_offset is None else edit.base_offset
    leader_epoch = leader_epoch if edit.leader_epoch is None else edit.leader_epoch
    batch.patch_offsets(whole, 0, base_offset, leader_epoch)
    target.pwrite(whole, at)


def bound_checkpoints(
    fs: FileSystem,
    data_dir: str | None,
    partition: TopicPartition | None,
    start_offset: int | None,
    end_offset: int,
) -> None:
    """After a log was cut: no checkpoint may point past its end; `start_offset` becomes the log's start if given."""
    if data_dir is None or partition is None:
        return
    for name in OFFSET_CHECKPOINTS:
        path = f"{data_dir}/{name}"
        try:
            offsets = checkpoint.read_offsets(fs, path)
        except CorruptCheckpointError:
            if start_offset is not None:
                raise  # it could not be noted
            continue  # a repair of the data directory writes it anew; until then a broker reads the logs in full
        changed = dict(offsets)
        if partition in offsets:
            changed[partition] = min(offsets[partition], end_offset)
        if name == layout.LOG_START_OFFSETS and start_offset is not None:
            changed[partition] = start_offset
        if changed != offsets:
            checkpoint.write_offsets(fs, path, changed)
