"""Checks: Arrow says of every row what Spark says of it, and what it cannot say is left to Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ottla.spark.pipeline.check_syntax import Unsupported
from ottla.spark.pipeline.config import Expectation
from ottla.spark.pipeline.expect import Checks, sql_failure

ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, -4, 2**60], pa.int64()),
        "small": pa.array([1, None, 3, 127, -128], pa.int8()),
        "price": pa.array([1.5, -2.0, float("nan"), None, 0.0]),
        "s": pa.array(["ab", "", None, "a%c", "Ünï "]),
        "raw": pa.array([b"\xff", b"", None, b"abc", b"x"]),
        "ok": pa.array([True, False, None, True, False]),
        "st": pa.array(
            [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, None, {"x": 3, "y": None}, {"x": 4, "y": ""}]
        ),
        "cash": pa.array(["1.50", "-2.00", None, "0.00", "99.99"]).cast(pa.decimal128(10, 2)),
    }
)
KNOWN = [
    "price > 0",
    "price >= 0 and id < 3",
    "price = price",
    "price <> 1.5 or ok",
    "not ok",
    "not (price > 0)",
    "id is not null and price is null",
    "id in (1, 2, 7)",
    "id not in (1, 2)",
    "s in ('ab', '')",
    "id between 1 and 2",
    "small not between -5 and 5",
    "s like 'a%'",
    "s like '_b'",
    "s not like '%c'",
    "s rlike '^[a-z]'",
    "length(s) > 1",
    "length(raw) = 1",
    "lower(s) = 'ünï '",
    "upper(trim(s)) = 'ÜNÏ'",
    "abs(id) > 1",
    "coalesce(price, id, 7) > 1",
    "st.x = 1 or st.y = 'b'",
    "PRICE + 1 > Id * 2",
    "id - small < 1 or -price > 1",
    "price / id > 0",
    "cash > 0",
    "cash * 2 >= 3",
    "`id` == 1",
    "true",
    "null",
    "(ok)",
]
UNKNOWN = [
    "id % 2 = 0",
    "s > 5",
    "date(s) = current_date()",
    "id",
    "case when ok then true end",
    "nope = 1",
    "st = 1",
]


@pytest.fixture(scope="module")
def view(spark: SparkSession) -> str:
    spark.createDataFrame(ROWS).createOrReplaceTempView("expect_rows")
    return "expect_rows"


def _here(check: str) -> list[bool]:
    found = Checks([Expectation("c", check)], ROWS.schema).failures(ROWS)
    return [True] * ROWS.num_rows if found is None else [name is None for name in found.to_pylist()]


def test_arrow_agrees_with_spark(spark: SparkSession, view: str) -> None:
    failures = ", ".join(
        f"{sql_failure([Expectation('c', check)])} is null as c{at}" for at, check in enumerate(KNOWN)
    )
    there = spark.sql(f"select id, {failures} from {view}").collect()
    by_id: dict[Any, Any] = {row["id"]: row for row in there}
    ids = ROWS.column("id").to_pylist()
    for at, check in enumerate(KNOWN):
        assert (check, _here(check)) == (check, [by_id[number][f"c{at}"] for number in ids])


@pytest.mark.parametrize("check", UNKNOWN)
def test_what_arrow_cannot_say_is_left_to_spark(check: str) -> None:
    with pytest.raises(Unsupported):
        Checks([Expectation("c", check)], ROWS.schema)


def test_a_row_is_told_with_all_the_checks_that_it_fails() -> None:
    both = [Expectation("cheap", "price < 1"), Expectation("it's odd", "id = 1")]
    found = Checks(both, ROWS.schema).failures(ROWS)
    assert found is not None
    assert found.to_pylist() == ["cheap", "it's odd", "cheap; it's odd", "cheap; it's odd", "it's odd"]


def test_an_overflow_in_one_row_fails_only_that_row() -> None:
    assert _here("id * 64 > 0") == [True, True, False, False, False]
