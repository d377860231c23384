"""What every generated message is made of: a table of fields, from which the codec is compiled.

A message class has the fields of all versions; a version that lacks a field leaves it out when written and gives the
default when read. Numbers are plain ints (times and durations in milliseconds), an id of zeros is None, and a tagged
part that is not there is None. `records` are views into the received frame, valid as long as the frame is.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

Records = bytes | memoryview | list[memoryview]


class Field(NamedTuple):
    """One field: its wire type and the versions that have it; `of` is the class of a part (or of an array's)."""

    name: str
    kind: str
    array: bool = False
    since: int = 0
    until: int = 32767
    nullable_since: int | None = None
    tag: int | None = None
    default: int | float | str | bytes | None = None
    of: type[Message] | None = None


class Message:
    """A request, a response, or a part of one."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]
    FLEXIBLE_SINCE: ClassVar[int]

    def __repr__(self) -> str:
        """The fields that say something: what has its default is left out, and records are only counted."""
        shown = []
        for field in self.FIELDS:
            value: Any = getattr(self, field.name)
            if value is None or value == ([] if field.array else field.default):
                continue
            if field.kind == "records":
                size = sum(map(len, value)) if isinstance(value, list) else len(value)
                shown.append(f"{field.name}=<{size} bytes>")
            else:
                shown.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)
