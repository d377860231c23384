"""How everything here is measured, and what a figure is.

On a virtual machine the first touch of a page of memory costs far more than any later one, so that a benchmark
which fills fresh page cache measures the hypervisor. Therefore memory is touched before, both sides of a ratio
take turns in one run, data is deleted between rounds, and the median of the rounds counts.
"""

from __future__ import annotations

import mmap
import os
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOUCH_BYTES = 16 << 20
Numbers = TypeVar("Numbers", bound=tuple[float, ...])


@dataclass(frozen=True)
class BrokerScale:
    """How much is measured of a broker, in each round."""

    rounds: int
    warm_s: float  # of the same load, before
    produce_bytes: int  # in batches of 110 KB and more
    small_produce_bytes: int  # in batches of 16 KB
    requests: int  # of one record
    durable_requests: int
    log_bytes: int  # to be fetched
    fetch_passes: int  # by each of four consumers
    latency_records: int
    client_records: int
    starts: int
    transactions: int
    rebalances: int
    commits: int


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    volume_bytes: int  # of one segment
    memory_bytes: int  # of the log whose handling must not take memory
    large_appends: int
    small_appends: int
    rounds: int
    kafka_rounds: int  # 0: without Kafka
    partitions: int
    many_partitions: int  # of one broker
    lookups: int
    keys: int  # different ones in the log to compact
    spark_records: int
    broker: BrokerScale


FULL = Scale(
    volume_bytes=1 << 30, memory_bytes=10 << 30, large_appends=5_000, small_appends=200_000, rounds=7, kafka_rounds=3,
    partitions=2_000, many_partitions=10_000, lookups=20_000, keys=1_000_000, spark_records=5_000_000,
    broker=BrokerScale(
        rounds=5, warm_s=3.0, produce_bytes=384 << 20, small_produce_bytes=128 << 20, requests=40_000,
        durable_requests=640, log_bytes=256 << 20, fetch_passes=1, latency_records=3_000, client_records=300_000,
        starts=7, transactions=5_000, rebalances=10, commits=20_000,
    ),
)  # fmt: skip
QUICK = Scale(
    volume_bytes=4 << 20, memory_bytes=8 << 20, large_appends=20, small_appends=500, rounds=2, kafka_rounds=1,
    partitions=20, many_partitions=100, lookups=200, keys=1_000, spark_records=20_000,
    broker=BrokerScale(
        rounds=1, warm_s=0.0, produce_bytes=9 << 20, small_produce_bytes=1 << 20, requests=400,
        durable_requests=32, log_bytes=4 << 20, fetch_passes=1, latency_records=50, client_records=500, starts=1,
        transactions=40,
        rebalances=1, commits=200,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """What every benchmark is given."""

    scale: Scale
    work_dir: Path
    spark: SparkSession | None = None  # instead of a session of its own
    beside: str | None = None  # the Python of another ottla, which takes Kafka's place

    def directory(self, name: str) -> Path:
        path = self.work_dir / name
        path.mkdir()
        return path


class Figure(NamedTuple):
    """One row of the report. `value` is what the target is about."""

    what: str
    ours: str
    beside: str
    value: float
    unit: str
    target: str
    is_met: bool


class Cost(NamedTuple):
    """What some work took."""

    seconds: float
    user_s: float
    system_s: float

    def each(self, count: int) -> str:
        """Per piece of work, in microseconds; user and system time tell computing from writing."""
        took, user, system = (1e6 * part / count for part in self)
        return f"{took:.2f} us ({user:.2f} user, {system:.2f} system)"


def clock(work: Callable[[], object]) -> Cost:
    """Run it, and say what it took."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(seconds, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def alternate(rounds: int, *sides: Callable[[], Numbers]) -> list[Numbers]:
    """The median of what each side gives, number by number, after they took turns."""
    given: list[list[Numbers]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, taken in zip(sides, given, strict=True):
            taken.append(side())
    return [type(taken[0])(*map(statistics.median, zip(*taken, strict=True))) for taken in given]


def touch_memory(size_bytes: int) -> None:
    """Make the machine hand over this much memory, and give it back."""
    page = bytes(_TOUCH_BYTES)
    with mmap.mmap(-1, size_bytes) as memory:
        for at in range(0, size_bytes, _TOUCH_BYTES):
            memory[at : at + _TOUCH_BYTES] = page[: min(_TOUCH_BYTES, size_bytes - at)]


def warm(directory: Path) -> None:
    """Bring all files below into the page cache, with nothing left to write back."""
    os.sync()
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                buffer = bytearray(_TOUCH_BYTES)
                while file.readinto(buffer):
                    pass


def mib(size_bytes: float) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"
