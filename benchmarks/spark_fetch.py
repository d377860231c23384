"""Spark on two cores: a topic read through its broker beside the same topic read from its files; and written.

The broker shares those two cores, so that what it takes of them counts against the read.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks import brokers
from benchmarks.brokers import HOST, Server, Topic
from benchmarks.measure import Bench, Figure, alternate, warm
from ottla.spark import plan
from ottla.spark.options import WriteOptions, read_options
from ottla.spark.sending import send_rows

_LOG_BYTES_PER_RECORD = 108
_VALUE_BYTES = 100
_ROWS = 10_000  # as many as Spark puts into one Arrow batch
_PARTITIONS = 4
_TARGET = 0.6
_POLL_S = 0.1


class Seconds(NamedTuple):
    taken: float


def run(bench: Bench) -> list[Figure]:
    records = bench.scale.volume_bytes // 2 // _LOG_BYTES_PER_RECORD // _ROWS * _ROWS
    spark = session(bench)
    try:
        with brokers.ottla(bench.work_dir) as server, server.topic(_PARTITIONS) as topic:
            options = WriteOptions({"bootstrap.servers": f"{HOST}:{server.port}"}, topic.name)
            batch = pa.record_batch({"value": pa.array([bytes(_VALUE_BYTES)] * _ROWS, pa.binary())})
            send_rows(options, (batch for _ in range(records // _ROWS)))
            figures = [_read(bench, spark, server, topic, records)]
            with server.topic(_PARTITIONS) as other:
                figures.append(_write(bench, spark, server, other, records))
    finally:
        spark.stop()
        _remove(bench)
    return figures


def session(bench: Bench) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = HOST
    spark: SparkSession = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.warehouse.dir", str(bench.work_dir / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _read(bench: Bench, spark: SparkSession, server: Server, topic: Topic, records: int) -> Figure:
    source = spark.read.format("ottla").option("subscribe", topic.name)
    fetched = source.option("kafka.bootstrap.servers", f"{HOST}:{server.port}")
    _wait_for_checkpoint(server, topic, records)
    warm(server.data_dir)
    files = spark.read.format("ottla").option("subscribe", topic.name).load(str(server.data_dir))
    through_broker, from_files = alternate(
        bench.scale.broker.rounds, _pass(fetched.load(), records), _pass(files, records)
    )
    ratio = from_files.taken / through_broker.taken
    return Figure(
        f"Spark on two cores reads {_VALUE_BYTES}-byte records through the broker",
        f"{records / through_broker.taken / 1e6:.2f} M records/s",
        f"from files: {records / from_files.taken / 1e6:.2f}",
        ratio,
        "x",
        f">= {_TARGET}",
        ratio >= _TARGET,
    )


def _pass(frame: DataFrame, records: int) -> Callable[[], Seconds]:
    assert frame.count() == records

    def work() -> Seconds:
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return Seconds(time.perf_counter() - began)

    return work


def _wait_for_checkpoint(server: Server, topic: Topic, records: int) -> None:
    """Files are read up to the high watermark that the broker writes down now and then."""
    options = read_options({"path": str(server.data_dir), "subscribe": topic.name})
    deadline = time.monotonic() + brokers.TIMEOUT_S
    while sum(plan.latest_offsets(options).values()) < records:
        if time.monotonic() > deadline:
            raise RuntimeError("the broker does not write down its high watermarks")
        time.sleep(_POLL_S)


def _write(bench: Bench, spark: SparkSession, server: Server, topic: Topic, records: int) -> Figure:
    rows = spark.range(0, records, 1, 2).selectExpr(f"cast(repeat('x', {_VALUE_BYTES}) as binary) as value")
    sink = {"kafka.bootstrap.servers": f"{HOST}:{server.port}", "topic": topic.name}

    def work() -> Seconds:
        began = time.perf_counter()
        rows.write.format("ottla").options(**sink, runId=str(began)).mode("append").save()
        return Seconds(time.perf_counter() - began)

    work()
    (written,) = alternate(bench.scale.broker.rounds, work)
    rate = records / written.taken / 1e6
    what = f"Spark on two cores writes {_VALUE_BYTES}-byte records to the broker, exactly once"
    return Figure(what, f"{rate:.2f} M records/s", "", rate, "M/s", "", True)


def _remove(bench: Bench) -> None:
    for name in ("ottla", "warehouse"):
        shutil.rmtree(bench.work_dir / name, ignore_errors=True)
