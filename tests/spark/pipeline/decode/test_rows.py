"""Decoders: as many rows as good records, each beside its own offset, whatever stands between them."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.spark.pipeline.decode.csv_rows import Csv
from ottla.spark.pipeline.decode.json_rows import Json
from ottla.spark.pipeline.decode.rows import BlockDecoder, Decoder, RecordDecoder
from ottla.spark.tables.ddl import parse_schema, schema_text
from tests.spark.pipeline.helpers import raw_batch

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ROWS = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1), "s": st.none() | TEXT},
    optional={"d": st.floats(allow_nan=False, allow_infinity=False), "l": st.lists(TEXT, max_size=3)},
)
WRONG = st.one_of(
    st.none(),
    st.sampled_from(
        [b"", b" ", b"{", b"}", b"{}{}", b'{"id":1}{"id":2}', b"[]", b"1", b'{"id":"x"}', b'{"id":1.5}']
    ),
    st.sampled_from(
        [b'{"s":"', b'"}', b'{"id":', b"1}", b',"x":1}', b'{"id":1},', b"\xff", b'{"s":"\xff"}', b"\n"]
    ),
    st.binary(max_size=12).filter(lambda data: not _is_object(data)),
)
SCHEMA = parse_schema("id long, s string, d double, l array<string>")


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


@settings(max_examples=150)
@given(st.lists(ROWS.map(lambda row: json.dumps(row).encode()) | WRONG, max_size=25))
def test_json_rows_stand_beside_their_own_offsets(values: list[bytes | None]) -> None:
    decoded = BlockDecoder(Json(SCHEMA, grow=False), ("offset",)).decode(raw_batch(values))
    bad = {at for at, _ in decoded.bad}
    good = [at for at, value in enumerate(values) if value is not None and _is_good(value)]
    assert decoded.rows.column("_offset").to_pylist() == good
    assert bad == set(range(len(values))) - set(good)
    for row in decoded.rows.to_pylist():
        expected = json.loads(values[row.pop("_offset")] or b"")
        assert row == {name: expected.get(name) for name in SCHEMA.names}


def _is_good(value: bytes) -> bool:
    try:
        row = json.loads(value)
    except ValueError:
        return False
    return isinstance(row, dict) and isinstance(row.get("id", 0), int)


@settings(max_examples=100)
@given(st.lists(ROWS, min_size=1, max_size=20), st.data())
def test_inferred_columns_hold_everything(rows: list[dict[str, object]], data: st.DataObject) -> None:
    decoder = BlockDecoder(Json(pa.schema([]), grow=True), ())
    cut = data.draw(st.integers(0, len(rows)))
    found: list[dict[str, object]] = []
    for part in (rows[:cut], rows[cut:]):
        decoded = decoder.decode(raw_batch([json.dumps(row).encode() for row in part]))
        assert decoded.bad == []
        found += decoded.rows.to_pylist()
    for row, expected in zip(found, rows, strict=True):
        there = {name: value for name, value in row.items() if value is not None}
        assert there == {
            name: value for name, value in expected.items() if value is not None and value != []
        } | {name: [] for name in row if row[name] == []}


def test_every_type_is_read_from_json() -> None:
    schema = parse_schema(
        "n int, f float, b boolean, at timestamp, day date, price decimal(10, 2), raw binary, "
        "tags array<string>, inner struct<x: int, days: array<date>>"
    )
    value = {
        "n": 7,
        "f": 1.5,
        "b": True,
        "at": "2026-01-31T12:00:00.123456789+01:00",
        "day": "2026-01-31",
        "price": "12.34",
        "raw": "abc",
        "tags": ["a", None],
        "inner": {"x": 1, "days": ["2026-01-01"], "unknown": 5},
    }
    decoded = BlockDecoder(Json(schema, grow=False), ()).decode(
        raw_batch([json.dumps(value).encode(), b"{}"])
    )
    assert decoded.bad == []
    first, empty = decoded.rows.to_pylist()
    assert first == {
        "n": 7,
        "f": 1.5,
        "b": True,
        "at": datetime(2026, 1, 31, 11, 0, 0, 123456, UTC),
        "day": date(2026, 1, 31),
        "price": Decimal("12.34"),
        "raw": b"abc",
        "tags": ["a", None],
        "inner": {"x": 1, "days": [date(2026, 1, 1)]},
    }
    assert set(empty.values()) == {None}


def test_a_column_that_may_not_be_null_makes_a_record_bad() -> None:
    decoder = BlockDecoder(Json(parse_schema("id long not null, s string"), grow=False), ())
    decoded = decoder.decode(raw_batch([b'{"id": 1}', b'{"s": "x"}']))
    assert decoded.bad == [(1, "id: null is not allowed")]


def test_new_columns_are_taken_up_and_texts_stay_texts() -> None:
    form = Json(parse_schema("id long"), grow=True)
    decoder = BlockDecoder(form, ())
    decoder.decode(
        raw_batch([b'{"id": 1, "when": "2026-01-01", "nothing": null, "deep": {"a": [{"b": 1}]}}'])
    )
    decoder.decode(raw_batch([b'{"deep": {"a": [{"c": "x"}], "e": null}}', b'{"when": "soon"}']))
    assert schema_text(form.schema) == (
        "id long, when string, deep struct<a: array<struct<b: long, c: string>>>"
    )


def test_a_value_of_a_hundred_thousand_brackets_is_only_bad() -> None:
    deep = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    decoded = BlockDecoder(Json(pa.schema([]), grow=True), ()).decode(raw_batch([b'{"a": 1}', deep]))
    assert decoded.bad == [(1, "the value is nested more than 200 deep")]


CSV_SCHEMA = parse_schema("id long, s string, at timestamp, ok boolean")
CELL = st.text(st.sampled_from('ab,"\n\r ;'), max_size=6)


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.integers(-100, 100), CELL).map(lambda row: _line([str(row[0]), row[1], "", "true"]))
        | st.text(st.sampled_from('1,"\nab'), max_size=8).map(str.encode)
        | st.none(),
        max_size=20,
    )
)
def test_csv_rows_stand_beside_their_own_offsets(values: list[bytes | None]) -> None:
    together = BlockDecoder(Csv(CSV_SCHEMA, ","), ("offset",)).decode(raw_batch(values))
    alone = [BlockDecoder(Csv(CSV_SCHEMA, ","), ()).decode(raw_batch([value])) for value in values]
    good = [at for at, one in enumerate(alone) if one.rows.num_rows]
    assert together.rows.column("_offset").to_pylist() == good
    assert together.rows.drop_columns(["_offset"]).to_pylist() == [
        alone[at].rows.to_pylist()[0] for at in good
    ]


def _line(cells: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue().encode()


def test_csv_fields_become_their_types() -> None:
    decoder: Decoder = BlockDecoder(Csv(CSV_SCHEMA, ";"), ())
    lines = [
        b'1;"a;b";2026-01-31T12:00:00Z;true',
        b'2;"";2026-01-31 12:00:00;false',
        b"3;;;",
        b"4;x;;;",
        b"x;;;",
    ]
    decoded = decoder.decode(raw_batch(lines))
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert decoded.rows.to_pylist() == [
        {"id": 1, "s": "a;b", "at": noon, "ok": True},
        {"id": 2, "s": "", "at": noon, "ok": False},
        {"id": 3, "s": None, "at": None, "ok": None},
    ]
    assert [at for at, _ in decoded.bad] == [3, 4]


@given(st.lists(st.none() | st.binary(max_size=4), max_size=20))
def test_texts_are_rows_and_other_bytes_are_bad(values: list[bytes | None]) -> None:
    decoded = RecordDecoder(text=True).decode(raw_batch(values))
    good = [at for at, value in enumerate(values) if value is None or _is_text(value)]
    assert decoded.rows.column("offset").to_pylist() == good
    assert [at for at, _ in decoded.bad] == [at for at in range(len(values)) if at not in good]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_raw_records_pass_as_they_are() -> None:
    decoded = RecordDecoder(text=False).decode(raw_batch([b"\xff", None]))
    assert decoded.rows.column("value").to_pylist() == [b"\xff", None]
    assert decoded.rows.column("key").to_pylist() == [b"key", b"key"]


@pytest.mark.parametrize("text", [True, False])
def test_records_have_the_connectors_names(text: bool) -> None:
    names = RecordDecoder(text=text).columns.names
    assert names == ["key", "value", "topic", "partition", "offset", "timestamp"]
