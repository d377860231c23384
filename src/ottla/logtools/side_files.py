"""Parses the small files beside the logs strictly, so that a changed byte is seen and can be pointed at.

A checkpoint is lines of text: a version, the number of entries, an entry a line. Every byte of it counts: what
parses but would be written differently was not written by a broker.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
from dataclasses import dataclass

_META_KEYS = (b"version", b"cluster.id", b"node.id", b"broker.id", b"directory.id")
_NUMBER = re.compile(rb"-?(0|[1-9]\d*)")


class BadSideFileError(ValueError):
    """What is wrong, and at which position."""

    def __init__(self, meaning: str, position: int) -> None:
        super().__init__(meaning)
        self.position = position


@dataclass(frozen=True, slots=True)
class Line:
    """The fields of an entry, and where it stands."""

    fields: list[bytes]
    position: int


def parse_checkpoint(data: bytes, fields: int) -> list[Line]:
    """The entries of a checkpoint whose entries have that many fields. Kafka makes it as an empty file: none."""
    if not data:
        return []
    lines: list[Line] = []
    position = 0
    for text in data.split(b"\n")[:-1]:
        lines.append(Line(text.split(b" "), position))
        position += len(text) + 1
    if position != len(data):
        raise BadSideFileError("the last line does not end", position)
    if len(lines) < 2:
        raise BadSideFileError("the version or the number of entries is missing", 0)
    if lines[0].fields != [b"0"]:
        raise BadSideFileError(f"version {b' '.join(lines[0].fields)!r} is not known", 0)
    entries = lines[2:]
    if lines[1].fields != [b"%d" % len(entries)]:
        said = b" ".join(lines[1].fields).decode(errors="backslashreplace")
        raise BadSideFileError(f"{said} entries are announced, {len(entries)} are there", lines[1].position)
    for line in entries:
        if len(line.fields) != fields:
            raise BadSideFileError(f"an entry has {len(line.fields)} fields, not {fields}", line.position)
    return entries


def number(line: Line, field: int) -> int:
    text = line.fields[field]
    if not _NUMBER.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise BadSideFileError(f"{text.decode(errors='backslashreplace')!r} is not a number", line.position)
    return int(text)


def parse_epochs(data: bytes) -> tuple[list[tuple[int, int]], list[int]]:
    """(epoch, start offset) pairs of leader-epoch-checkpoint, and the position of each."""
    lines = parse_checkpoint(data, 2)
    return [(number(line, 0), number(line, 1)) for line in lines], [line.position for line in lines]


def parse_offsets(data: bytes) -> list[tuple[str, int, int, int]]:
    """(topic, partition, offset, position) of each entry of an offset checkpoint."""
    found = []
    seen = set()
    for line in parse_checkpoint(data, 3):
        topic, partition = line.fields[0].decode(errors="backslashreplace"), number(line, 1)
        if (topic, partition) in seen:
            raise BadSideFileError(f"{topic}-{partition} stands there twice", line.position)
        seen.add((topic, partition))
        found.append((topic, partition, number(line, 2), line.position))
    return found


def parse_topic_id(data: bytes) -> uuid.UUID:
    """The topic id in partition.metadata."""
    lines = data.removesuffix(b"\n").split(b"\n")
    if lines[0] != b"version: 0":
        raise BadSideFileError(f"{lines[0].decode(errors='backslashreplace')!r} is not `version: 0`", 0)
    position = len(lines[0]) + 1
    name, _, text = lines[1].partition(b": ") if len(lines) == 2 else (b"", b"", b"")
    if name != b"topic_id":
        raise BadSideFileError("the line with the topic id is missing or malformed", position)
    return _uuid(text, position + len(name) + 2)


def _uuid(text: bytes, position: int) -> uuid.UUID:
    try:
        raw = base64.b64decode(text + b"==", altchars=b"-_", validate=True)
        found = uuid.UUID(bytes=raw)
    except (binascii.Error, ValueError):
        raise BadSideFileError(f"{text.decode(errors='backslashreplace')!r} is not an id", position) from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=") != text:
        raise BadSideFileError(f"{text.decode(errors='backslashreplace')!r} is not an id", position)
    return found


def check_meta_properties(data: bytes) -> None:
    """meta.properties names the cluster and the node; version 1 came with KRaft."""
    position = 0
    found: dict[bytes, tuple[bytes, int]] = {}
    for line in data.split(b"\n"):
        text = line.strip()
        if text and not text.startswith(b"#"):
            name, equals, value = text.partition(b"=")
            if not equals:
                raise BadSideFileError(
                    f"{text.decode(errors='backslashreplace')!r} is not `key=value`", position
                )
            found[name.strip()] = value.strip(), position
        position += len(line) + 1
    for name, (_, at) in found.items():
        if name not in _META_KEYS:
            raise BadSideFileError(f"{name.decode(errors='backslashreplace')!r} is not a known key", at)
    version, at = found.get(b"version", (b"", 0))
    if version not in (b"0", b"1"):
        raise BadSideFileError(f"version {version.decode(errors='backslashreplace')!r} is not known", at)
    node, at = found.get(b"node.id") or found.get(b"broker.id") or (b"", 0)
    if not _NUMBER.fullmatch(node):
        raise BadSideFileError("node.id is missing or not a number", at)
    if b"directory.id" in found:
        _uuid(*found[b"directory.id"])
    cluster, at = found.get(b"cluster.id", (b"", 0))
    if version == b"1" and not re.fullmatch(rb"[!-~]+", cluster):
        raise BadSideFileError("cluster.id is missing or malformed", at)


def check_clean_shutdown(data: bytes) -> None:
    """The marker of a clean stop: empty before Kafka 3.4, JSON since."""
    if not data:
        return
    try:
        fields = json.loads(data)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or set(fields) != {"version", "brokerEpoch"}:
        raise BadSideFileError("the marker of a clean stop is not the JSON it should be", 0)
    if fields["version"] != 0:
        raise BadSideFileError(f"version {fields['version']!r} is not known", 0)
