"""Landing a topic in a Delta table: straight from the tasks, beside the same rows through Spark SQL."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from benchmarks.measure import Bench, Figure, alternate, touch_memory
from benchmarks.spark_session import as_commands_have_it, spark_session
from ottla.records import batch
from ottla.records.builder import build_batch
from ottla.spark.pipeline.config import load
from ottla.spark.pipeline.engine import SparkEngine
from ottla.spark.pipeline.run import Runner, Watcher
from ottla.storage.layout import LOG, segment_file

_PARTITIONS = 4
_BATCH_RECORDS = 1000
_START_MS = 1_700_000_000_000
_TARGET = 1.5
_SQL = '[transform]\nsql = "select *, date(at) as day from source where price > 0"\n'
_FILE = """\
[source]
path = "data"
[decode]
value = "json"
schema = "id long, item string, price double, at timestamp"
{transform}
[sink]
format = "delta"
path = "table"
[run]
checkpoint = "checkpoint"
max_records = 100_000_000
split_mb = 32
"""


class Took(NamedTuple):
    seconds: float


def run(bench: Bench) -> list[Figure]:
    place = bench.directory("pipeline")
    records = bench.scale.spark_records
    touch_memory(4 * records * 110)
    write_topic(place / "data", records)
    with spark_session(bench, as_commands_have_it) as session:
        straight, sql = _race(session, place, bench.scale.broker.rounds, records)
    shutil.rmtree(place)
    value = sql / straight
    what = f"land {records / 1e6:.2g} million JSON records in a Delta table, local[2]: without a transform"
    ours, beside = (f"{records / seconds / 1e6:.2f} M/s" for seconds in (straight, sql))
    return [
        Figure(what, ours, f"with one: {beside}", value, "times as fast", f">= {_TARGET}", value >= _TARGET)
    ]


def write_topic(data_dir: Path, records: int) -> None:
    """Segments of a topic, as a broker would have written them."""
    each = max(1, records // _PARTITIONS // _BATCH_RECORDS)
    for partition in range(_PARTITIONS):
        directory = data_dir / f"orders-{partition}"
        directory.mkdir(parents=True)
        made = build_batch([(_START_MS, None, _value(number), ()) for number in range(_BATCH_RECORDS)])
        with (directory / segment_file(0, LOG)).open("wb") as file:
            for number in range(each):
                batch.patch_offsets(made, 0, number * _BATCH_RECORDS, 0)
                file.write(made)


def _value(number: int) -> bytes:
    return b'{"id": %d, "item": "a book about logs", "price": %d.5, "at": "2026-01-01T12:00:00.%03dZ"}' % (
        10**9 + number,
        number % 90,
        number % 1000,
    )


class _Nobody(Watcher):
    """Watches in silence: the methods of the protocol do nothing."""


def _race(session: SparkSession, place: Path, rounds: int, records: int) -> tuple[float, float]:
    def land(transform: str) -> Took:
        file = place / "pipeline.toml"
        file.write_text(_FILE.format(transform=transform))
        pipeline = load(file)
        began = time.perf_counter()
        summary = Runner(pipeline, lambda: SparkEngine(session, pipeline, print), _Nobody()).run()  # type: ignore[abstract]
        took = Took(time.perf_counter() - began)
        if abs(summary.read - records) > _PARTITIONS * _BATCH_RECORDS:
            raise RuntimeError(f"{summary.read} of {records} records were read")
        for name in ("table", "checkpoint"):
            shutil.rmtree(place / name)
        return took

    sides = (lambda: land(""), lambda: land(_SQL))
    if rounds > 1:  # what the first run of each compiles does not count
        for side in sides:
            side()
    straight, sql = alternate(rounds, *sides)
    return straight.seconds, sql.seconds
