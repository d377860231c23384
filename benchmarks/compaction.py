"""Compacting a log, beside Apache Kafka's cleaner on the same directory."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import kafka
from benchmarks.data import COMPACTED, PARTITION, managed, write_keyed_log
from benchmarks.measure import Bench, Cost, Figure, alternate, clock, mib, touch_memory, warm
from ottla.config import BrokerConfig
from ottla.runtime import SystemRuntime
from ottla.storage.cleaning import compaction


def run(bench: Bench) -> list[Figure]:
    source = bench.directory("compaction")
    write_keyed_log(source, bench.scale.keys, bench.scale.volume_bytes)
    warm(source)
    touch_memory(bench.scale.volume_bytes)
    sides = [lambda: _compact(source, bench.work_dir / "copy")]
    if bench.scale.kafka_rounds:
        sides.append(lambda: _kafka(source / str(PARTITION), bench.work_dir / "kafka"))
    costs = alternate(bench.scale.kafka_rounds or bench.scale.rounds, *sides)
    shutil.rmtree(source)
    what = f"compact {mib(bench.scale.volume_bytes)} with {bench.scale.keys:,} different keys"
    ours = costs[0].seconds
    if len(costs) == 1:
        return [Figure(what, f"{ours:.3f} s", "", ours, "s", "", True)]
    value = costs[1].seconds / ours
    beside = f"Kafka: {costs[1].seconds:.3f} s"
    return [Figure(what, f"{ours:.3f} s", beside, value, "times as fast", ">= 1", value >= 1)]


def _compact(source: Path, data_dir: Path) -> Cost:
    """On a copy: a compacted log has nothing left to compact."""
    shutil.copytree(source, data_dir)
    warm(data_dir)
    defaults = BrokerConfig(log_dirs=(str(data_dir),))
    runtime = SystemRuntime()
    with managed(data_dir, COMPACTED) as manager:
        manager.open()
        log = manager.get_or_create(PARTITION)
        log.raise_high_watermark(log.end_offset)
        before = log.size_bytes
        cost = clock(
            lambda: compaction.compact(
                log,
                None,
                runtime.now_ms(),
                runtime,
                map_bytes=defaults.log_cleaner_dedupe_buffer_size,
                load_factor=defaults.log_cleaner_io_buffer_load_factor,
            )
        )
        if log.size_bytes >= before:
            raise RuntimeError("nothing was compacted")
    runtime.close()
    shutil.rmtree(data_dir)
    return cost


def _kafka(source: Path, work_dir: Path) -> Cost:
    seconds = kafka.clean(source, work_dir).seconds
    shutil.rmtree(work_dir)
    return Cost(seconds, 0.0, 0.0)
