"""What an import is adding to logs that are there already, so that one that was killed can be undone.

The file names, by partition, the base offsets of new segments; it is there from before the first of them gets its place
until all have it and the checkpoints know. Whoever opens the directory next takes out what is listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem

FILE = "import.journal"
# What an import moves on. The log comes first here: without it an index means nothing.
CHECKPOINTS = (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS)
_SUFFIXES = (layout.LOG, layout.INDEX, layout.TIME_INDEX)


def begin(fs: FileSystem, data_dir: str, added: Mapping[str, list[int]]) -> None:
    """Note, by the names of partition directories, the base offsets of segments that are about to come."""
    checkpoint.replace_file(fs, f"{data_dir}/{FILE}", json.dumps(added).encode())


def end(fs: FileSystem, data_dir: str) -> None:
    fs.unlink(f"{data_dir}/{FILE}")
    fs.sync_dir(data_dir)


def undo(fs: FileSystem, data_dir: str) -> None:
    """Put everything back as it was before an import that did not come to its end."""
    if not fs.exists(f"{data_dir}/{FILE}"):
        return
    added: dict[str, list[int]] = json.loads(fs.read_bytes(f"{data_dir}/{FILE}"))
    for name, bases in added.items():
        directory = f"{data_dir}/{name}"
        if fs.exists(directory):
            _remove(fs, directory, bases)
    ends = {layout.parse_partition_dir(name): min(bases) for name, bases in added.items() if bases}
    for name in CHECKPOINTS:
        path = f"{data_dir}/{name}"
        if fs.exists(path):
            known = checkpoint.read_offsets(fs, path)
            bounded = {key: min(offset, ends.get(key, offset)) for key, offset in known.items()}
            checkpoint.write_offsets(fs, path, bounded)
    end(fs, data_dir)


def _remove(fs: FileSystem, directory: str, bases: list[int]) -> None:
    for base in bases:
        for suffix in _SUFFIXES:
            path = f"{directory}/{layout.segment_file(base, suffix)}"
            if fs.exists(path):
                fs.unlink(path)
    # An empty segment says where the log ends: it may have taken the place of one.
    fs.open(f"{directory}/{layout.segment_file(min(bases), layout.LOG)}", create=True).close()
    fs.sync_dir(directory)
