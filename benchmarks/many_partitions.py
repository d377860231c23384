"""`ottla serve` with 10,000 partitions: how long it starts and stops, what it needs while it rests."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.reliability.child import Child
from tests.reliability.crowds import create_topic, produce_to_all

from benchmarks.measure import Bench, Figure

_AT_ONCE = 1_000  # partitions of a topic, and of a request
_REST_S, _QUICK_REST_S = 20.0, 1.0
_CLEAN_S, _KILLED_S, _STOP_S, _REST_PERCENT, _MEMORY_MIB = 5.0, 8.0, 5.0, 1.0, 120.0

_CPU_CLOCK = 2  # as clock_getcpuclockid(3) makes its numbers out of a process id


def run(bench: Bench) -> list[Figure]:
    """Every partition has a record that is new since the last stop, which is as bad as it gets."""
    count = bench.scale.many_partitions
    directory = bench.directory("many")
    broker = Child(directory / "data")
    try:
        broker.start()
        names = {f"many-{first}": min(_AT_ONCE, count - first) for first in range(0, count, _AT_ONCE)}
        for name, partitions in names.items():
            create_topic(broker, name, partitions)
            produce_to_all(broker, name, partitions, 0)
        stop_s = _timed(broker.stop)
        clean_s = _timed(broker.start)
        rest_percent = _rest(broker, _REST_S if count > _AT_ONCE else _QUICK_REST_S)
        memory_mib = _resident_mib(broker.pid)
        for name, partitions in names.items():
            produce_to_all(broker, name, partitions, 1)
        broker.kill()
        killed_s = _timed(broker.start)
        again_s = _timed(broker.stop)
    finally:
        broker.close()
        shutil.rmtree(directory)
    what = f"{count:,} partitions with a new record in each"
    return [
        _figure(f"{what}: stop", max(stop_s, again_s), "s", _STOP_S),
        _figure(f"{what}: start after a clean stop", clean_s, "s", _CLEAN_S),
        _figure(f"{what}: start after a kill", killed_s, "s", _KILLED_S),
        _figure(f"{what}: at rest", rest_percent, "% of a core", _REST_PERCENT),
        _figure(f"{what}: resident memory", memory_mib, "MiB", _MEMORY_MIB),
    ]


def _figure(what: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(what, f"{value:.2f} {unit}", "", value, unit, f"<= {limit:g}", value <= limit)


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _rest(broker: Child, rest_s: float) -> float:
    """Processor time while nobody asks for anything, in percent of a core."""
    broker.wait_until_idle()
    clock = ~broker.pid << 3 | _CPU_CLOCK
    before, began = time.clock_gettime(clock), time.monotonic()
    time.sleep(rest_s)
    return 100 * (time.clock_gettime(clock) - before) / (time.monotonic() - began)


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
