"""Keeps bytes of a log that are about to be cut: in `<base offset>.quarantine`, listed in the `.json` beside it.

Each line of the listing has `at` and `size` in the quarantine file, the `position` in the log, and `why`. Kafka and the
loader leave both files alone. `ottla log repair` writes the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from ottla.storage import layout
from ottla.storage.checkpoint import replace_file
from ottla.storage.fs import File, FileSystem

LISTING = ".json"
_CHUNK_BYTES = 4 << 20


class Piece(NamedTuple):
    """A part of a log file that goes."""

    position: int
    end: int
    why: str


def file_name(base_offset: int) -> str:
    return layout.segment_file(base_offset, layout.QUARANTINE)


def is_pieces(name: str) -> bool:
    """Whether a file holds pieces of a log; others that end so were set aside whole, and leave no hole."""
    return name.endswith(layout.QUARANTINE) and name.removesuffix(layout.QUARANTINE).isdigit()


def keep(fs: FileSystem, log_path: str, pieces: Iterable[Piece], path: str) -> None:
    """Copy pieces of a log into its quarantine file `path`, one behind the other; they are on disk when this returns.

    Where there is no room for them, the quarantine file is as it was.
    """
    source, target = fs.open(log_path), fs.open(path, create=True)
    lines = []
    known = at = target.size()
    try:
        for piece in pieces:
            size = piece.end - piece.position
            lines.append({"at": at, "size": size, "position": piece.position, "why": piece.why})
            at = copy_bytes(source, piece.position, piece.end, target, at)
        target.sync()
        listing = path + LISTING
        listed = fs.read_bytes(listing) if fs.exists(listing) else b""
        replace_or_undo(fs, listing, listed + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    except OSError:
        target.truncate(known)  # a full disk gets its blocks back
        raise
    finally:
        source.close()
        target.close()


def replace_or_undo(fs: FileSystem, path: str, data: bytes) -> None:
    """Replace a small file; where that fails, nothing of the new one stays and takes up room."""
    try:
        replace_file(fs, path, data)
    except OSError:
        if fs.exists(path + layout.TEMPORARY):
            fs.unlink(path + layout.TEMPORARY)
        raise


def carry(fs: FileSystem, directory: str, target: str) -> None:
    """Copy all that is kept aside in a partition's directory, when its log moves to another one."""
    for name in fs.list_dir(directory):
        if name.endswith((layout.QUARANTINE, layout.QUARANTINE + LISTING)):
            kept, copy = fs.open(f"{directory}/{name}"), fs.open(f"{target}/{name}", create=True)
            try:
                copy.truncate(0)
                copy_bytes(kept, 0, kept.size(), copy, 0)
                copy.sync()
            finally:
                kept.close()
                copy.close()


def copy_bytes(source: File, start: int, end: int, target: File, at: int) -> int:
    """Returns the position behind what was copied."""
    while start < end:
        data = source.pread(min(_CHUNK_BYTES, end - start), start)
        if not data:
            break
        target.pwrite(data, at)
        start += len(data)
        at += len(data)
    return at
