"""Spark on two cores, shared with the broker, writes a topic exactly once; beside it a job around a Python producer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator

from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks import brokers
from benchmarks.brokers import HOST, Server
from benchmarks.measure import Bench, Figure, alternate
from benchmarks.spark_read import Rate
from benchmarks.spark_session import as_users_have_it, spark_session

_VALUE_BYTES = 100
_PARTITIONS = 4
_PRODUCER_SHARE = 10  # the Python producer gets so much less to do
_FLUSH_S = 60.0


def run(bench: Bench) -> list[Figure]:
    count = bench.scale.spark_records
    with spark_session(bench, as_users_have_it) as spark, brokers.ottla(bench.work_dir) as server:
        ours = _written(spark, server, count)
        theirs = _produced(spark, server, count // _PRODUCER_SHARE)
        mine, other = alternate(bench.scale.broker.rounds, ours, theirs)
    shutil.rmtree(bench.work_dir / "ottla")
    return [
        Figure(
            f"Spark on two cores writes {_VALUE_BYTES}-byte records, exactly once",
            f"{mine.per_second / 1e6:.2f} M records/s",
            f"a Python producer in each task: {other.per_second / 1e6:.2f}",
            mine.per_second / other.per_second,
            "x",
            "",
            True,
        )
    ]


def _rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, 2).selectExpr(
        "cast(cast(id as string) as binary) as key", f"cast(repeat('x', {_VALUE_BYTES}) as binary) as value"
    )


def _written(spark: SparkSession, server: Server, count: int) -> Callable[[], Rate]:
    def work() -> Rate:
        with server.topic(_PARTITIONS) as topic:
            began = time.perf_counter()
            sink = {
                "kafka.bootstrap.servers": f"{HOST}:{server.port}",
                "topic": topic.name,
                "runId": topic.name,
            }
            _rows(spark, count).write.format("ottla").options(**sink).mode("append").save()
            return Rate(count / (time.perf_counter() - began))

    return work


def _produced(spark: SparkSession, server: Server, count: int) -> Callable[[], Rate]:
    def work() -> Rate:
        with server.topic(_PARTITIONS) as topic:
            servers, name = f"{HOST}:{server.port}", topic.name
            began = time.perf_counter()

            def produce(rows: Iterable[Row]) -> Iterator[int]:
                from confluent_kafka import Producer  # a class in C, which does not travel

                producer = Producer(
                    {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
                )
                for row in rows:
                    while True:
                        try:
                            producer.produce(name, bytes(row.value), bytes(row.key))
                            break
                        except BufferError:
                            producer.poll(0.1)
                yield producer.flush(_FLUSH_S)

            assert _rows(spark, count).rdd.mapPartitions(produce).sum() == 0
            return Rate(count / (time.perf_counter() - began))

    return work
