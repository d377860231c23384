"""How soon a broker answers, and how much memory it takes: idle, and under all loads at once."""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import sysconfig
import time
from contextlib import ExitStack
from pathlib import Path

from tests.ports import free_ports

import ottla
from benchmarks import brokers, load
from benchmarks.brokers import Server
from benchmarks.contest import Contest, contest
from benchmarks.data import LARGE
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure
from benchmarks.produce import HUGE, ONE_RECORD
from ottla.testing.embedded import EmbeddedBroker

_START_S = 0.4
_EMBEDDED_S = 0.1
_IDLE_MIB = 80
_LOADED_MIB = 250
_LOADS = 3


def run(bench: Bench) -> list[Figure]:
    return [_start(bench, is_cold=False), _start(bench, is_cold=True), _embedded(bench), *_memory(bench)]


def _limit(what: str, value: float, text: str, unit: str, limit: float, beside: str = "") -> Figure:
    return Figure(what, text, beside, value, unit, f"<= {limit:g}", value <= limit)


def _start(bench: Bench, *, is_cold: bool) -> Figure:
    """From the start of the process, on an empty directory, to the answer to a first Metadata request."""
    taken = []
    # As pip does when it installs: Python may be told not to keep what it compiles.
    compileall.compile_dir(Path(ottla.__file__).parent, quiet=1)
    for _ in range(bench.scale.broker.starts):
        if is_cold:
            _forget_code()
        began = time.perf_counter()
        with brokers.ottla(bench.work_dir, free_ports(1)) as server:
            brokers.first_answer(server.port)
            taken.append(time.perf_counter() - began)
        shutil.rmtree(bench.work_dir / "ottla")
    code = "its code read from the disk" if is_cold else "its code in the page cache"
    what = f"`ottla serve` to the first answered Metadata request, {code}"
    text = f"median {statistics.median(taken):.3f} s (slowest {max(taken):.3f} s)"
    return _limit(what, statistics.median(taken), text, "s", _START_S)


def _forget_code() -> None:
    """Take Python's and ottla's modules out of the page cache (what this process has mapped stays)."""
    for root in {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platlib"),
        str(Path(ottla.__file__).parent),
    }:
        for directory, _, names in os.walk(root):
            for name in names:
                if name.endswith((".py", ".pyc", ".so")):
                    fd = os.open(f"{directory}/{name}", os.O_RDONLY)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)


def _embedded(bench: Bench) -> Figure:
    """In a process that has imported what a broker needs."""
    taken = []
    for _ in range(bench.scale.broker.starts + 1):
        began = time.perf_counter()
        with EmbeddedBroker():
            taken.append(time.perf_counter() - began)
    del taken[0]
    text = f"median {1e3 * statistics.median(taken):.0f} ms (slowest {1e3 * max(taken):.0f} ms)"
    return _limit("in-process broker for tests, start", statistics.median(taken), text, "s", _EMBEDDED_S)


def _memory(bench: Bench) -> list[Figure]:
    scale = bench.scale.broker
    with contest(bench, 2 * scale.produce_bytes, loads=_LOADS) as between:
        for server in between.servers:
            brokers.first_answer(server.port)
        idle = [server.memory_mib("VmRSS") for server in between.servers]
        for server in between.servers:
            _load(between, server)
        loaded = [server.memory_mib("VmHWM") for server in between.servers]
        heap = between.servers[0].memory_mib("RssAnon")
    beside = [f"Kafka: {values[1]:.0f} MiB" if len(values) > 1 else "" for values in (idle, loaded)]
    peak = f"{loaded[0]:.0f} MiB (in the end {heap:.0f} MiB that are not pages of files)"
    return [
        _limit("memory, idle", idle[0], f"{idle[0]:.0f} MiB", "MiB", _IDLE_MIB, beside[0]),
        _limit("peak memory under all loads at once", loaded[0], peak, "MiB", _LOADED_MIB, beside[1]),
    ]


def _load(between: Contest, server: Server) -> None:
    """Large batches, requests of one record on many connections, and readers, at the same time."""
    scale = between.bench.scale.broker
    with ExitStack() as stack:
        read, large, small = (stack.enter_context(server.topic(partitions)) for partitions in (1, 8, 8))
        batches = scale.log_bytes // len(LARGE.batch())
        between.load(server, load.produce, read, Shape(LARGE, 1, 5, 1), batches)
        huge = scale.produce_bytes // len(HUGE.batch())
        under_way = [
            between.pool.submit(load.produce, large, Shape(HUGE, 8, 5, 8), huge),
            between.pool.submit(load.produce, small, Shape(ONE_RECORD, 200, 5, 8), scale.requests),
            between.pool.submit(load.fetch, read, LARGE, scale.log_bytes, scale.fetch_passes, 1 << 20, 8),
        ]
        for one in under_way:
            one.result()
