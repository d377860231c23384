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


def keep(fs: FileSystem, directory: str, base_offset: int, pieces: Iterable[Piece]) -> str:
    """Copy pieces of a log into its quarantine file, one behind the other; they are on disk when this returns."""
    path = f"{directory}/{file_name(base_offset)}"
    source = fs.open(f"{directory}/{layout.segment_file(base_offset, layout.LOG)}")
    target = fs.open(path, create=True)
    lines = []
    try:
        at = target.size()
        for piece in pieces:
            size = piece.end - piece.position
            lines.append({"at": at, "size": size, "position": piece.position, "why": piece.why})
            at = copy_bytes(source, piece.position, piece.end, target, at)
        target.sync()
    finally:
        source.close()
        target.close()
    known = fs.read_bytes(path + LISTING) if fs.exists(path + LISTING) else b""
    replace_file(fs, path + LISTING, known + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


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
