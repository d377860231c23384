"""Schemas as Spark's DDL writes them (`id long, tags array<string>`) to Arrow types and back, without a JVM."""

from __future__ import annotations

import re

import pyarrow as pa

from ottla.errors import ConfigError

TIMESTAMP = pa.timestamp("us", tz="UTC")
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
}
TYPE_NAMES = (*_PLAIN, "decimal(p, s)", "array<type>", "struct<name: type, ...>", "map<type, type>")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:]))")
_END = ""


def parse_schema(text: str) -> pa.Schema:
    """`name type [not null], ...` as an Arrow schema; a colon may stand between name and type."""
    reader = _Reader(text)
    fields = reader.fields(until=_END)
    if not fields:
        raise ConfigError(f"{text!r} is not a schema; write for example: id long, item string")
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"the column {name} stands twice in the schema")
    return pa.schema(fields)


class _Reader:
    """Reads tokens from left to right; every type knows where it ends."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ConfigError(f"schema {text!r}: {text[position:].strip()[:1]!r} is not expected")
            self._tokens.append(match.group().strip())
            position = match.end()
        self._tokens.append(_END)
        self._next = 0

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self, expected: str | None = None) -> str:
        token = self._peek()
        if expected is not None and token != expected:
            found = repr(token) if token else "the end"
            raise ConfigError(f"schema {self._text!r}: {expected!r} is expected, not {found}")
        self._next += token != _END
        return token

    def fields(self, until: str) -> list[pa.Field]:
        found: list[pa.Field] = []
        while self._peek() != until:
            if found:
                self._take(",")
            found.append(self._field())
        self._take(until)
        return found

    def _field(self) -> pa.Field:
        name = self._take()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", name):
            raise ConfigError(f"schema {self._text!r}: a column name is expected, not {name or 'the end'!r}")
        if self._peek() == ":":
            self._take()
        kind = self._type(name)
        nullable = True
        if self._peek().lower() == "not":
            self._take()
            if self._take().lower() != "null":
                raise ConfigError(f"schema {self._text!r}: 'not null' is expected after {name}")
            nullable = False
        if self._peek().lower() == "comment":
            self._take()
            self._take()
        return pa.field(name, kind, nullable)

    def _type(self, column: str) -> pa.DataType:
        word = self._take().lower()
        if word == "array":
            self._take("<")
            item = self._type(column)
            self._take(">")
            return pa.list_(pa.field("element", item))
        if word == "map":
            self._take("<")
            key = self._type(column)
            self._take(",")
            item = self._type(column)
            self._take(">")
            return pa.map_(key, item)
        if word == "struct":
            self._take("<")
            return pa.struct(self.fields(until=">"))
        if word in ("decimal", "dec", "numeric") and self._peek() == "(":
            return self._decimal()
        if word not in _PLAIN:
            raise ConfigError(
                f"column {column}: there is no type {word or 'at the end'}; one of: {', '.join(TYPE_NAMES)}"
            )
        return _PLAIN[word]

    def _decimal(self) -> pa.DataType:
        self._take("(")
        digits, scale = self._take(), "0"
        if self._peek() == ",":
            self._take()
            scale = self._take()
        self._take(")")
        if not (digits.isdigit() and scale.isdigit() and 0 < int(digits) <= 38 and int(scale) <= int(digits)):
            raise ConfigError(f"decimal({digits}, {scale}): up to 38 digits, of which the scale is a part")
        return pa.decimal128(int(digits), int(scale))


def type_name(kind: pa.DataType) -> str:
    """An Arrow type as Spark's DDL calls it."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{_quoted(f.name)}: {type_name(f.type)}' for f in kind)}>"
    names = {"bool": "boolean", "int8": "byte", "int16": "short", "int32": "int", "int64": "long"}
    names |= {"float": "float", "double": "double", "date32[day]": "date", "large_string": "string"}
    names |= {"large_binary": "binary", "null": "void"}
    return names.get(str(kind), str(kind))


def schema_text(schema: pa.Schema) -> str:
    """A schema as DDL, as `parse_schema` reads it."""
    return ", ".join(
        f"{_quoted(field.name)} {type_name(field.type)}{'' if field.nullable else ' not null'}"
        for field in schema
    )


def _quoted(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        return name
    return "`" + name.replace("`", "``") + "`"
