"""Opening a broker's worth of partitions after a clean stop."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.data import SMALL, managed
from benchmarks.measure import Bench, Cost, Figure, alternate, clock
from ottla.names import TopicPartition

_LIMIT_S = 2


def run(bench: Bench) -> list[Figure]:
    source = bench.directory("partitions")
    _write(source, bench.scale.partitions)
    (cost,) = alternate(bench.scale.rounds, lambda: _open(source, bench.work_dir / "copy"))
    shutil.rmtree(source)
    what = f"open {bench.scale.partitions:,} partitions after a clean stop"
    ours = f"{cost.seconds:.2f} s ({cost.user_s:.2f} user, {cost.system_s:.2f} system)"
    return [Figure(what, ours, "", cost.seconds, "s", f"< {_LIMIT_S}", cost.seconds < _LIMIT_S)]


def _write(data_dir: Path, count: int) -> None:
    with managed(data_dir) as manager:
        manager.open()
        for number in range(count):
            manager.get_or_create(TopicPartition("bench", number)).append_as_leader(SMALL.batch(), 0)
        manager.close()


def _open(source: Path, data_dir: Path) -> Cost:
    """An open directory is no longer as a clean stop left it, so each round has a copy."""
    shutil.copytree(source, data_dir)
    with managed(data_dir) as manager:
        cost = clock(manager.open)
    shutil.rmtree(data_dir)
    return cost
