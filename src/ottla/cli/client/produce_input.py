"""What `ottla produce` reads: records cut out of files and standard input, and what is in each."""

from __future__ import annotations

import base64
import binascii
import json
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from ottla.cli.json_text import to_json
from ottla.words import counted

_CHUNK_BYTES = 1 << 20
_IDLE_S = 0.2
_LENGTH_BYTES = 4

Headers = list[tuple[str, bytes | None]]


class InputError(ValueError):
    """A record that cannot be read; the message says why."""


class Shape(Enum):
    TEXT = auto()
    JSON = auto()
    BINARY = auto()
    WHOLE = auto()


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Files, and how they are cut into records."""

    files: Sequence[str]
    shape: Shape
    delimiter: bytes

    def batches(self, idle: Callable[[], None]) -> Iterator[list[bytes | None]]:
        """Records as they come in; `idle` is called now and then while nothing does."""
        cut = {Shape.BINARY: _cut_binary, Shape.WHOLE: _cut_nothing}.get(self.shape)
        for name in self.files:
            fd = sys.stdin.fileno() if name == "-" else os.open(name, os.O_RDONLY)
            try:
                chunks = _chunks(fd, idle)
                yield from cut(chunks) if cut else _cut_at(chunks, self.delimiter)
            finally:
                if name != "-":
                    os.close(fd)


def _chunks(fd: int, idle: Callable[[], None]) -> Iterator[bytes]:
    while True:
        while not select.select([fd], [], [], _IDLE_S)[0]:
            idle()
        chunk = os.read(fd, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def _cut_at(chunks: Iterator[bytes], delimiter: bytes) -> Iterator[list[bytes | None]]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(delimiter)
        yield [*whole]
    if rest:
        yield [rest]


def _cut_binary(chunks: Iterator[bytes]) -> Iterator[list[bytes | None]]:
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        found: list[bytes | None] = []
        position = 0
        while position + _LENGTH_BYTES <= len(data):
            start = position + _LENGTH_BYTES
            length = int.from_bytes(data[position:start], "big", signed=True)
            if length < -1:
                raise InputError(f"a length of {length} is not possible")
            if start + length > len(data):
                break
            found.append(None if length < 0 else data[start : start + length])
            position = start + max(length, 0)
        rest = data[position:]
        yield found
    if rest:
        where = counted(len(rest), "byte")
        raise InputError(f"the input ends in the middle of a record, {where} behind the last one")


def _cut_nothing(chunks: Iterator[bytes]) -> Iterator[list[bytes | None]]:
    yield [b"".join(chunks)]


@dataclass(frozen=True, slots=True)
class Parser:
    """Makes a record of what was read. What the command line says of all records wins over JSON's fields."""

    shape: Shape
    key: bytes | None = None
    key_separator: bytes | None = None
    headers: Headers = field(default_factory=list)
    header_separators: tuple[bytes, bytes, bytes] | None = None
    null: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None

    def parse(self, data: bytes | None) -> NewRecord | None:
        """None for a line of JSON with nothing on it."""
        if self.shape is Shape.JSON:
            return self._json(data or b"")
        key, headers = self.key, self.headers
        if data is not None and self.header_separators:
            parsed, data = _split_headers(data, self.header_separators)
            headers = parsed + headers
        if data is not None and self.key_separator:
            found, separator, rest = data.partition(self.key_separator)
            if separator:
                key, data = found, rest
        if self.null is not None:
            key = None if key == self.null else key
            data = None if data == self.null else data
        partition = -1 if self.partition is None else self.partition
        return NewRecord(key, data, headers, partition, self.timestamp_ms or 0)

    def _json(self, line: bytes) -> NewRecord | None:
        if not line.strip():
            return None
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise InputError(f"not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise InputError("not a JSON object")
        partition = self.partition if self.partition is not None else _number(fields, "partition", -1)
        timestamp = self.timestamp_ms if self.timestamp_ms is not None else _number(fields, "timestamp", 0)
        headers = _json_headers(fields.get("headers")) + self.headers
        key = _json_bytes(fields.get("key")) if self.key is None else self.key
        return NewRecord(key, _json_bytes(fields.get("value")), headers, partition, timestamp)


def _split_headers(data: bytes, separators: tuple[bytes, bytes, bytes]) -> tuple[Headers, bytes]:
    end, between, after_name = separators
    text, found, rest = data.partition(end)
    if not found:
        raise InputError(f"no {end!r} behind the headers")
    headers: Headers = []
    for part in text.split(between) if text else ():
        name, colon, value = part.partition(after_name)
        if not colon:
            raise InputError(f"no {after_name!r} in the header {part!r}")
        headers.append((name.decode("utf-8", "replace"), value))
    return headers, rest


def _json_headers(headers: Any) -> Headers:
    """From a list of {"key", "value"} or of pairs, or from an object."""
    if headers is None:
        return []
    pairs: Any = headers.items() if isinstance(headers, dict) else headers
    try:
        items = [(h["key"], h.get("value")) if isinstance(h, dict) else tuple(h) for h in pairs]
        return [(str(name), _json_bytes(value)) for name, value in items]
    except (KeyError, TypeError, ValueError):
        raise InputError('headers are written [{"key": "a", "value": "b"}] or {"a": "b"}') from None


def _json_bytes(value: Any) -> bytes | None:
    """Text as it is, {"base64": ...} decoded, and anything else as its JSON."""
    if value is None or isinstance(value, str):
        return value if value is None else value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise InputError(f"not base64: {error}") from None
    return to_json(value).encode()


def _number(fields: dict[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError(f"{name} is not a number: {to_json(value)}")
    return value
