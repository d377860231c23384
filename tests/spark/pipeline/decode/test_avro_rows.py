"""Avro values: bare with a schema's file, or in Confluent's frame with schemas from files or a registry."""

from __future__ import annotations

import base64
import io
import json
import struct
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import fastavro
import pyarrow as pa
import pytest

from ottla.errors import ConfigError
from ottla.spark.pipeline.config import Decode
from ottla.spark.pipeline.decode.rows import make_decoder
from ottla.spark.tables.ddl import schema_text
from tests.spark.pipeline.helpers import raw_batch

FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"], "default": None}],
}
SECOND: dict[str, Any] = FIRST | {
    "fields": [*FIRST["fields"], {"name": "price", "type": "double", "default": 0.0}]
}


def decode_spec(value: str, **more: Any) -> Decode:
    given: dict[str, Any] = {
        "schema": None,
        "schema_file": None,
        "registry": None,
        "schemas": {},
        "delimiter": ",",
        "metadata": (),
        "on_error": "quarantine",
        "quarantine": "",
    }
    return Decode(value, **given | more)


def bare(schema: dict[str, Any], row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def framed(number: int, schema: dict[str, Any], row: Any) -> bytes:
    return struct.pack(">bI", 0, number) + bare(schema, row)


@pytest.fixture
def files(tmp_path: Path) -> dict[int, str]:
    for number, schema in ((1, FIRST), (2, SECOND)):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    return {1: str(tmp_path / "1.avsc"), 2: str(tmp_path / "2.avsc")}


def test_bare_avro_is_read_and_other_bytes_are_bad(files: dict[int, str]) -> None:
    decoder = make_decoder(decode_spec("avro", schema_file=files[1]), None, grow=False)
    good = bare(FIRST, {"id": 1, "item": "book"})
    decoded = decoder.decode(
        raw_batch([good, b"", good + b"more", None, bare(FIRST, {"id": 2, "item": None})])
    )
    assert decoded.rows.to_pylist() == [{"id": 1, "item": "book"}, {"id": 2, "item": None}]
    assert [at for at, _ in decoded.bad] == [1, 2, 3]
    assert decoded.bad[1][1] == "4 bytes follow behind the Avro record"


def test_every_type_of_avro_has_a_column(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]}
    kinds: dict[str, tuple[Any, Any, Any]] = {
        "b": ("boolean", True, True),
        "f": ("float", 1.5, 1.5),
        "raw": ("bytes", b"\x00", b"\x00"),
        "fix": ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        "e": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        "l": ({"type": "array", "items": inner}, [{"x": 1}], [{"x": 1}]),
        "m": (
            {"type": "map", "values": ["null", "In"]},
            {"k": {"x": 2}, "n": None},
            [("k", {"x": 2}), ("n", None)],
        ),
        "day": ({"type": "int", "logicalType": "date"}, date(2026, 1, 2), date(2026, 1, 2)),
        "at": (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime(2026, 1, 2, 3, tzinfo=UTC),
            datetime(2026, 1, 2, 3, tzinfo=UTC),
        ),
        "d": (
            {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            Decimal("12.34"),
            Decimal("12.34"),
        ),
        "u": (["null", "long", "string"], "text", "text"),
        "n": (["int", "double"], 2.5, 2.5),
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": k, "type": v[0]} for k, v in kinds.items()]}
    file = tmp_path / "all.avsc"
    file.write_text(json.dumps(schema))
    decoder = make_decoder(decode_spec("avro", schema_file=str(file)), None, grow=False)
    decoded = decoder.decode(raw_batch([bare(schema, {name: kind[1] for name, kind in kinds.items()})]))
    assert decoded.bad == []
    assert decoded.rows.to_pylist() == [{name: kind[2] for name, kind in kinds.items()}]


def test_framed_avro_takes_up_the_columns_of_every_schema(files: dict[int, str]) -> None:
    decoder = make_decoder(decode_spec("confluent-avro", schemas=files), pa.schema([]), grow=True)
    values = [
        framed(1, FIRST, {"id": 1}),
        framed(2, SECOND, {"id": 2, "price": 2.5}),
        framed(9, FIRST, {"id": 3}),
    ]
    decoded = decoder.decode(raw_batch([*values, b"\x01bad", b""]))
    assert [row["id"] for row in decoded.rows.to_pylist()] == [1, 2]
    assert schema_text(decoder.columns) == "id long, item string, price double"
    assert decoded.bad[0] == (2, "there is no schema file for id 9")


def test_framed_avro_is_read_as_the_readers_schema(files: dict[int, str]) -> None:
    spec = decode_spec("confluent-avro", schemas=files, schema_file=files[2])
    decoder = make_decoder(spec, None, grow=False)
    decoded = decoder.decode(
        raw_batch([framed(1, FIRST, {"id": 1}), framed(2, SECOND, {"id": 2, "price": 2.5})])
    )
    assert [row["price"] for row in decoded.rows.to_pylist()] == [0.0, 2.5]


class _Registry(BaseHTTPRequestHandler):
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.path == "/base/schemas/ids/1":
            self._answer(200, {"schema": json.dumps(FIRST)})
        elif self.path.endswith("/500"):
            self._answer(500, {})
        else:
            self._answer(404, {"error_code": 40403})

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


@pytest.fixture
def registry() -> Iterator[str]:
    _Registry.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}/base"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_registry_is_asked_once_for_each_schema(registry: str) -> None:
    spec = decode_spec("confluent-avro", registry=f"http://me:se%40cret@{registry}")
    decoder = make_decoder(spec, pa.schema([]), grow=True)
    decoded = decoder.decode(raw_batch([framed(1, FIRST, {"id": number}) for number in range(5)]))
    assert [row["id"] for row in decoded.rows.to_pylist()] == list(range(5))
    assert _Registry.asked == [("/base/schemas/ids/1", f"Basic {base64.b64encode(b'me:se@cret').decode()}")]
    unknown = decoder.decode(raw_batch([framed(7, FIRST, {"id": 1})]))
    assert unknown.bad == [(0, "the registry has no schema with id 7")]


def test_a_registry_that_fails_ends_the_pipeline(registry: str) -> None:
    decoder = make_decoder(
        decode_spec("confluent-avro", registry=f"http://{registry}"), pa.schema([]), grow=True
    )
    with pytest.raises(ConfigError, match="answers 500 for schema 500"):
        decoder.decode(raw_batch([framed(500, FIRST, {"id": 1})]))


def test_a_file_that_is_no_schema_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bad.avsc"
    file.write_text('{"type": "recrd"}')
    with pytest.raises(ConfigError, match=r"bad\.avsc is not an Avro schema"):
        make_decoder(decode_spec("avro", schema_file=str(file)), None, grow=False)
