"""ottla and Kafka, or two ottlas, side by side under the same load, which comes from a process of its own.

Both brokers run from the beginning to the end of a contest and are warm before anything counts.
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from benchmarks import brokers
from benchmarks.brokers import Server
from benchmarks.load import Taken
from benchmarks.measure import Bench, Figure, Numbers, alternate, touch_memory


class Run(NamedTuple):
    """What a load took, and how busy the broker and the load were meanwhile."""

    seconds: float
    cpu_s: float
    system_s: float
    load_cpu_s: float

    def shares(self) -> str:
        """How busy both sides were, in cores: a load that is busier than its broker measures itself."""
        return f"broker {self.cpu_s / self.seconds:.2f} cores, load {self.load_cpu_s / self.seconds:.2f}"


@dataclass(frozen=True)
class Contest:
    """The brokers, ottla first, and what runs a load."""

    bench: Bench
    servers: list[Server]
    pool: ProcessPoolExecutor

    def race(self, work: Callable[[Server], Numbers]) -> list[Numbers]:
        """The median of each broker's runs, after a warm-up with the same load."""
        scale = self.bench.scale.broker
        for server in self.servers:
            began = time.monotonic()
            while time.monotonic() - began < scale.warm_s:
                work(server)
        return alternate(scale.rounds, *(partial(work, server) for server in self.servers))

    def load(self, server: Server, function: Callable[..., Taken], *args: object) -> Run:
        """Run a load in its process, and see what it costs the broker."""
        before = server.usage()
        taken = self.pool.submit(function, *args).result()
        after = server.usage()
        return Run(
            taken.seconds, after.cpu_s - before.cpu_s, after.system_s - before.system_s, taken.load_cpu_s
        )


@contextmanager
def contest(
    bench: Bench, volume_bytes: int, loads: int = 1, settings: Mapping[str, str] | None = None
) -> Iterator[Contest]:
    """Start the brokers and the processes for loads. `volume_bytes` is what a round writes at most."""
    touch_memory(2 * volume_bytes)
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        servers = [stack.enter_context(brokers.ottla(bench.work_dir, settings=settings))]
        if bench.beside is not None:
            other = brokers.ottla(bench.work_dir, settings=settings, name="before", python=bench.beside)
            servers.append(stack.enter_context(other))
        elif bench.scale.kafka_rounds:
            servers.append(stack.enter_context(brokers.kafka(bench.work_dir, settings)))
        pool = stack.enter_context(ProcessPoolExecutor(loads, mp_context=spawn))
        yield Contest(bench, servers, pool)
    for path in bench.work_dir.iterdir():
        shutil.rmtree(path)


def faster(what: str, runs: list[Run], amount: float, unit: str, target: float | None = None) -> Figure:
    """A row about speed: how much of something was done in a second."""
    texts = [f"{amount / run.seconds:,.0f} {unit} ({run.shares()})" for run in runs]
    return _row(what, texts, [amount / run.seconds for run in runs], unit, "times as fast", target, 1)


def cheaper(what: str, runs: list[Run], volume_bytes: float, target: float | None = None) -> Figure:
    """A row about the broker's processor time for a gigabyte."""
    gigabytes = volume_bytes / 1e9
    texts = [f"{run.cpu_s / gigabytes:.2f} s ({run.system_s / gigabytes:.2f} of it system)" for run in runs]
    return _row(what, texts, [run.cpu_s / gigabytes for run in runs], "s", "of Kafka's", target, -1)


def lower(what: str, values: list[float], unit: str, target: float | None) -> Figure:
    """A row about something that should be small."""
    texts = [f"{value:,.3g} {unit}" for value in values]
    return _row(what, texts, values, unit, "of Kafka's", target, -1)


def _row(
    what: str, texts: list[str], values: list[float], unit: str, ratio: str, target: float | None, sign: int
) -> Figure:
    """With Kafka beside it, the ratio is the figure; without, the number itself, which has no target."""
    if len(values) == 1:
        return Figure(what, texts[0], "", values[0], unit, "", True)
    value = values[0] / values[1]
    wanted = "" if target is None else f"{'>=' if sign > 0 else '<='} {target:g}"
    is_met = target is None or sign * value >= sign * target
    return Figure(what, texts[0], f"Kafka: {texts[1]}", value, ratio, wanted, is_met)


def beside_another(figure: Figure) -> Figure:
    """A row whose other side was not Kafka but another ottla: this one is at most 3 % worse."""
    is_faster = figure.unit == "times as fast"
    return figure._replace(
        beside=figure.beside.replace("Kafka:", "before:"),
        unit=figure.unit.replace("Kafka's", "what it was"),
        target=">= 0.97" if is_faster else "<= 1.03",
        is_met=figure.value >= 0.97 if is_faster else figure.value <= 1.03,
    )
