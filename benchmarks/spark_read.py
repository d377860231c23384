"""Reading topics into Spark: as fast as Spark takes rows, and no more of the disk or of memory than it must.

The ceiling is a source that yields ready-made Arrow batches of the same rows: what is left is Spark's own work. A read
of a whole log in one task runs in a process of its own, which tells its peak.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks import brokers, load
from benchmarks.brokers import HOST
from benchmarks.data import LARGE, PARTITION
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure, alternate, mib, touch_memory
from benchmarks.memory import peak_bytes
from benchmarks.spark_session import as_users_have_it, spark_session
from ottla.logtools.listing import list_partition
from ottla.logtools.offline import reindex
from ottla.records import batch
from ottla.records.builder import build_batch
from ottla.spark.data_source import TYPES
from ottla.spark.options import ReadOptions, read_options
from ottla.spark.read import plan
from ottla.spark.transport.files import FileTransport
from ottla.storage.fs import File, RealFileSystem
from ottla.storage.layout import LOG, segment_file
from ottla.testing.wrapped_files import WrappedFile, WrappedFileSystem

_ROOT = Path(__file__).parents[1]
_PARTITIONS = 4
_READY_ROWS = 100_000
_CONSUMER_SHARE = 10  # the Python consumer gets so much less to do
_MINUTES = 600
_START_MS = 1_700_000_000_000
_MEMORY_LIMIT_MIB = 250
_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


class Rate(NamedTuple):
    """A side of a ratio."""

    per_second: float


def run(bench: Bench) -> list[Figure]:
    return [*_through_spark(bench), *_one_large_log(bench)]


# -- through Spark


def _through_spark(bench: Bench) -> list[Figure]:
    records = bench.scale.spark_records
    requests = records // LARGE.records // _PARTITIONS * _PARTITIONS
    touch_memory(4 * requests * LARGE.records * 110)
    with brokers.ottla(bench.work_dir) as server, server.topic(_PARTITIONS) as topic:
        load.produce(topic, Shape(LARGE, _PARTITIONS, 5, _PARTITIONS), requests)
        files = {"path": str(server.data_dir), "subscribe": topic.name}
        fetched = {"kafka.bootstrap.servers": f"{HOST}:{topic.port}", "subscribe": topic.name}
        count = _wait_for_checkpoint(read_options(files), read_options(fetched))
        with spark_session(bench, as_users_have_it) as session:
            rates = _race(session, bench.scale.broker.rounds, count, files, fetched)
    shutil.rmtree(bench.work_dir / "ottla")
    ours, ceiling, fetching, consumer = rates
    what = f"read {count / 1e6:.2g} million 100-byte records, local[2]"
    return [
        _ratio(f"{what}: from files", ours, "ready-made Arrow batches", ceiling, 100, "% of its speed", 85),
        _ratio(
            f"{what}: from files",
            ours,
            "mapPartitions around confluent-kafka",
            consumer,
            1,
            "times as fast",
            10,
        ),
        _ratio(f"{what}: through Fetch", fetching, "from files", ours, 100, "% of its speed", 60),
    ]


def _race(
    session: SparkSession, rounds: int, count: int, files: dict[str, str], fetched: dict[str, str]
) -> list[float]:
    """All sides in turn; millions of records a second."""
    part = count // _CONSUMER_SHARE
    session.dataSource.register(ReadySource)
    sides = (
        _timed(count, lambda: _read(session, "ottla", files)),
        _timed(count, lambda: _read(session, "ready", {"rows": str(count)})),
        _timed(count, lambda: _read(session, "ottla", fetched)),
        _timed(part, lambda: _consumed(session, fetched, part)),
    )
    if rounds > 1:  # what the first run of each compiles does not count
        for side in sides:
            side()
    return [rate.per_second / 1e6 for rate in alternate(rounds, *sides)]


def _ratio(what: str, ours: float, name: str, beside: float, factor: int, unit: str, target: int) -> Figure:
    value = factor * ours / beside
    return Figure(
        what, f"{ours:.2f} M/s", f"{name}: {beside:.2f} M/s", value, unit, f">= {target}", value >= target
    )


def _wait_for_checkpoint(files: ReadOptions, fetched: ReadOptions) -> int:
    """Until the broker has written down how far its log may be read; the number of records."""
    deadline = time.monotonic() + 60
    while (found := plan.latest_offsets(files)) != plan.latest_offsets(fetched):
        if time.monotonic() > deadline:
            raise RuntimeError("the broker does not write its high watermarks")
        time.sleep(0.2)
    return sum(found.values())


def _timed(records: int, work: Callable[[], DataFrame]) -> Callable[[], Rate]:
    def side() -> Rate:
        frame = work()
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return Rate(records / (time.perf_counter() - began))

    return side


def _read(session: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    return session.read.format(source).options(**options).load()


class ReadySource(DataSource):
    """Yields one Arrow batch again and again."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> StructType:
        schema = StructType()
        for column in _COLUMNS:
            schema.add(column, TYPES[column])
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyReader(int(self.options["rows"]))


class ReadyReader(DataSourceReader):
    def __init__(self, rows: int) -> None:
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        tasks = 2 * _PARTITIONS
        return [
            InputPartition(self._rows * (task + 1) // tasks - self._rows * task // tasks)
            for task in range(tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        ready = _ready_batch()
        rows = partition.value
        while rows > 0:
            yield ready.slice(0, rows)
            rows -= len(ready)


def _ready_batch() -> pa.RecordBatch:
    options = read_options({"path": "/"})
    rows = _READY_ROWS
    columns: dict[str, Any] = {
        "key": [None] * rows,
        "value": [bytes(LARGE.value_bytes)] * rows,
        "topic": ["bench-12345678"] * rows,
        "partition": [0] * rows,
        "offset": list(range(rows)),
        "timestamp": [_START_MS * 1000] * rows,
        "timestampType": [0] * rows,
    }
    return pa.RecordBatch.from_pydict(columns, schema=plan.arrow_schema(options))


def _consumed(session: SparkSession, fetched: dict[str, str], records: int) -> DataFrame:
    servers, topic = fetched["kafka.bootstrap.servers"], fetched["subscribe"]
    each = records // _PARTITIONS

    def consume(partitions: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        from confluent_kafka import Consumer, TopicPartition  # its classes cannot travel to a worker

        for partition in partitions:
            consumer = Consumer(
                {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False}
            )
            consumer.assign([TopicPartition(topic, partition, 0)])
            left = each
            while left > 0:
                for message in consumer.consume(min(left, 10_000), 30.0):
                    kind, timestamp = message.timestamp()
                    left -= 1
                    yield (
                        message.key(),
                        bytearray(message.value() or b""),
                        message.topic(),
                        message.partition(),
                        message.offset(),
                        timestamp,
                        kind,
                    )
            consumer.close()

    schema = "key binary, value binary, topic string, partition int, offset long, timestamp long, timestampType int"
    rdd = session.sparkContext.parallelize(range(_PARTITIONS), _PARTITIONS).mapPartitions(consume)
    return session.createDataFrame(rdd, schema)


# -- one large log, without Spark


def _one_large_log(bench: Bench) -> list[Figure]:
    data_dir = bench.directory("large")
    size_bytes = bench.scale.memory_bytes
    _write_hours(data_dir / str(PARTITION), size_bytes)
    figures = [_window(data_dir, size_bytes), _memory(data_dir, size_bytes)]
    shutil.rmtree(data_dir)
    return figures


def _write_hours(directory: Path, size_bytes: int) -> None:
    """A log whose batches are spread evenly over ten hours, in segments of an eighth of it."""
    directory.mkdir()
    records = [(_START_MS, None, bytes(LARGE.value_bytes), ())] * LARGE.records
    made = build_batch(records, log_append_time=_START_MS)
    count = size_bytes // len(made)
    per_segment = max(1, count // 8)
    for first in range(0, count, per_segment):
        with (directory / segment_file(first * LARGE.records, LOG)).open("wb") as file:
            for number in range(first, min(count, first + per_segment)):
                time_ms = _START_MS + _MINUTES * 60_000 * number // count
                batch.patch_offsets(made, 0, number * LARGE.records, 0)
                batch.patch_times(made, 0, len(made), batch.LOG_APPEND_TIME, time_ms)
                file.write(made)
    reindex(RealFileSystem(), list_partition(RealFileSystem(), str(directory)), interval=4096, write=True)


class CountedFiles(WrappedFileSystem):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__(RealFileSystem())
        self.read = 0

    def wrapped(self, file: File) -> File:
        return _CountedFile(self, file)

    def read_bytes(self, path: str) -> bytes:
        data: bytes = super().read_bytes(path)
        self.read += len(data)
        return data


class _CountedFile(WrappedFile):
    def __init__(self, counter: CountedFiles, inner: File) -> None:
        super().__init__(counter, inner)
        self._counter = counter

    def pread(self, size: int, position: int) -> bytes:
        data = super().pread(size, position)
        self._counter.read += len(data)
        return data

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        have = super().pread_into(buffer, position)
        self._counter.read += have
        return have


def _window(data_dir: Path, size_bytes: int) -> Figure:
    start_ms = _START_MS + _MINUTES * 60_000 // 3
    options = read_options(
        {"path": str(data_dir), "startingTimestamp": str(start_ms), "endingTimestamp": str(start_ms + 60_000)}
    )
    files = CountedFiles()
    transport = FileTransport(options, files)
    start, end = plan.starting_offsets(options, transport), plan.latest_offsets(options, transport)
    splits = plan.plan_splits(options, start, end, transport)
    rows = sum(len(found) for split in splits for found in plan.read_split(options, split, transport))
    share = 100 * files.read / size_bytes
    what = f"one minute out of ten hours in {mib(size_bytes)}: bytes read"
    return Figure(
        what, f"{mib(files.read)} for {rows:,} records", "", share, "% of the log", "< 2", share < 2
    )


def _memory(data_dir: Path, size_bytes: int) -> Figure:
    base_mib, peak_mib, rate = _in_process(data_dir)
    what = f"peak memory: one task reads {mib(size_bytes)}"
    ours = f"{peak_mib:.0f} MiB, {base_mib:.0f} of them before it begins; {rate:.1f} M records/s"
    return Figure(what, ours, "", peak_mib, "MiB", f"< {_MEMORY_LIMIT_MIB}", peak_mib < _MEMORY_LIMIT_MIB)


def _read_in_one_task(data_dir: str) -> list[float]:
    options = read_options({"path": data_dir, "targetBytesPerPartition": "1024g"})
    (split,) = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    base = peak_bytes()
    began = time.process_time()
    rows = sum(len(found) for found in plan.read_split(options, split))
    rate = rows / (time.process_time() - began)
    return [base / 2**20, peak_bytes() / 2**20, rate / 1e6]


def _in_process(data_dir: Path) -> list[float]:
    """In a process of its own: so is its peak."""
    command = [sys.executable, "-m", "benchmarks.spark_read", str(data_dir)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT)
    return [float(number) for number in done.stdout.split()]


if __name__ == "__main__":
    print(*_read_in_one_task(sys.argv[1]))
