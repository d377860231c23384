"""Pipelines on Spark: without a transform, with SQL, with a function, with checks that only Spark can say."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ottla.errors import ConfigError, ConnectionLostError, PipelineError
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.engine import SparkEngine, run_tasks
from ottla.spark.pipeline.run import Runner, Summary
from ottla.spark.pipeline.show import register
from ottla.spark.pipeline.targets.choice import table_sink
from ottla.spark.pipeline.tasks import TaskResult
from ottla.spark.pipeline.validate import dry_run
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.pipeline.helpers import (
    TABLES,
    KilledHere,
    Steps,
    bad_rows,
    landed_ids,
    orders,
    produce,
    sink_lines,
    write_pipeline,
)
from tests.spark.table_rows import table_rows


def run_on(spark: SparkSession, pipeline: Pipeline, steps: Steps | None = None) -> Summary:
    watcher = steps or Steps()
    return Runner(pipeline, lambda: SparkEngine(spark, pipeline, watcher.note), watcher).run(once=True)


def test_without_a_transform_tasks_write_the_files(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, [*orders(0, 50), b"bad"], 0)
    produce(broker, topic, orders(50, 80), 1)
    summary = run_on(spark, pipeline)
    assert (summary.read, summary.rows, summary.bad) == (81, 80, 1)
    assert landed_ids(pipeline) == list(range(80))
    assert len(table_sink(pipeline).active_files()) == 2


@pytest.mark.parametrize("form", TABLES)
def test_sql_is_exactly_once_and_its_view_shows_the_table(
    form: str, spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    more = 'partition_by = ["day"]\nevolve_schema = true\n'
    day = "date_add(date'2026-01-01', cast(id % 3 as int)) day"
    sql = f'sql = "select id, cast(price as int) p, {day} from source where id > 0"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink_lines(form, more), transform=sql)
    produce(broker, topic, [*orders(0, 30), b"bad"], 0)
    produce(broker, topic, orders(30, 40), 1)
    with pytest.raises(KilledHere):
        run_on(spark, pipeline, Steps(die_at="quarantined"))
    produce(broker, topic, orders(40, 45), 1)
    summary = run_on(spark, pipeline)
    assert (summary.read, summary.rows, summary.bad) == (46, 44, 1)
    assert landed_ids(pipeline) == list(range(1, 45))
    assert [row["bytes"] for row in bad_rows(pipeline)] == [b"bad"]
    register(pipeline, spark)
    days = spark.sql(
        "select cast(day as string) d, count(*) n, sum(p) s from rows group by 1 order by 1"
    ).collect()
    assert [(row.d, row.n) for row in days] == [("2026-01-01", 14), ("2026-01-02", 15), ("2026-01-03", 15)]
    assert sum(row.s for row in days) == sum(range(1, 45))
    assert spark.sql("select count(*) n from quarantine").collect()[0].n == 1


@pytest.mark.parametrize("form", TABLES)
def test_a_batch_of_which_no_row_is_left_lands_with_its_times(
    form: str, spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    sql = 'sql = "select id, timestamp_millis(id) at, struct(timestamp_millis(id) at) inner from source where id > 5"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink_lines(form), transform=sql)
    produce(broker, topic, orders(0, 3))
    assert run_on(spark, pipeline).batches == 1
    produce(broker, topic, orders(3, 7))
    assert run_on(spark, pipeline).rows == 1
    table = table_rows(table_sink(pipeline))
    assert table is not None
    moment = datetime.fromtimestamp(0.006, UTC)
    assert table.to_pylist() == [{"id": 6, "at": moment, "inner": {"at": moment}}]


def test_a_function_by_name_transforms(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "shaping_orders.py").write_text(
        "from pyspark.sql.functions import udf\n"
        "def _twice(number):\n    return number * 2\n"
        "def shaped(frame):\n"
        "    return frame.select('id', udf(_twice, 'long')('id').alias('twice'))\n"
    )
    pipeline = write_pipeline(tmp_path, broker, topic, transform='python = "shaping_orders:shaped"\n')
    produce(broker, topic, orders(0, 10))
    run_on(spark, pipeline)
    table = table_rows(table_sink(pipeline))
    assert table is not None
    assert table.schema.names == ["id", "twice"]
    assert sorted(table.column("twice").to_pylist()) == [number * 2 for number in range(10)]


def test_a_check_that_needs_spark_puts_rows_aside_with_their_origin(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    checks = '[[expect]]\nname = "even"\ncheck = "id % 2 = 0"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, extra=checks)
    produce(broker, topic, [*orders(0, 4), b"bad"], 1)
    steps = Steps()
    summary = run_on(spark, pipeline, steps)
    assert landed_ids(pipeline) == [0, 2]
    assert [(row["offset"], row["error"]) for row in bad_rows(pipeline)] == [
        (1, "even"),
        (3, "even"),
        (4, "the value is not a JSON object"),
    ]
    assert (summary.rows, summary.bad) == (2, 3)
    assert any("an expectation needs Spark SQL" in note for note in steps.notes)


def test_a_query_that_reads_the_source_twice_counts_bad_rows_once(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    sql = 'sql = "select id from source union all select -id - 1 from source order by 1"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, transform=sql)
    produce(broker, topic, [*orders(0, 5), b"bad"])
    summary = run_on(spark, pipeline)
    assert landed_ids(pipeline) == list(range(-5, 5))
    assert (summary.read, summary.bad, len(bad_rows(pipeline))) == (6, 1, 1)


def test_a_query_takes_up_new_columns(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    sink = sink_lines("delta", "evolve_schema = true\n")
    pipeline = write_pipeline(
        tmp_path,
        broker,
        topic,
        decode='value = "json"\n',
        sink=sink,
        transform='sql = "select * from source"\n',
    )
    produce(broker, topic, [{"id": 1}])
    run_on(spark, pipeline)
    produce(broker, topic, [{"id": 2, "new": "x"}])
    run_on(spark, pipeline)
    table = table_rows(table_sink(pipeline))
    assert table is not None
    assert sorted(table.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "new": None},
        {"id": 2, "new": "x"},
    ]


def test_a_query_without_rows_makes_the_table(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(
        tmp_path, broker, topic, transform='sql = "select id from source where id < 0"\n'
    )
    produce(broker, topic, orders(0, 3))
    run_on(spark, pipeline)
    assert table_sink(pipeline).schema() == pa.schema([("id", pa.int64())])
    assert landed_ids(pipeline) == []


def test_a_dry_run_shows_the_querys_schema_and_writes_nothing(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    sql = "sql = \"select id, date'2026-01-01' day from source\"\n"
    sink = sink_lines("delta", 'partition_by = ["month"]\n')
    pipeline = write_pipeline(tmp_path, broker, topic, transform=sql, sink=sink)
    produce(broker, topic, [*orders(0, 3), b"bad"])
    report = dry_run(pipeline, 100, lambda: _kept(spark))
    assert not report.ok
    assert report.problems == ["partition_by: there is no column month"]
    assert "day  date" in report.text()
    assert "4 records tried: 3 rows, 1 bad" in report.text()
    assert not (tmp_path / "lake").exists()
    assert not (tmp_path / "checkpoint").exists()


class _kept:  # noqa: N801 - a context manager by that name
    """A session that outlives the one who uses it."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __enter__(self) -> SparkSession:
        return self._session

    def __exit__(self, *_: object) -> None:
        """It is the tests'."""


def test_what_a_task_raises_is_told_and_says_whether_to_try_again(spark: SparkSession) -> None:
    def fail(index: int, _: int) -> TaskResult:
        raise [
            ConnectionLostError("127.0.0.1:9092: Connection refused"),
            PermissionError(13, "Permission denied", "/lake/rows"),
            ConfigError("there is no column day"),
            ZeroDivisionError("division by zero"),
        ][index]

    found = []
    for index in range(4):
        with pytest.raises(PipelineError) as raised:
            run_tasks(spark, partial(fail, index), 1)
        found.append((str(raised.value), raised.value.retriable))
    assert found == [
        ("127.0.0.1:9092: Connection refused", True),
        ("[Errno 13] Permission denied: '/lake/rows'", True),
        ("there is no column day", False),
        ("ZeroDivisionError: division by zero", False),
    ]
