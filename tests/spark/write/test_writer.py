"""Writes through Spark: batch and stream, and what a restart finds."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from ottla.client.cluster import Cluster
from ottla.client.groups import fetch_offsets
from ottla.client.reading import end_offsets
from ottla.spark.options import write_options
from ottla.spark.progress import GroupProgress
from ottla.spark.write.sending import Turn, send_rows
from ottla.spark.write.stream_writer import TopicStreamWriter
from ottla.spark.write.writer import TopicWriter
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.write.test_sending import open_topics

TIMEOUT_S = 300
ATTEMPTS = 5  # Spark gives a Python that plans its batches ten seconds to start, however busy the machine is

# A JVM and Python workers start: seconds on a free machine, much more where many tests run at once.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def read(spark: SparkSession, broker: EmbeddedBroker) -> Callable[[str], DataFrame]:
    def load(topic: str) -> DataFrame:
        reader = spark.read.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(
            subscribe=topic, includeHeaders=True, **{"kafka.isolation.level": "read_committed"}
        ).load()

    return load


def _write(rows: DataFrame, broker: EmbeddedBroker, **options: str) -> None:
    writer = rows.write.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.options(**options).mode("append").save()


def test_rows_are_written_and_read_back(
    spark: SparkSession, broker: EmbeddedBroker, read: Callable[[str], DataFrame]
) -> None:
    broker.create_topic("batch", 3)
    rows = spark.range(1000).selectExpr(
        "cast(id as string) as key",
        "cast(id * 2 as string) as value",
        "array(struct('h' as key, cast(cast(id as string) as binary) as value)) as headers",
        "'batch' as topic",
        "timestamp_millis(id) as at",  # left out
    )
    _write(rows, broker)
    text = read("batch").selectExpr(
        "cast(key as string)", "cast(value as string)", "cast(headers[0].value as string)"
    )
    assert sorted(map(tuple, text.collect())) == sorted((str(n), str(2 * n), str(n)) for n in range(1000))


def test_a_run_that_is_repeated_writes_nothing(
    spark: SparkSession, broker: EmbeddedBroker, read: Callable[[str], DataFrame]
) -> None:
    broker.create_topic("run", 2)
    rows = spark.range(0, 100, 1, 4).selectExpr("cast(id as string) as value")
    for run_id in ("monday", "monday", "tuesday"):
        _write(rows, broker, topic="run", runId=run_id)
    assert read("run").count() == 200


def test_what_cannot_be_written_is_refused(spark: SparkSession, broker: EmbeddedBroker) -> None:
    rows = spark.range(1).selectExpr("cast(id as string) as key")
    with pytest.raises(PySparkException, match="the column value is missing"):
        _write(rows, broker, topic="batch")
    with pytest.raises(PySparkException, match="a topic is only appended to"):
        rows.selectExpr("key as value").write.format("ottla").options(
            topic="batch", **{"kafka.bootstrap.servers": broker.bootstrap}
        ).mode("overwrite").save()


def _copy(spark: SparkSession, broker: EmbeddedBroker, checkpoint: Path) -> None:
    """A stream from topic `in` to topic `out`, up to what is there now."""
    servers = {"kafka.bootstrap.servers": broker.bootstrap}
    source = spark.readStream.format("ottla").options(subscribe="in", startingOffsets="earliest", **servers)
    rows = source.option("maxOffsetsPerTrigger", "40").load().select("key", "value", "timestamp")
    sink = rows.writeStream.format("ottla").options(
        topic="out", checkpointLocation=str(checkpoint), **servers
    )
    for attempts_left in reversed(range(ATTEMPTS)):
        query = sink.queryName("copy").trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(TIMEOUT_S)
        except StreamingQueryException as error:
            if not attempts_left or "connect back" not in str(error):
                raise
        else:
            return


def _values(rows: DataFrame) -> list[Any]:
    return sorted(row[0] for row in rows.selectExpr("cast(cast(value as string) as int)").collect())


def test_a_stream_that_is_started_again_writes_each_row_once(
    spark: SparkSession, broker: EmbeddedBroker, read: Callable[[str], DataFrame], tmp_path: Path
) -> None:
    broker.create_topic("in", 2)
    broker.create_topic("out", 3)
    listener = GroupProgress(
        {"kafka.bootstrap.servers": broker.bootstrap, "kafka.group.id": "copying"}, "copy"
    )
    spark.streams.addListener(listener)
    try:
        _write(spark.range(100).selectExpr("cast(id as string) as value"), broker, topic="in")
        _copy(spark, broker, tmp_path / "checkpoint")
        assert _values(read("out")) == list(range(100))
        # As if the driver had died after the last batch was written and before that was noted.
        commits = tmp_path / "checkpoint" / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        assert last > 0
        for path in list(commits.glob(f"*{last}*")):
            path.unlink()
        _write(spark.range(100, 130).selectExpr("cast(id as string) as value"), broker, topic="in")
        _copy(spark, broker, tmp_path / "checkpoint")
        assert _values(read("out")) == list(range(130))
        # With a new checkpoint it is a new query.
        shutil.rmtree(tmp_path / "checkpoint")
        _copy(spark, broker, tmp_path / "checkpoint")
        assert read("out").count() == 260
        with Cluster(broker.bootstrap) as cluster:
            ends = end_offsets(cluster, [("in", 0), ("in", 1)])
            _wait_until(
                lambda: (
                    {key: entry.offset for key, entry in fetch_offsets(cluster, "copying").items()} == ends
                )
            )
    finally:
        spark.streams.removeListener(listener)


def _wait_until(holds: Callable[[], bool]) -> None:
    """Listeners hear of a batch a little after it."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_write_whose_task_fails_leaves_no_transaction_open(
    spark: SparkSession, broker: EmbeddedBroker
) -> None:
    broker.create_topic("failing", 3)
    rows = spark.range(0, 40, 1, 4).selectExpr("if(id < 30, 'x', raise_error('here')) as value")
    with pytest.raises(PySparkException, match="here"):
        _write(rows, broker, topic="failing", runId="once")
    _wait_until(lambda: not open_topics(broker, "failing"))


@pytest.mark.parametrize("offsets", ["latest", '{"batch": {"0": -1, "1": 5, "2": -2}}'])
def test_a_stream_may_start_at_the_end_and_a_query_that_ends_may_not(
    offsets: str, spark: SparkSession, broker: EmbeddedBroker
) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "batch", "startingOffsets": offsets}
    assert spark.readStream.format("ottla").options(**given).load().columns[0] == "key"
    with pytest.raises(PySparkException, match="leaves nothing to read in a query that ends"):
        spark.read.format("ottla").options(**given).load().count()


def test_a_driver_that_hears_of_no_task_aborts_what_the_killed_ones_had_open(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    broker.create_topic("killed", 3)
    (tmp_path / "metadata").write_text('{"id":"a-query"}')
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "killed", "runId": "a-run"}
    options = write_options({**given, "checkpointLocation": f"file:{tmp_path}"})
    schema = StructType([StructField("value", StringType()), StructField("at", TimestampType())])
    rows = [pa.record_batch({"value": ["x"]})]
    for name, give_up in (
        ("a-query", lambda: TopicStreamWriter(options, schema).abort([None, None], 7)),
        ("run-a-run", lambda: TopicWriter(options, schema, False).abort([None, None])),
    ):
        send_rows(options, rows, Turn(name, 1, 7), hold=True)
        assert open_topics(broker, "killed")
        give_up()
        assert not open_topics(broker, "killed")
