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
from typing import NamedTuple

_TOUCH_BYTES = 16 << 20


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
    lookups: int
    keys: int  # different ones in the log to compact


FULL = Scale(
    volume_bytes=1 << 30, memory_bytes=10 << 30, large_appends=5_000, small_appends=200_000, rounds=7, kafka_rounds=3,
    partitions=2_000, lookups=20_000, keys=1_000_000,
)  # fmt: skip
QUICK = Scale(
    volume_bytes=4 << 20, memory_bytes=8 << 20, large_appends=20, small_appends=500, rounds=2, kafka_rounds=1,
    partitions=20, lookups=200, keys=1_000,
)  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """What every benchmark is given."""

    scale: Scale
    work_dir: Path

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


def alternate(rounds: int, *sides: Callable[[], Cost]) -> list[Cost]:
    """The median cost of each side, after they took turns."""
    costs: list[list[Cost]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, taken in zip(sides, costs, strict=True):
            taken.append(side())
    return [Cost(*(statistics.median(column) for column in zip(*taken, strict=True))) for taken in costs]


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
