"""Finishes or undoes what a crash interrupted in a partition directory, then lists its segments.

`.deleted` files go. `.cleaned` files go, and with them every `.swap` at or above the lowest of them: that swap was
not complete. Any other `.swap` is complete and takes the place of what it replaces. An index without its log goes.
"""

from __future__ import annotations

from ottla.config import LogConfig
from ottla.records import kernel
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.layout import SegmentFile, segment_file
from ottla.storage.log.segment import Segment
from ottla.storage.scan import Scan


def clean_up(
    fs: FileSystem, directory: str, config: LogConfig, now_ms: int, files: list[SegmentFile] | None = None
) -> list[Segment]:
    """The segments of the directory, after all leftovers are dealt with. `files`: those in it, where they are known."""
    if files is None:
        files = _segment_files(fs, directory)
    swaps = _undo_incomplete(fs, directory, files)
    if swaps:
        _finish_swaps(fs, directory, swaps)
        files = _segment_files(fs, directory)
    plain = [file for file in files if not file.marker]
    bases = {file.base_offset for file in plain if file.suffix == layout.LOG}
    for file in plain:
        if file.base_offset not in bases and file.suffix != layout.SNAPSHOT:
            fs.unlink(f"{directory}/{segment_file(*file)}")
    return [Segment(fs, directory, base_offset, config, created_ms=now_ms) for base_offset in sorted(bases)]


def _segment_files(fs: FileSystem, directory: str) -> list[SegmentFile]:
    return layout.segment_files(fs.list_dir(directory))


def _undo_incomplete(fs: FileSystem, directory: str, files: list[SegmentFile]) -> list[SegmentFile]:
    """Remove what goes; the swaps that are complete remain."""
    lowest_cleaned = min((f.base_offset for f in files if f.marker == layout.CLEANED), default=None)
    swaps = []
    for file in sorted(files, reverse=True):
        is_swap = file.marker == layout.SWAP
        if is_swap and (lowest_cleaned is None or file.base_offset < lowest_cleaned):
            swaps.append(file)
        elif is_swap or file.marker in (layout.DELETED, layout.TEMPORARY):
            fs.unlink(f"{directory}/{segment_file(*file)}")
    # Last, and only once its swaps are durably gone: it is what says that they are not complete.
    if lowest_cleaned is not None:
        fs.sync_dir(directory)
        for file in files:
            if file.marker == layout.CLEANED:
                fs.unlink(f"{directory}/{segment_file(*file)}")
    return swaps


def _finish_swaps(fs: FileSystem, directory: str, swaps: list[SegmentFile]) -> None:
    logs = [file for file in swaps if file.suffix == layout.LOG]
    if logs:
        first = min(file.base_offset for file in logs)
        end = max(_end_offset(fs, directory, file) for file in logs)
        for file in _segment_files(fs, directory):
            if not file.marker and first <= file.base_offset < end and file.suffix != layout.SNAPSHOT:
                fs.unlink(f"{directory}/{segment_file(*file)}")
    for file in sorted(swaps, reverse=True):
        source = f"{directory}/{segment_file(*file)}"
        fs.rename(source, f"{directory}/{segment_file(file.base_offset, file.suffix)}")
    fs.sync_dir(directory)


def _end_offset(fs: FileSystem, directory: str, log: SegmentFile) -> int:
    """One past the last offset in a swap's log; past its base at least."""
    opened = fs.open(f"{directory}/{segment_file(*log)}")
    end = log.base_offset + 1
    for window in Scan(opened, opened.size(), flags=0):
        end = window.rows[(window.count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1
    opened.close()
    return end
