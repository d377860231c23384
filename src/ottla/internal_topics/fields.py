"""Reads structs in Kafka's message encoding from a description of their fields.

A description is a dictionary of field names to types: the name of a primitive, `string?` and `bytes?` for what may be
null, `[type]` for an array, a dictionary for a struct, `(dictionary,)` for a tagged struct that may be null. In a
flexible version lengths are unsigned varints, one too large, and every struct ends in tagged fields; the description
lists the known ones under the key `TAGS`: number to (name, type).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from struct import Struct, error
from typing import Any

TAGS = "tags"
_INTEGERS = {
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
}


class MalformedError(ValueError):
    """The bytes are not what the description says."""


class Reader:
    """Takes values off the front of some bytes; MalformedError when there are too few."""

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._at = 0
        self.flexible = flexible

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def integer(self, kind: str) -> int:
        struct = _INTEGERS[kind]
        try:
            value: int = struct.unpack_from(self._data, self._at)[0]
        except error:
            raise MalformedError(f"an {kind} is cut short") from None
        self._at += struct.size
        return value

    def struct(self, description: Mapping[Any, Any]) -> dict[str, Any]:
        values = {name: self.value(kind) for name, kind in description.items() if name != TAGS}
        if self.flexible:
            values.update(self._tagged(description.get(TAGS, {})))
        return values

    def value(self, kind: Any) -> Any:
        if isinstance(kind, dict):
            return self.struct(kind)
        if isinstance(kind, tuple):
            return self.struct(kind[0]) if self.varint() else None
        if isinstance(kind, list):
            return [self.value(kind[0]) for _ in range(max(0, self._length("int32")))]
        if kind == "string":
            return self._not_null(self._bytes("int16")).decode("utf-8", "backslashreplace")
        if kind == "string?":
            raw = self._bytes("int16")
            return None if raw is None else raw.decode("utf-8", "backslashreplace")
        if kind == "bytes":
            return self._not_null(self._bytes("int32"))
        if kind == "bytes?":
            return self._bytes("int32")
        if kind == "uuid":
            return str(uuid.UUID(bytes=self.take(16)))
        return self.integer(kind)

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise MalformedError(f"{size} bytes where {self.left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def varint(self) -> int:
        value = shift = 0
        while shift <= 28:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedError("a varint does not end")

    def _length(self, kind: str) -> int:
        length = self.varint() - 1 if self.flexible else self.integer(kind)
        if length > self.left:
            raise MalformedError(f"a length of {length} where {self.left} bytes are left")
        return length

    def _bytes(self, kind: str) -> bytes | None:
        length = self._length(kind)
        return None if length < 0 else self.take(length)

    def _not_null(self, raw: bytes | None) -> bytes:
        if raw is None:
            raise MalformedError("a field is null that may not be")
        return raw

    def _tagged(self, known: Mapping[int, tuple[str, Any]]) -> dict[str, Any]:
        values = {}
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            inner = Reader(self.take(size), flexible=True)
            if tag in known:
                name, kind = known[tag]
                values[name] = inner.value(kind)
        return values
