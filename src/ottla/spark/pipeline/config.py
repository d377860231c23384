"""A pipeline file as frozen values, every mistake told with its line before anything is started.

Paths are relative to the file's own directory, so that every command finds the same table from everywhere.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ottla.errors import ConfigError, PipelineFileError
from ottla.spark.pipeline.keys import SECTIONS
from ottla.spark.pipeline.toml_file import TomlFile
from ottla.spark.tables.ddl import parse_schema, type_name
from ottla.spark.tables.names import check_names

TABLE_FORMATS = ("delta", "iceberg", "parquet")
AVAILABLE_NOW = "available_now"
_UNITS_S = {"ms": 0.001, "millisecond": 0.001, "s": 1, "second": 1, "m": 60, "minute": 60, "hour": 3600}


@dataclass(frozen=True)
class SourceConfig:
    topics: tuple[str, ...]
    pattern: str | None
    bootstrap: str | None
    path: tuple[str, ...]
    starting: str
    isolation: str
    group: str | None
    options: dict[str, str]


@dataclass(frozen=True)
class Decode:
    value: str
    schema: pa.Schema | None
    schema_file: str | None
    registry: str | None
    schemas: dict[int, str]
    delimiter: str
    metadata: tuple[str, ...]
    on_error: str
    quarantine: str

    @property
    def metadata_names(self) -> tuple[str, ...]:
        """The columns that hold it."""
        return tuple(f"_{name}" for name in self.metadata)


@dataclass(frozen=True)
class Expectation:
    name: str
    check: str


@dataclass(frozen=True)
class SinkConfig:
    format: str
    path: str
    partition_by: tuple[str, ...]
    evolve_schema: bool
    table: str
    catalog: str
    topic: str
    bootstrap: str
    options: dict[str, str]
    compact_every: int


@dataclass(frozen=True)
class Pipeline:
    file: Path
    source: SourceConfig
    decode: Decode
    sql: str | None
    python: str | None
    expectations: tuple[Expectation, ...]
    sink: SinkConfig
    interval_s: float | None  # None: to the present end, then stop
    checkpoint: Path
    max_records: int
    split_mb: int

    @property
    def has_transform(self) -> bool:
        return self.sql is not None or self.python is not None


def load(path: str | os.PathLike[str]) -> Pipeline:
    """Read and check a pipeline file."""
    file = Path(path).absolute()
    toml = TomlFile(Path(path), SECTIONS)
    return _Builder(toml, file).pipeline()


class _Builder:
    def __init__(self, toml: TomlFile, file: Path) -> None:
        self._toml = toml
        self._file = file

    def pipeline(self) -> Pipeline:
        run = self._toml.table("run")
        source = self._source()
        sink = self._sink(source)
        transform = self._transform()
        if run["checkpoint"] is None:
            raise self._toml.complain(
                'name a directory of this pipeline\'s own, such as "checkpoints/orders"', "run", "checkpoint"
            )
        for key in ("max_records", "split_mb"):
            if run[key] < 1:
                raise self._toml.complain("at least 1 is expected", "run", key)
        checkpoint = self._path(run["checkpoint"])
        decode = self._decode(sink, checkpoint)
        if decode.schema is not None and transform["sql"] is None and transform["python"] is None:
            self._check_partitions(sink, [*decode.schema.names, *(f"_{name}" for name in decode.metadata)])
        return Pipeline(
            self._file,
            source,
            decode,
            transform["sql"],
            transform["python"],
            self._expectations(),
            sink,
            self._interval_s(run["trigger"]),
            Path(checkpoint),
            run["max_records"],
            run["split_mb"],
        )

    def _path(self, text: str) -> str:
        if "://" in text and not text.startswith("file://"):
            raise PipelineFileError(
                f"{self._file}: {text}: tables and checkpoints lie in a directory that this machine and all "
                "executors can write; other kinds of storage are not offered"
            )
        return os.path.normpath(self._file.parent / text.removeprefix("file://"))

    def _check_partitions(self, sink: SinkConfig, columns: list[str]) -> None:
        for name in sink.partition_by:
            if name not in columns:
                known = ", ".join(columns)
                raise self._toml.complain(
                    f"there is no column {name}; there are {known}", "sink", "partition_by"
                )

    def _source(self) -> SourceConfig:
        keys = self._toml.table("source")
        if (keys["topics"] is None) == (keys["pattern"] is None) and not (
            keys["path"] and keys["topics"] is None
        ):
            raise self._toml.complain("name either topics or a pattern", "source", None)
        if keys["pattern"] is not None:
            try:
                re.compile(keys["pattern"])
            except re.error as error:
                raise self._toml.complain(str(error), "source", "pattern") from None
        if keys["bootstrap"] is None and keys["path"] is None:
            raise self._toml.complain("name a broker (bootstrap) or a data directory (path)", "source", None)
        if keys["group"] and keys["bootstrap"] is None:
            raise self._toml.complain("progress needs a broker: give bootstrap too", "source", "group")
        paths = [keys["path"]] if isinstance(keys["path"], str) else keys["path"] or []
        starting = keys["starting"]
        given = keys | {
            "topics": tuple(keys["topics"] or ()),
            "path": tuple(self._path(path) for path in paths),
            "starting": starting if isinstance(starting, str) else json.dumps(starting),
            "options": keys["options"] or {},
        }
        return SourceConfig(**given)

    def _decode(self, sink: SinkConfig, checkpoint: str) -> Decode:
        keys = self._toml.table("decode")
        self._check_decode(keys)
        try:
            schema = parse_schema(keys["schema"]) if keys["schema"] else None
            if schema is not None:
                check_names(schema, [f"_{name}" for name in keys["metadata"] or ()])
                _check_types(schema, keys["value"])
        except ConfigError as error:
            raise self._toml.complain(str(error), "decode", "schema") from None
        quarantine = keys["quarantine"]
        if quarantine is not None:
            quarantine = self._path(quarantine)
        elif sink.format in TABLE_FORMATS:
            quarantine = f"{sink.path}_quarantine"
        else:
            quarantine = os.path.join(checkpoint, "quarantine")
        given = keys | {
            "schema": schema,
            "schema_file": self._path(keys["schema_file"]) if keys["schema_file"] else None,
            "schemas": {int(number): self._path(path) for number, path in (keys["schemas"] or {}).items()},
            "metadata": tuple(keys["metadata"] or ()),
            "quarantine": quarantine,
        }
        return Decode(**given)

    def _check_decode(self, keys: dict[str, Any]) -> None:
        value = keys["value"]
        users = {
            "schema": ("json", "csv"),
            "schema_file": ("avro", "confluent-avro"),
            "registry": ("confluent-avro",),
            "schemas": ("confluent-avro",),
        }
        for name, formats in users.items():
            if keys[name] is not None and value not in formats:
                raise self._toml.complain(f'value = "{value}" has no use for it', "decode", name)
        if value == "csv" and keys["schema"] is None:
            raise self._toml.complain("csv needs a schema: its lines have no names", "decode", "value")
        if value == "avro" and keys["schema_file"] is None:
            raise self._toml.complain("avro needs a schema_file", "decode", "value")
        if value == "confluent-avro" and (keys["registry"] is None) == (keys["schemas"] is None):
            raise self._toml.complain("give either a registry or schemas", "decode", "value")
        if not all(number.isdigit() for number in keys["schemas"] or {}):
            raise self._toml.complain('the keys are ids: {1 = "order.avsc"}', "decode", "schemas")
        if len(keys["delimiter"]) != 1:
            raise self._toml.complain("one character is expected", "decode", "delimiter")

    def _transform(self) -> dict[str, Any]:
        keys = self._toml.table("transform")
        if keys["sql"] is not None and keys["python"] is not None:
            raise self._toml.complain("give either sql or python", "transform", "python")
        if keys["python"] is not None and not re.fullmatch(r"[\w.]+:\w+", keys["python"]):
            raise self._toml.complain('write "module:function"', "transform", "python")
        return keys

    def _expectations(self) -> tuple[Expectation, ...]:
        found = []
        for index, keys in enumerate(self._toml.tables("expect")):
            if not keys["check"]:
                raise self._toml.complain('a check is missing, such as "price > 0"', "expect", None, index)
            found.append(Expectation(keys["name"] or keys["check"], keys["check"]))
        return tuple(found)

    def _sink(self, source: SourceConfig) -> SinkConfig:
        keys = self._toml.table("sink")
        if keys["format"] is None:
            raise self._toml.complain(
                "name a format: delta, iceberg, parquet, topic or console", "sink", None
            )
        if keys["format"] in TABLE_FORMATS and keys["path"] is None:
            raise self._toml.complain("a table needs a path", "sink", None)
        bootstrap = keys["bootstrap"] or source.bootstrap
        if keys["format"] == "topic" and not (keys["topic"] and bootstrap):
            raise self._toml.complain("name a topic and a broker (bootstrap)", "sink", None)
        path = self._path(keys["path"]) if keys["path"] else ""
        given = keys | {
            "path": path,
            "partition_by": tuple(keys["partition_by"] or ()),
            "table": keys["table"] or f"default.{os.path.basename(path)}",
            "catalog": keys["catalog"] or f"sqlite:///{os.path.dirname(path)}/catalog.db",
            "topic": keys["topic"] or "",
            "bootstrap": bootstrap or "",
            "options": keys["options"] or {},
        }
        return SinkConfig(**given)

    def _interval_s(self, trigger: str) -> float | None:
        if trigger == AVAILABLE_NOW:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", trigger.strip())
        unit = match and (_UNITS_S.get(match[2]) or _UNITS_S.get(match[2].removesuffix("s")))
        if not match or not unit:
            raise self._toml.complain(
                'write "available_now", or a pause such as "10 seconds" or "2 minutes"', "run", "trigger"
            )
        return float(match[1]) * unit


def _check_types(schema: pa.Schema, value: str) -> None:
    for field in schema:
        kind = type_name(field.type)
        if (value == "csv" and pa.types.is_nested(field.type)) or "map<" in kind:
            raise ConfigError(f"column {field.name}: a {kind} cannot be read from {value}")
