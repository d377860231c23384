"""Small text files that replace one another whole: checkpoints, partition.metadata, meta.properties, shutdown marker.

Written to a temporary beside the target, synced, renamed over it, and the directory synced: after a crash there is
the old file or the new one, never a part of either.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ottla.errors import CorruptCheckpointError
from ottla.names import TopicPartition
from ottla.storage import layout
from ottla.storage.fs import FileSystem

T = TypeVar("T")
_VERSION = 0


def replace_file(fs: FileSystem, path: str, data: bytes) -> None:
    """Put `data` at `path`, all of it or nothing."""
    prepare_file(fs, path, data)
    put_in_place(fs, path)


def prepare_file(fs: FileSystem, path: str, data: bytes) -> None:
    """Write `data` under a temporary name, to be put at `path` later."""
    temporary = path + layout.TEMPORARY
    file = fs.open(temporary, create=True)
    try:
        file.truncate(0)
        file.pwrite(data, 0)
        file.sync()
    finally:
        file.close()


def put_in_place(fs: FileSystem, path: str) -> None:
    """A file that was prepared takes its place."""
    fs.rename(path + layout.TEMPORARY, path)
    fs.sync_dir(path.rpartition("/")[0])


def _parse_lines(path: str, text: str, parse: Callable[[list[str]], T]) -> list[T]:
    """A version line, a line with the number of entries, then an entry a line."""
    # A number that was cut is still a number: only the line's end says that it is whole.
    if not text.endswith("\n"):
        raise CorruptCheckpointError(f"{path}: its last line is cut")
    lines = text.splitlines()
    try:
        version, count = int(lines[0]), int(lines[1])
        entries = [parse(line.split(" ")) for line in lines[2:] if line]
    except (ValueError, IndexError) as error:
        raise CorruptCheckpointError(f"{path}: cannot be read: {error}") from None
    if version != _VERSION or count != len(entries):
        raise CorruptCheckpointError(
            f"{path}: version {version}, {count} entries announced, {len(entries)} there"
        )
    return entries


def _read_text(fs: FileSystem, path: str) -> str | None:
    if not fs.exists(path):
        return None
    try:
        return fs.read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(f"{path}: is not text: {error}") from None


def _render(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "".join(f"{line}\n" for line in [str(_VERSION), str(len(lines)), *lines]).encode()


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    """An offset checkpoint of a log dir; empty when there is none."""
    text = _read_text(fs, path)
    if text is None:
        return {}

    def parse(fields: list[str]) -> tuple[TopicPartition, int]:
        topic, partition, offset = fields
        return TopicPartition(topic, int(partition)), int(offset)

    return dict(_parse_lines(path, text, parse))


def write_offsets(fs: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    entries = (f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items()))
    replace_file(fs, path, _render(entries))


def read_epochs(fs: FileSystem, path: str) -> list[tuple[int, int]]:
    """(leader epoch, start offset) pairs; empty when there is no file."""
    text = _read_text(fs, path)
    if text is None:
        return []

    def parse(fields: list[str]) -> tuple[int, int]:
        epoch, start_offset = fields
        return int(epoch), int(start_offset)

    return _parse_lines(path, text, parse)


def write_epochs(fs: FileSystem, path: str, epochs: Iterable[tuple[int, int]]) -> None:
    replace_file(fs, path, _render(f"{epoch} {start_offset}" for epoch, start_offset in epochs))


def read_topic_id(fs: FileSystem, path: str) -> uuid.UUID | None:
    """The topic id in partition.metadata; None when there is no file."""
    text = _read_text(fs, path)
    if text is None:
        return None
    try:
        fields = dict(line.split(": ", 1) for line in text.splitlines() if line)
        if int(fields["version"]) != _VERSION:
            raise ValueError(f"version {fields['version']}")
        return uuid.UUID(bytes=base64.urlsafe_b64decode(fields["topic_id"] + "=="))
    except (ValueError, KeyError) as error:
        raise CorruptCheckpointError(f"{path}: cannot be read: {error}") from None


def write_topic_id(fs: FileSystem, path: str, topic_id: uuid.UUID) -> None:
    text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    replace_file(fs, path, f"version: {_VERSION}\ntopic_id: {text}".encode())


def read_properties(fs: FileSystem, path: str) -> dict[str, str]:
    """`key=value` lines, as in meta.properties; empty when there is no file."""
    text = _read_text(fs, path) or ""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def write_properties(fs: FileSystem, path: str, properties: Mapping[str, str]) -> None:
    replace_file(fs, path, "".join(f"{key}={value}\n" for key, value in sorted(properties.items())).encode())


def write_clean_shutdown(fs: FileSystem, log_dir: str) -> None:
    marker = json.dumps({"version": _VERSION, "brokerEpoch": -1}, separators=(",", ":"))
    replace_file(fs, f"{log_dir}/{layout.CLEAN_SHUTDOWN}", marker.encode())


def consume_clean_shutdown(fs: FileSystem, log_dir: str) -> bool:
    """Whether the last stop was clean. The marker goes, so that a crash from now on is noticed."""
    path = f"{log_dir}/{layout.CLEAN_SHUTDOWN}"
    if not fs.exists(path):
        return False
    fs.unlink(path)
    fs.sync_dir(log_dir)
    return True
