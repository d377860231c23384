"""`ottla log dump` of a single file that is not a log: an index, a snapshot, a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ottla.cli.json_text import to_json
from ottla.logtools import side_files
from ottla.logtools.index_files import load_index
from ottla.logtools.listing import NotALogError, SideFile
from ottla.logtools.side_files import BadSideFileError
from ottla.storage import layout
from ottla.storage.fs import FileSystem
from ottla.storage.indexes.txn_index import TxnIndex
from ottla.storage.producers import snapshot_file as producer_snapshot


def dump(fs: FileSystem, target: SideFile, *, as_json: bool) -> None:
    """One line an entry."""
    try:
        for fields in _entries(fs, target):
            text = (
                to_json(fields) if as_json else "  ".join(f"{name} {value}" for name, value in fields.items())
            )
            sys.stdout.write(text + "\n")
    except BadSideFileError as error:
        raise NotALogError(
            f"{target.path} at position {error.position}: {error}; check it with verify"
        ) from None


def _entries(fs: FileSystem, target: SideFile) -> Iterator[dict[str, Any]]:
    path = target.path
    parsed = layout.parse_segment_file(path.rpartition("/")[2])
    base_offset = parsed.base_offset if parsed else 0
    if target.suffix in (layout.INDEX, layout.TIME_INDEX):
        index = load_index(fs, path, target.suffix, base_offset)
        for slot in range(index.entries) if index else ():
            assert index is not None
            first, second = index[slot]
            if target.suffix == layout.INDEX:
                yield {"offset": base_offset + first, "position": second}
            else:
                yield {"timestamp": first, "offset": base_offset + second}
    elif target.suffix == layout.TXN_INDEX:
        yield from (txn._asdict() for txn in TxnIndex(fs, path, base_offset).entries)
    elif target.suffix == layout.SNAPSHOT:
        yield from (entry._asdict() for entry in producer_snapshot.decode(fs.read_bytes(path), path))
    else:
        yield from _checkpoint(fs.read_bytes(path), target.suffix)


def _checkpoint(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    if name == layout.LEADER_EPOCHS:
        for epoch, start_offset in side_files.parse_epochs(data)[0]:
            yield {"epoch": epoch, "start_offset": start_offset}
    elif name == layout.PARTITION_METADATA:
        yield {"topic_id": str(side_files.parse_topic_id(data))}
    elif name == layout.META_PROPERTIES:
        lines = (line.strip() for line in data.decode(errors="backslashreplace").splitlines())
        yield dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    else:
        for topic, partition, offset, _ in side_files.parse_offsets(data):
            yield {"topic": topic, "partition": partition, "offset": offset}
