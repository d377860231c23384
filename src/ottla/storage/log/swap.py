"""Puts new segments in the place of old ones so that a crash at any point leaves the one set or the other.

New segments are written with the marker `.cleaned`. Once they are on disk they become `.swap`: from then on a crash
is finished at the next start, before it is undone. Then the old ones become `.deleted` and the new ones lose their
marker. Renames go from the highest base offset down, so that a `.cleaned` file that is left says: not complete, drop
every `.swap` from here on.
"""

from __future__ import annotations

from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.log.segment import Segment


def swap_in(fs: FileSystem, directory: str, new: list[Segment], old: list[Segment]) -> None:
    """`new` (marked .cleaned, complete, indexes trimmed) replaces `old`, which is left marked .deleted."""
    descending = sorted(new, key=lambda segment: segment.base_offset, reverse=True)
    for segment in descending:
        segment.sync()
    fs.sync_dir(directory)
    for segment in descending:
        segment.rename(layout.SWAP)
    fs.sync_dir(directory)
    for segment in old:
        segment.rename(layout.DELETED)
    for segment in descending:
        segment.rename("")
    fs.sync_dir(directory)
