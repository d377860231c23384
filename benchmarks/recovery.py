"""Opening a log after a crash, beside Apache Kafka's recovery of the same directory."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import kafka
from benchmarks.data import LARGE, PARTITION, SMALL, Kind, managed, write_log
from benchmarks.measure import Bench, Cost, Figure, alternate, clock, mib, warm
from ottla.storage import layout


def run(bench: Bench) -> list[Figure]:
    return [figure for kind in (LARGE, SMALL) for figure in _measure(bench, kind)]


def _measure(bench: Bench, kind: Kind) -> list[Figure]:
    data_dir = bench.directory("recovery")
    write_log(data_dir, kind, bench.scale.volume_bytes)
    warm(data_dir)
    sides = [lambda: _recover(data_dir)]
    if bench.scale.kafka_rounds:
        sides.append(lambda: _kafka(data_dir / str(PARTITION), bench.work_dir / "kafka"))
    costs = alternate(bench.scale.kafka_rounds or bench.scale.rounds, *sides)
    shutil.rmtree(data_dir)
    ours, what = costs[0].seconds, f"recover {mib(bench.scale.volume_bytes)} of {kind.name} after a crash"
    if len(costs) == 1:
        return [Figure(what, f"{ours:.3f} s", "", ours, "s", "", True)]
    value = costs[1].seconds / ours
    beside = f"Kafka: {costs[1].seconds:.3f} s"
    return [Figure(what, f"{ours:.3f} s", beside, value, "times as fast", ">= 4", value >= 4)]


def _recover(data_dir: Path) -> Cost:
    """As after a crash before the first checkpoint: all is read again. The close makes the directory clean again."""
    for name in (layout.CLEAN_SHUTDOWN, layout.RECOVERY_POINTS):
        (data_dir / name).unlink()
    with managed(data_dir) as manager:
        cost = clock(manager.open)
        manager.close()
    return cost


def _kafka(source: Path, work_dir: Path) -> Cost:
    seconds = kafka.recovery_seconds(source, work_dir)
    shutil.rmtree(work_dir)
    return Cost(seconds, 0.0, 0.0)
