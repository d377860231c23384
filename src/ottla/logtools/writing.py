"""What the writing commands share: the lock, setting bytes aside before they go, and new files in old places.

Nothing is overwritten or cut before what was there has been copied into a `.quarantine` file and synced. Kafka and
ottla load `.log`, index and snapshot files by their endings and leave `.quarantine` files alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ottla.errors import CorruptCheckpointError, LogDirLockedError
from ottla.logtools.source import OFFSET_CHECKPOINTS, SegmentFiles
from ottla.records import batch
from ottla.storage import checkpoint, layout
from ottla.storage.checkpoint import replace_file
from ottla.storage.fs import File, FileSystem
from ottla.storage.layout import TopicPartition

_CHUNK_BYTES = 4 << 20


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


def set_aside(fs: FileSystem, segment: SegmentFiles, edits: list[Edit]) -> str:
    """Copy pieces of a log into its quarantine file, one behind the other, and list them in a file beside it."""
    path = f"{segment.directory}/{layout.segment_file(segment.base_offset, layout.QUARANTINE)}"
    source = fs.open(segment.path(layout.LOG))
    target = fs.open(path, create=True)
    lines = []
    try:
        at = target.size()
        for edit in edits:
            size = edit.end - edit.position
            lines.append({"at": at, "size": size, "position": edit.position, "why": edit.meaning})
            _copy(source, edit.position, edit.end, target, at)
            at += size
        target.sync()
    finally:
        source.close()
        target.close()
    listing = path + ".json"
    known = fs.read_bytes(listing) if fs.exists(listing) else b""
    replace_file(fs, listing, known + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def set_file_aside(fs: FileSystem, path: str) -> None:
    """Copy a whole file that is about to be replaced; the zeros at an index's end are not worth it."""
    if fs.exists(path):
        replace_file(fs, path + layout.QUARANTINE, fs.read_bytes(path).rstrip(b"\0"))


def rewrite_log(fs: FileSystem, segment: SegmentFiles, edits: list[Edit]) -> None:
    """Write the log anew without the pieces that are dropped, and put it in the old one's place.

    Its indexes go first: without them a broker builds new ones, with wrong ones it would believe them.
    """
    set_aside(fs, segment, edits)
    for suffix in (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX):
        if fs.exists(segment.path(suffix)):
            set_file_aside(fs, segment.path(suffix))
            fs.unlink(segment.path(suffix))
    fs.sync_dir(segment.directory)
    path = segment.path(layout.LOG)
    source = fs.open(path)
    target = fs.open(path + layout.TEMPORARY, create=True)
    try:
        target.truncate(0)
        _write_edited(source, target, sorted(edits, key=lambda edit: edit.position))
        target.sync()
    finally:
        source.close()
        target.close()
    fs.rename(path + layout.TEMPORARY, path)
    fs.sync_dir(segment.directory)


def _write_edited(source: File, target: File, edits: list[Edit]) -> None:
    done = at = 0
    for edit in edits:
        at = _copy(source, done, edit.position, target, at)
        done = edit.end
        if not edit.drops:
            _write_patched(source, target, edit, at)
            at += edit.end - edit.position
    _copy(source, done, source.size(), target, at)


def _write_patched(source: File, target: File, edit: Edit, at: int) -> None:
    whole = bytearray(source.pread(edit.end - edit.position, edit.position))
    base_offset, _, leader_epoch, *_ = batch.parse_header(whole)
    base_offset = base_offset if edit.base_offset is None else edit.base_offset
    leader_epoch = leader_epoch if edit.leader_epoch is None else edit.leader_epoch
    batch.patch_offsets(whole, 0, base_offset, leader_epoch)
    target.pwrite(whole, at)


def _copy(source: File, start: int, end: int, target: File, at: int) -> int:
    """Returns the position behind what was copied."""
    while start < end:
        data = source.pread(min(_CHUNK_BYTES, end - start), start)
        if not data:
            break
        target.pwrite(data, at)
        start += len(data)
        at += len(data)
    return at


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
