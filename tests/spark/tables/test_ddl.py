"""Schemas as text: what is written can be read again."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.spark.tables.ddl import parse_schema, schema_text

PLAIN = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us"),
        pa.decimal128(12, 3),
    ]
)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="`"), min_size=1, max_size=8
)


def _structs(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(NAMES, types), min_size=1, max_size=3, unique_by=lambda one: one[0])
    return fields.map(lambda found: pa.struct([pa.field(name, kind) for name, kind in found]))


TYPES = st.recursive(
    PLAIN,
    lambda types: st.one_of(types.map(lambda kind: pa.list_(pa.field("element", kind))), _structs(types)),
    max_leaves=6,
)


@given(st.lists(st.tuples(NAMES, TYPES, st.booleans()), min_size=1, max_size=5, unique_by=lambda one: one[0]))
def test_a_schema_written_as_text_is_read_as_it_was(fields: list[tuple[str, pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in fields])
    assert parse_schema(schema_text(schema)).equals(schema)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not a schema"),
        ("id", "there is no type"),
        ("id lng", "there is no type lng"),
        ("id long, id int", "the column id stands twice"),
        ("a array<int", "'>' is expected"),
        ("a decimal(50, 2)", "up to 38 digits"),
        ("a int b int", "',' is expected"),
        ("a int; b int", "';' is not expected"),
    ],
)
def test_what_is_no_schema_is_told(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace("(", r"\(")):
        parse_schema(text)


def test_colons_comments_and_case_are_accepted() -> None:
    found = parse_schema("`a b`: BIGINT NOT NULL COMMENT 'the, key', c STRUCT<d: Array<Date>>")
    assert found.names == ["a b", "c"]
    assert not found.field(0).nullable
