"""format("ottla") in a real Spark session. What it reads is tested without one; here is how Spark gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.records.builder import NewRecord, build_batch
from ottla.records.codec import Codec

# A JVM and Python workers start: seconds on a free machine, much more where many tests run at once.
pytestmark = pytest.mark.timeout(900)

_START_MS = 1_700_000_000_000


def append(root: Path, partition: str, start: int, count: int) -> None:
    """Records whose value is their offset, ten a batch."""
    directory = root / partition
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{0:020d}.log").open("ab") as file:
        for base in range(start, start + count, 10):
            records = [
                NewRecord(_START_MS + offset, None, b"%d" % offset, [(b"h", b"x")])
                for offset in range(base, base + 10)
            ]
            file.write(build_batch(records, base_offset=base, codec=Codec.LZ4))


def test_a_data_directory_is_read_with_the_connectors_schema(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "orders-0", 0, 50)
    append(tmp_path, "orders-1", 0, 30)
    append(tmp_path, "other-0", 0, 10)
    frame = (
        spark.read.format("ottla")
        .option("subscribe", "orders")
        .option("includeHeaders", "true")
        .option("minPartitions", "4")
        .load(str(tmp_path))
    )
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    rows = frame.selectExpr(
        "cast(value as string) v",
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) t",
        "headers[0].key h",
    ).collect()
    assert sorted(map(tuple, rows)) == sorted(
        (str(offset), "orders", partition, offset, _START_MS + offset, "h")
        for partition, count in ((0, 50), (1, 30))
        for offset in range(count)
    )


def test_a_given_schema_and_several_paths_choose_what_is_decoded(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "a", "orders-0", 0, 20)
    append(tmp_path / "b", "orders-1", 0, 10)
    paths = [str(tmp_path / "a" / "orders-0"), str(tmp_path / "b")]
    frame = spark.read.format("ottla").schema("offset long, partition int").load(paths)
    assert frame.columns == ["offset", "partition"]
    assert frame.groupBy("partition").count().orderBy("partition").collect() == [(0, 20), (1, 10)]


def test_a_wrong_option_is_named_with_the_right_one(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "orders-0", 0, 10)
    with pytest.raises(PySparkException, match="unknown option startingofset; did you mean startingOffsets"):
        spark.read.format("ottla").option("startingOfset", "earliest").load(str(tmp_path)).collect()


def _run(
    spark: SparkSession, root: Path, checkpoint: Path, seen: list[tuple[int, list[str]]], **more: str
) -> None:
    """All that is there now, into `seen` as (batch id, values in order)."""
    reader = (
        spark.readStream.format("ottla")
        .option("startingOffsets", "earliest")
        .option("subscribePattern", "ord.*")
    )
    for name, value in more.items():
        reader = reader.option(name, value)

    def keep(frame: Any, batch_id: int) -> None:
        rows = frame.selectExpr("topic", "partition", "cast(value as string) v", "offset").collect()
        seen.append((batch_id, [f"{row.topic}-{row.partition}:{row.v}" for row in sorted(rows)]))

    query: StreamingQuery = (
        reader.load(str(root))
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(600)
    failure = query.exception()
    if failure is not None:
        raise failure


def test_a_stream_goes_on_exactly_where_its_checkpoint_ends(spark: SparkSession, tmp_path: Path) -> None:
    root, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    append(root, "orders-0", 0, 30)
    seen: list[tuple[int, list[str]]] = []
    _run(spark, root, checkpoint, seen, maxOffsetsPerTrigger="20")
    assert [len(values) for _, values in seen] == [20, 10]
    append(root, "orders-0", 30, 10)
    append(root, "ordeals-1", 0, 10)  # a new topic that the pattern matches
    append(root, "strange-0", 0, 10)
    _run(spark, root, checkpoint, seen)
    values = [value for _, batch in seen for value in batch]
    assert sorted(values) == sorted(
        [f"orders-0:{offset}" for offset in range(40)] + [f"ordeals-1:{offset}" for offset in range(10)]
    )
