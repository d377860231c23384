"""Avro values to rows, bare (one schema for all) or in Confluent's frame (a byte 0 and the schema's id before each)."""

from __future__ import annotations

import base64
import io
import json
import struct
import urllib.error
import urllib.parse
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from ottla.errors import ConfigError
from ottla.spark.pipeline.config import Decode
from ottla.spark.pipeline.decode.avro_logical import strict
from ottla.spark.pipeline.decode.avro_types import arrow_schema, converted
from ottla.spark.tables.exact import MAX_DIGITS
from ottla.spark.tables.names import Clashes, without_clashes
from ottla.spark.tables.reshape import DecodeError, aligned

_FRAME = struct.Struct(">bI")
_TIMEOUT_S = 10


class Avro:
    """Values with one known writer's schema."""

    def __init__(self, schema: Any) -> None:
        self._parsed = schema
        self.schema = arrow_schema(schema)
        self.clashes: Clashes = {}

    def block(self, values: pa.Array) -> pa.Table:
        return _table([_read(value, self._parsed, None) for value in values.to_pylist()], self.schema)


class ConfluentAvro:
    """Values that name their writer's schema. Rows have the reader's columns, or those of all schemas seen."""

    def __init__(
        self,
        schemas: SchemaSource,
        reader: Any | None,
        schema: pa.Schema | None,
        *,
        grow: bool,
        taken: tuple[str, ...] = (),
    ) -> None:
        self._schemas = schemas
        self._reader = reader
        self._grow = grow
        self._taken = taken
        self.clashes: Clashes = {}
        self._columns: dict[int, pa.Schema] = {}  # of each writer's schema, by its id
        self.schema = arrow_schema(reader) if reader is not None else schema or pa.schema([])

    def block(self, values: pa.Array) -> pa.Table:
        rows: dict[int, list[Any]] = {}
        places: dict[int, list[int]] = {}
        for place, value in enumerate(values.to_pylist()):
            number, body = _unframed(value)
            writer = self._schemas.get(number)
            if number not in self._columns:
                self._columns[number] = self._columns_of(writer)
            rows.setdefault(number, []).append(_read(body, writer, self._reader))
            places.setdefault(number, []).append(place)
        # First as each was written, then as the column is: so a value that does not fit is found.
        tables = [
            aligned(_table(found, self._columns[number]), self.schema) for number, found in rows.items()
        ]
        if len(tables) == 1:
            return tables[0]
        order = pa.array([place for number in rows for place in places[number]], pa.int64())
        return pa.concat_tables(tables).take(pc.sort_indices(order))

    def _columns_of(self, writer: Any) -> pa.Schema:
        if self._reader is not None:
            return self.schema
        try:
            columns = arrow_schema(writer)
        except ConfigError as error:
            raise DecodeError(str(error)) from None
        if self._grow:
            self.schema, clashes = without_clashes(_merged(self.schema, columns), self._taken)
            self.clashes |= clashes
        return columns


class SchemaSource:
    """Schemas by id, from a registry or from files; each is asked for once in a process."""

    def __init__(self, registry: str | None, files: dict[int, str]) -> None:
        self._registry = registry
        self._files = files

    def get(self, number: int) -> Any:
        if self._registry is not None:
            return _from_registry(self._registry, number)
        if number not in self._files:
            raise DecodeError(f"there is no schema file for id {number}")
        return _from_file(self._files[number])


def make_avro(spec: Decode, schema: pa.Schema | None, *, grow: bool) -> Avro | ConfluentAvro:
    reader = _from_file(spec.schema_file) if spec.schema_file else None
    if spec.value == "avro":
        return Avro(reader)
    source, taken = SchemaSource(spec.registry, spec.schemas), spec.metadata_names
    return ConfluentAvro(source, reader, schema, grow=grow, taken=taken)


@lru_cache(maxsize=1000)
def _from_file(path: str) -> Any:
    try:
        return strict(fastavro.parse_schema(json.loads(Path(path).read_text(encoding="utf-8"))))
    except (ValueError, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise ConfigError(f"{path} is not an Avro schema: {error}") from None


@lru_cache(maxsize=1000)
def _from_registry(url: str, number: int) -> Any:
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(f"{parts.scheme}://{host}{parts.path.rstrip('/')}/schemas/ids/{number}")
    if parts.username:
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise DecodeError(f"the registry has no schema with id {number}") from None
        raise ConfigError(f"the registry at {host} answers {error.code} for schema {number}") from None
    except OSError as error:
        raise ConfigError(f"the registry at {host} cannot be reached: {error}") from None
    if found.get("schemaType", "AVRO") != "AVRO":
        raise DecodeError(f"schema {number} is {found['schemaType']}, not Avro")
    named: dict[str, Any] = {}
    for reference in found.get("references", ()):
        raise DecodeError(f"schema {number} refers to {reference.get('name')}; references are not followed")
    return strict(fastavro.parse_schema(json.loads(found["schema"]), named))


def _unframed(value: bytes) -> tuple[int, bytes]:
    if len(value) < _FRAME.size or value[0] != 0:
        raise DecodeError("the value is not in Confluent's frame: a byte 0 and four of an id are expected")
    return _FRAME.unpack_from(value)[1], value[_FRAME.size :]


def _read(value: bytes, writer: Any, reader: Any | None) -> Any:
    stream = io.BytesIO(value)
    try:
        found = fastavro.schemaless_reader(stream, writer, reader)
    except Exception as error:  # noqa: BLE001 - whatever the bytes make the parser raise, they are what is wrong
        raise DecodeError(f"not Avro of this schema: {type(error).__name__} {error}".strip()) from None
    rest = len(value) - stream.tell()
    if rest:
        raise DecodeError(f"{rest} bytes follow behind the Avro record")
    return found


def _table(rows: list[Any], schema: pa.Schema) -> pa.Table:
    plain = [row if isinstance(row, dict) else {"value": row} for row in rows]
    columns = []
    for field in schema:
        try:
            columns.append(
                pa.array([converted(row.get(field.name), field.type) for row in plain], field.type)
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
            raise DecodeError(str(error), field.name) from None
    return pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def _merged(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    try:
        merged = pa.unify_schemas([known, found], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DecodeError(f"this schema does not go with those before: {error}") from None
    for field in merged:
        if pa.types.is_decimal256(field.type):
            raise DecodeError(
                f"this schema does not go with those before: together they need more than {MAX_DIGITS} digits",
                field.name,
            )
    return merged
