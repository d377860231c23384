"""What a configuration key is: its type, its check, and how text becomes a value.

Types and checks are Kafka's: an int has 32 bits, a long 64; a list has commas and repeats nothing.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ottla.errors import ConfigError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ValueType:
    """How one of Kafka's types is read. `convert` raises ValueError for what is not of the type."""

    name: str
    meaning: str
    convert: Callable[[Any], Any]


def _integer(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def convert(value: object) -> int:
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
            raise ValueError
        return value

    return convert


def _double(value: object) -> float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _boolean(value: object) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ValueError
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _list(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")] if value else []
    if not isinstance(value, Iterable):
        raise ValueError
    parts = tuple(value)
    if not all(isinstance(part, str) and part for part in parts) or len(set(parts)) != len(parts):
        raise ValueError
    return parts


_LIST_MEANING = "a list separated by commas, without empty or repeated entries"

SHORT = ValueType("short", "a whole number of 16 bits", _integer(16))
INT = ValueType("int", "a whole number of 32 bits", _integer(32))
LONG = ValueType("long", "a whole number of 64 bits", _integer(64))
DOUBLE = ValueType("double", "a number", _double)
BOOLEAN = ValueType("boolean", "true or false", _boolean)
STRING = ValueType("string", "text", _string)
LIST = ValueType("list", _LIST_MEANING, _list)
SET = ValueType("list", _LIST_MEANING, lambda value: frozenset(_list(value)))


@dataclass(frozen=True, slots=True)
class Check:
    """Which values of the type are allowed, as a test and in words."""

    allowed: str
    accepts: Callable[[Any], bool]


ANY = Check("", lambda value: True)


def at_least(low: int) -> Check:
    return Check(f"at least {low}", lambda value: value >= low)


def between(low: int, high: int) -> Check:
    return Check(f"{low} to {high}", lambda value: low <= value <= high)


def one_of(*names: str) -> Check:
    return Check(f"one of {', '.join(names)}", lambda value: value in names)


def one_of_in_any_case(*names: str) -> Check:
    return Check(f"one of {', '.join(names)}", lambda value: value.lower() in names)


def some_of(*names: str) -> Check:
    return Check(f"any of {', '.join(names)}, or empty", lambda value: value <= set(names))


def each_of(*names: str) -> Check:
    return Check(f"some of {', '.join(names)}", lambda value: len(value) > 0 and set(value) <= set(names))


NOT_EMPTY = Check("at least one entry", lambda value: len(value) > 0)


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Synonym:
    """Another key that gives a key its value; `convert` changes its unit."""

    name: str
    type: ValueType
    default: Any
    check: Check
    convert: Callable[[Any], Any] = _same


Scope = Literal["topic", "broker", "group"]


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One row of the table of settings. Synonyms are broker keys, the strongest first."""

    name: str
    type: ValueType
    default: Any
    check: Check
    doc: str
    scope: Scope
    synonyms: tuple[Synonym, ...] = ()


def topic_key(
    type: ValueType,
    default: Any,
    check: Check,
    synonyms: tuple[str | Synonym, ...],
    doc: str,
    scope: Scope = "topic",
    name: str = "",
) -> Any:
    """A dataclass field that is also a row of the table. Without a name, the key is the field's, with dots.

    A synonym that is only a name has the key's type.
    """
    full = tuple(Synonym(s, type, default, check) if isinstance(s, str) else s for s in synonyms)
    row = ConfigKey(name, type, default, check, doc, scope, full)
    return dataclasses.field(default=default, metadata={"key": row})


def broker_key(
    type: ValueType,
    default: Any,
    check: Check,
    doc: str,
    synonyms: tuple[str | Synonym, ...] = (),
    name: str = "",
) -> Any:
    """As `topic_key`, for a setting that only a broker has."""
    return topic_key(type, default, check, synonyms, doc, "broker", name)


def keys_by_field(config: Any) -> dict[str, ConfigKey]:
    """The rows that the fields of a configuration class hold, by field name."""
    rows = {f.name: f.metadata["key"] for f in dataclasses.fields(config) if "key" in f.metadata}
    return {
        field: row if row.name else dataclasses.replace(row, name=field.replace("_", "."))
        for field, row in rows.items()
    }


def parse(key: ConfigKey | Synonym, value: object) -> Any:
    """`value`, or what its text says, as the key's type; ConfigError if it is not of it or not allowed."""
    try:
        typed = key.type.convert(value.strip() if isinstance(value, str) else value)
    except ValueError:
        typed = None
    if typed is None or not key.check.accepts(typed):
        wanted = ", ".join(filter(None, (key.type.meaning, key.check.allowed)))
        raise ConfigError(f"{key.name} = {value!r} is not allowed: it must be {wanted}")
    return typed


def check_between(name: str, value: int, low: int, high: int) -> None:
    """ConfigError unless a value lies between two others that are set as well."""
    if not low <= value <= high:
        raise ConfigError(f"{name} = {value} is not allowed: it must be {low} to {high}")


def to_text(value: Any) -> str:
    """A value as a properties file has it; the reverse of `parse`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).replace("e+", "E").replace("e", "E")  # as Java writes it
    if isinstance(value, frozenset | set):
        return ",".join(sorted(value))
    return ",".join(value) if isinstance(value, tuple | list) else str(value)


class Effective(NamedTuple):
    """The value a key has, and who gave it."""

    value: Any
    source: Literal["topic", "broker", "group", "default"]


def resolve(key: ConfigKey, own: Mapping[str, str], others: Mapping[str, str]) -> Effective:
    """A key's value: what `own` sets, else the strongest of its synonyms in `others`, else its default.

    The hidden ones are checked too: a wrong line in a file is wrong even where another line wins over it.
    """
    given = [s for s in key.synonyms if s.name in others]
    found = [Effective(s.convert(parse(s, others[s.name])), "broker") for s in given]
    if key.name in own:
        return Effective(parse(key, own[key.name]), key.scope)
    return found[0] if found else Effective(key.default, "default")
