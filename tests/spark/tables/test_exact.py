"""Every type of every format: a value lands as it was sent, or it is a bad row that names its column."""

from __future__ import annotations

import io
import json
import math
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.spark.pipeline.decode.avro_logical import strict
from ottla.spark.pipeline.decode.avro_rows import Avro
from ottla.spark.pipeline.decode.csv_rows import Csv
from ottla.spark.pipeline.decode.json_rows import Json
from ottla.spark.pipeline.decode.rows import BlockDecoder, Decoded, Format, make_decoder
from ottla.spark.tables.ddl import TIMESTAMP, parse_schema
from ottla.spark.tables.reshape import DecodeError, aligned
from tests.spark.pipeline.decode.test_avro_rows import decode_spec
from tests.spark.pipeline.helpers import raw_batch

BAD = object()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """A value as it is written, and what must land of it; `loose`: it may be refused as well."""

    ddl: str
    text: str
    expected: Any
    quoted: bool = False  # a text in JSON
    loose: bool = False

    @property
    def json(self) -> str:
        return json.dumps(self.text) if self.quoted else self.text


@st.composite
def integers(draw: st.DrawFn) -> Case:
    ddl, bits = draw(st.sampled_from((("byte", 8), ("short", 16), ("int", 32), ("long", 64))))
    limit = 2 ** (bits - 1)
    near = st.one_of(
        st.integers(-2, 2), st.integers(limit - 2, limit + 1), st.integers(-limit - 2, -limit + 1)
    )
    number = draw(st.one_of(near, st.integers(-(2**70), 2**70)))
    return Case(ddl, str(number), number if -limit <= number < limit else BAD)


@st.composite
def decimals(draw: st.DrawFn) -> Case:
    precision = draw(st.one_of(st.integers(1, 38), st.just(38)))
    scale = draw(st.integers(0, precision))
    digits = draw(
        st.one_of(st.integers(0, 10**precision + 1), st.integers(0, 10 ** draw(st.integers(1, 80))))
    )
    places = draw(st.integers(0, 42))
    exponent = draw(st.sampled_from((0, 0, 0, 1, 5, 30, 37, -3)))
    sign = draw(st.sampled_from(("", "-")))
    whole, rest = divmod(digits, 10**places)
    text = f"{sign}{whole}" + (f".{rest:0{places}}" if places else "") + (f"e{exponent}" if exponent else "")
    value = Fraction(text)
    fits = (value * 10**scale).denominator == 1 and abs(value * 10**scale) < 10**precision
    # A parser may find more digits than the value has: zeros at its end, or before an exponent.
    plain = not exponent and (not places or rest % 10) and scale - places + len(str(digits)) <= 38
    return Case(f"decimal({precision}, {scale})", text, value if fits else BAD, loose=not plain)


@st.composite
def floats(draw: st.DrawFn) -> Case:
    ddl = draw(st.sampled_from(("float", "double")))
    number = draw(st.one_of(st.floats(width=32), st.floats(), st.integers(-(10**40), 10**40)))
    text = draw(
        st.one_of(
            st.just(str(number).replace("inf", "Infinity").replace("nan", "NaN")),
            st.builds(
                "{}{}.{}e{}".format,
                st.sampled_from(("", "-")),
                st.integers(0, 10**18),
                st.integers(0, 10**9),
                st.integers(-400, 400),
            ),
        )
    )
    if "N" in text or "I" in text:
        return Case(ddl, text, float(text))
    nearest = _nearest_float(text) if ddl == "float" else float(text)
    return Case(ddl, text, BAD if math.isinf(nearest) else nearest)


def _nearest_float(text: str) -> float:
    """Of the floats around it the one that is nearest; of two, the even one."""
    exact = Fraction(text)
    if abs(exact) >= (2 - Fraction(1, 2**24)) * 2**127:
        return math.inf
    with np.errstate(over="ignore"):
        about = np.float32(float(text))
    around = [about, np.nextafter(about, np.float32(-np.inf)), np.nextafter(about, np.float32(np.inf))]
    finite = [one for one in around if np.isfinite(one)]
    return float(min(finite, key=lambda one: (abs(Fraction(float(one)) - exact), one.view(np.int32) & 1)))


@st.composite
def dates(draw: st.DrawFn) -> Case:
    text = draw(
        st.one_of(st.dates().map(date.isoformat), st.sampled_from(("2026-02-30", "10000-01-01", "x")))
    )
    try:
        return Case("date", text, date.fromisoformat(text), quoted=True)
    except ValueError:
        return Case("date", text, BAD, quoted=True)


@st.composite
def timestamps(draw: st.DrawFn) -> Case:
    ddl = draw(st.sampled_from(("timestamp", "timestamp_ntz")))
    local = draw(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))).replace(microsecond=0)
    digits = draw(st.text("0123456789", max_size=9))
    zone = draw(st.sampled_from((None, "Z", "+02:00", "-11:30")))
    text = f"{local:%m-%d}{draw(st.sampled_from('T '))}{local:%H:%M:%S}"
    text = f"{local.year:04}-{text}{'.' if digits else ''}{digits}{zone or ''}"
    minutes = {None: 0, "Z": 0, "+02:00": 120, "-11:30": -690}[zone]
    moment = local.replace(tzinfo=timezone(timedelta(minutes=minutes))).astimezone(UTC)
    moment += timedelta(microseconds=int(digits[:6].ljust(6, "0")))
    return Case(ddl, text, moment if ddl == "timestamp" else moment.replace(tzinfo=None), quoted=True)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
strings = texts.map(lambda text: Case("string", text, text, quoted=True))
binaries = texts.map(lambda text: Case("binary", text, text.encode(), quoted=True))
booleans = st.booleans().map(lambda flag: Case("boolean", str(flag).lower(), flag))
leaves = st.one_of(integers(), decimals(), floats(), dates(), timestamps(), strings, binaries, booleans)


def _agrees(found: Any, case: Case) -> bool:
    expected = case.expected
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    return bool((Fraction(found) if isinstance(found, Decimal) else found) == expected)


def check(form: Format, values: list[bytes], cases: list[Case], shown: Any = lambda row: row["a"]) -> Decoded:
    """Each value equal, or bad with the column's name."""
    decoded = BlockDecoder(form, ()).decode(raw_batch(values))
    for chunk in decoded.rows.to_batches():
        chunk.validate(full=True)
    kept = decoded.kept.to_pylist()
    landed = dict(zip(kept, decoded.rows.to_pylist(), strict=True))
    bad = dict(decoded.bad)
    assert sorted([*landed, *bad]) == list(range(len(values)))
    for at, case in enumerate(cases):
        if at in landed:
            assert case.expected is not BAD, (case, landed[at])
            assert _agrees(shown(landed[at]), case), (case, landed[at])
        else:
            assert case.expected is BAD or case.loose, (case, bad[at])
            assert bad[at].startswith("a:"), bad[at]
    return decoded


def _of_one_type(cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.ddl == cases[0].ddl]


@settings(max_examples=250)
@given(st.lists(leaves, min_size=1, max_size=6).map(_of_one_type))
def test_json_values_land_as_they_were_sent_or_are_bad(cases: list[Case]) -> None:
    schema = parse_schema(f"b string, a {cases[0].ddl}")
    values = [f'{{"b": "x", "a": {case.json}}}'.encode() for case in cases]
    check(Json(schema, grow=False), values, cases)


@settings(max_examples=100)
@given(st.lists(leaves, min_size=1, max_size=4).map(_of_one_type))
def test_json_values_inside_of_structs_and_lists_too(cases: list[Case]) -> None:
    schema = parse_schema(f"a struct<l: array<struct<x: {cases[0].ddl} not null>>, n: int>")
    values = [f'{{"a": {{"l": [{{"x": {case.json}}}]}}}}'.encode() for case in cases]
    check(Json(schema, grow=False), values, cases, lambda row: row["a"]["l"][0]["x"])


@settings(max_examples=250)
@given(st.lists(leaves, min_size=1, max_size=6).map(_of_one_type))
def test_csv_values_land_as_they_were_sent_or_are_bad(cases: list[Case]) -> None:
    schema = parse_schema(f"b string, a {cases[0].ddl}")
    values = [b'x,"' + case.text.replace('"', '""').encode() + b'"' for case in cases]
    check(Csv(schema, ","), values, cases)


@pytest.mark.parametrize("text", ["0xFF", "0X7f", "-0x1", "1e2", "1.0", " "])
def test_what_only_looks_like_a_number_is_bad_in_csv(text: str) -> None:
    check(Csv(parse_schema("b string, a byte"), ","), [b"x," + text.encode()], [Case("byte", text, BAD)])


def test_a_number_too_large_for_any_type_names_its_field() -> None:
    form = Json(parse_schema("b string, a double"), grow=False)
    check(form, [b'{"a": 1e309}', b'{"a": -1e400}'], [Case("double", "", BAD)] * 2)


@pytest.mark.parametrize(
    ("ddl", "text"),
    [
        ("timestamp", "0001-01-01T00:00:00+14:00"),
        ("timestamp_ntz", "9999-12-31T23:59:59.9999999-01:00"),
        ("timestamp", "0000-06-01T00:00:00"),
        ("date", "0000-12-31"),
    ],
)
def test_a_time_that_spark_does_not_have_is_bad(ddl: str, text: str) -> None:
    schema = parse_schema(f"b string, a {ddl}")
    bad = [Case(ddl, text, BAD)]
    check(Json(schema, grow=False), [b'{"a": "%s"}' % text.encode()], bad)
    check(Csv(schema, ","), [b"x," + text.encode()], bad)
    nested = Json(parse_schema(f"a struct<l: array<{ddl}>>"), grow=False)
    decoded = BlockDecoder(nested, ()).decode(raw_batch([b'{"a": {"l": ["%s"]}}' % text.encode()]))
    assert decoded.bad == [(0, "a.l: not between the years 1 and 9999")]


def test_null_where_it_is_not_allowed_names_the_field_however_deep() -> None:
    form = Json(parse_schema("a struct<x: array<struct<y: int not null>>>"), grow=False)
    good = [b'{"a": null}', b'{"a": {"x": [null]}}', b'{"a": {"x": []}}', b"{}"]
    decoded = BlockDecoder(form, ()).decode(raw_batch([*good, b'{"a": {"x": [{"y": 1}, {"y": null}]}}']))
    assert decoded.rows.num_rows == len(good)
    assert decoded.bad == [(4, "a.x.y: null is not allowed")]


# -- Avro


def _bare(kind: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out, {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}, value
    )
    return out.getvalue()


def _form(kind: Any) -> Avro:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    return Avro(strict(fastavro.parse_schema(schema)))


@settings(max_examples=100)
@given(st.data())
def test_avro_decimals_land_as_they_were_sent_or_are_bad(data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 38))
    scale = data.draw(st.integers(0, precision))
    limit = 10**precision
    near = st.integers(limit - 2, limit + 2)
    digits = data.draw(st.one_of(near, near.map(int.__neg__), st.integers(-(2**150), 2**150)))
    value = digits.to_bytes(20, "big", signed=True)
    plain: Any = data.draw(st.sampled_from(("bytes", {"type": "fixed", "name": "f", "size": 20})))
    kind = plain if isinstance(plain, dict) else {"type": plain}
    kind = kind | {"logicalType": "decimal", "precision": precision, "scale": scale}
    case = Case("", "", Fraction(digits, 10**scale) if abs(digits) < limit else BAD)
    decoded = BlockDecoder(_form(kind), ()).decode(raw_batch([_bare(plain, {"a": value})]))
    if case.expected is BAD:
        assert decoded.rows.num_rows == 0
        assert "digits" in decoded.bad[0][1]
    else:
        assert _agrees(decoded.rows.to_pylist()[0]["a"], case)


def _moment(micros: int, aware: bool) -> Any:
    try:
        found = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return BAD
    return found if aware else found.replace(tzinfo=None)


def _time_of_day(micros: int) -> Any:
    return str((EPOCH + timedelta(microseconds=micros)).time()) if 0 <= micros < 86_400_000_000 else BAD


def _day(days: int) -> Any:
    try:
        return EPOCH.date() + timedelta(days=days)
    except OverflowError:
        return BAD


LOGICAL: dict[str, tuple[str, Any]] = {
    "date": ("int", _day),
    "time-millis": ("int", lambda n: _time_of_day(n * 1000)),
    "time-micros": ("long", _time_of_day),
    "timestamp-millis": ("long", lambda n: _moment(n * 1000, True)),
    "timestamp-micros": ("long", lambda n: _moment(n, True)),
    "timestamp-nanos": ("long", lambda n: _moment(n // 1000, True)),
    "local-timestamp-millis": ("long", lambda n: _moment(n * 1000, False)),
    "local-timestamp-micros": ("long", lambda n: _moment(n, False)),
}


@settings(max_examples=150)
@given(st.sampled_from(sorted(LOGICAL)), st.data())
def test_avro_times_land_as_they_were_sent_or_are_bad(name: str, data: st.DataObject) -> None:
    plain, model = LOGICAL[name]
    size = 31 if plain == "int" else 63
    day = 86_400_000 if plain == "int" else 86_400_000_000
    number = data.draw(
        st.one_of(st.integers(-3, 2000), st.integers(day - 2, day + 2), st.integers(-(2**size), 2**size - 1))
    )
    decoded = BlockDecoder(_form({"type": plain, "logicalType": name}), ()).decode(
        raw_batch([_bare(plain, {"a": number})])
    )
    expected = model(number)
    if expected is BAD:
        assert decoded.rows.num_rows == 0
    else:
        assert decoded.rows.to_pylist() == [{"a": expected}]


AVRO_VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", texts),
    ("bytes", st.binary(max_size=20)),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, st.sampled_from("AB")),
    ({"type": "fixed", "name": "x", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
    (["null", "long"], st.none() | st.integers(-(2**63), 2**63 - 1)),
    (["int", "string"], st.integers(-5, 5) | texts),
    (["bytes", "string"], st.binary(max_size=5) | texts),
    ({"type": "array", "items": ["null", "double"]}, st.lists(st.none() | st.floats(allow_nan=False))),
    ({"type": "map", "values": "long"}, st.dictionaries(texts, st.integers(0, 9))),
]


@settings(max_examples=100)
@given(st.sampled_from(AVRO_VALUES), st.data())
def test_avro_values_land_as_they_were_sent(kind: Any, data: st.DataObject) -> None:
    value = data.draw(kind[1])
    form = _form(kind[0])
    decoded = BlockDecoder(form, ()).decode(raw_batch([_bare(kind[0], {"a": value})]))
    assert decoded.bad == []
    found = decoded.rows.to_pylist()[0]["a"]
    column = form.schema.field("a").type
    if isinstance(value, dict):
        found = dict(found)
    elif pa.types.is_string(column) and value is not None:
        value = str(value)  # a union of numbers and texts is told as text
    elif pa.types.is_binary(column) and isinstance(value, str):
        value = value.encode()
    assert found == value


@given(
    st.sampled_from(["long", "double"]).flatmap(
        lambda kind: st.tuples(st.just(kind), st.integers(-(2**63), 2**63 - 1))
    )
)
def test_a_union_of_numbers_holds_each_exactly_or_refuses_it(drawn: tuple[str, int]) -> None:
    kind, number = drawn
    value = ("double", float(number)) if kind == "double" else ("long", number)
    decoded = BlockDecoder(_form(["long", "double"]), ()).decode(
        raw_batch([_bare(["long", "double"], {"a": value})])
    )
    if decoded.bad:
        assert abs(number) > 2**53
    else:
        assert decoded.rows.to_pylist() == [{"a": value[1]}]


def test_framed_values_of_another_schema_fit_the_column_or_are_bad(tmp_path: Path) -> None:
    """Columns are known from batches before; then a writer changes a type."""
    kinds: dict[int, Any] = {
        1: {"type": "int", "logicalType": "date"},
        2: {"type": "long", "logicalType": "timestamp-millis"},
        3: "double",
    }
    files = {}
    for number, kind in kinds.items():
        files[number] = str(tmp_path / f"{number}.avsc")
        schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
        Path(files[number]).write_text(json.dumps(schema))

    def decoded(column: pa.DataType, *values: tuple[int, Any]) -> Decoded:
        decoder = make_decoder(
            decode_spec("confluent-avro", schemas=files), pa.schema([("a", column)]), grow=False
        )
        framed = [
            struct.pack(">bI", 0, number) + _bare(kinds[number], {"a": value}) for number, value in values
        ]
        return decoder.decode(raw_batch(framed))

    noon, midnight = datetime(2026, 1, 2, 12, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
    found = decoded(pa.date32(), (2, midnight), (1, date(2026, 1, 1)), (2, noon), (1, date(2026, 1, 4)))
    assert [row["a"].day for row in found.rows.to_pylist()] == [3, 1, 4]
    assert [at for at, _ in found.bad] == [2]
    assert found.bad[0][1].startswith("a: ")
    found = decoded(pa.float32(), (3, 1.5), (3, 1e300), (3, math.inf))
    assert [row["a"] for row in found.rows.to_pylist()] == [1.5, math.inf]
    found = decoded(pa.decimal128(5, 2), (3, 1.25), (3, 1.005), (3, 1000.0))
    assert [row["a"] for row in found.rows.to_pylist()] == [Decimal("1.25")]
    found = decoded(pa.int32(), (3, 1.0), (3, 1.5), (3, 3e9))
    assert [row["a"] for row in found.rows.to_pylist()] == [1]


def test_a_decimal_with_more_digits_than_tables_have_is_told() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2}
    with pytest.raises(ConfigError, match=r"decimal\(39, 2\): tables hold up to 38 digits"):
        _form(kind)


def test_a_column_that_does_not_fit_is_named() -> None:
    table = pa.table({"a": pa.array([300], pa.int64())})
    with pytest.raises(DecodeError, match=r"^a: .*300"):
        aligned(table, pa.schema([("a", pa.int8())]))


def test_times_before_1970_are_cut_towards_the_past() -> None:
    form = Json(parse_schema("a timestamp"), grow=False)
    decoded = BlockDecoder(form, ()).decode(raw_batch([b'{"a": "1969-12-31T23:59:59.1234567Z"}']))
    assert decoded.rows.column("a").type == TIMESTAMP
    assert decoded.rows.to_pylist() == [{"a": datetime(1969, 12, 31, 23, 59, 59, 123456, UTC)}]
