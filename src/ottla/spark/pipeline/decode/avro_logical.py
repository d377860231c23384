"""Logical types of Avro that fastavro reads too loosely, read exactly.

It rounds a decimal that has more digits than its type allows, takes a time of day below zero, and does not know
nanoseconds, so that they would pass for microseconds. Our readers have names of their own: those that other users of
the library in this process rely on stay as they are.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

from fastavro.read import LOGICAL_READERS

_PREFIX = "ottla-"
_EXACT = Context(prec=100)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000


def strict(schema: Any) -> Any:
    """A parsed schema whose logical types are read by the functions of this module."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(value) for name, value in schema.items()}
    if found.get("logicalType") in _STRICT:
        found["logicalType"] = _PREFIX + found["logicalType"]
    return found


def logical_type(schema: dict[str, Any]) -> str | None:
    """The logical type as Avro calls it."""
    name = schema.get("logicalType")
    return name.removeprefix(_PREFIX) if isinstance(name, str) else None


def _decimal(data: bytes, writer: Any, reader: Any = None) -> Decimal:
    digits = int.from_bytes(data, "big", signed=True)
    precision, scale = writer["precision"], writer.get("scale", 0)
    if abs(digits) >= 10**precision:
        raise ValueError(f"a decimal({precision}, {scale}) has more digits than that")
    return Decimal(digits).scaleb(-scale, _EXACT)


def _time_millis(data: int, writer: Any, reader: Any = None) -> time:
    return _time_micros(data * 1000, writer)


def _time_micros(data: int, writer: Any, reader: Any = None) -> time:
    if not 0 <= data < _DAY_US:
        raise ValueError(f"{data} microseconds are no time of a day")
    return (_EPOCH + timedelta(microseconds=data)).time()


def _timestamp_nanos(data: int, writer: Any, reader: Any = None) -> datetime:
    return _EPOCH + timedelta(microseconds=data // 1000)


_STRICT = {"decimal", "time-millis", "time-micros", "timestamp-nanos"}
LOGICAL_READERS |= {
    f"bytes-{_PREFIX}decimal": _decimal,
    f"fixed-{_PREFIX}decimal": _decimal,
    f"int-{_PREFIX}time-millis": _time_millis,
    f"long-{_PREFIX}time-micros": _time_micros,
    f"long-{_PREFIX}timestamp-nanos": _timestamp_nanos,
}
