"""How soon a broker answers, and how much memory it takes: idle, and under all loads at once."""

from __future__ import annotations

import shutil
import statistics
import time

from tests.interop.kafka import free_port

from benchmarks import brokers
from benchmarks.measure import Bench, Figure
from ottla.testing.embedded import EmbeddedBroker

_START_S = 0.4
_EMBEDDED_S = 0.1
_IDLE_MIB = 80
_LOADED_MIB = 250
_LOADS = 3


def run(bench: Bench) -> list[Figure]:
    return [_start(bench), _embedded(bench), *_memory(bench)]


def _limit(what: str, value: float, text: str, unit: str, limit: float, beside: str = "") -> Figure:
    return Figure(what, text, beside, value, unit, f"<= {limit:g}", value <= limit)


def _start(bench: Bench) -> Figure:
    """From the start of the process, on an empty directory, to the answer to a first Metadata request."""
    taken = []
    for _ in range(bench.scale.broker.starts):
        began = time.perf_counter()
        with brokers.ottla(bench.work_dir, free_port()) as server:
            brokers.first_answer(server.port)
            taken.append(time.perf_counter() - began)
        shutil.rmtree(bench.work_dir / "ottla")
    text = f"median {statistics.median(taken):.3f} s (slowest {max(taken):.3f} s)"
    return _limit(
        "`ottla serve` to the first answered Metadata request", statistics.median(taken), text, "s", _START_S
    )


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
