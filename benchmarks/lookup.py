"""Finding a batch by offset in a large segment, at random and once everything is warm."""

from __future__ import annotations

import random
import shutil
import statistics
import time

from benchmarks.data import LARGE, PARTITION, SEED, SMALL, Kind, managed, write_log
from benchmarks.measure import Bench, Figure, mib
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log

_LIMIT_US = 20


def run(bench: Bench) -> list[Figure]:
    return [_measure(bench, kind) for kind in (LARGE, SMALL)]


def _measure(bench: Bench, kind: Kind) -> Figure:
    data_dir = bench.directory("lookup")
    write_log(data_dir, kind, bench.scale.volume_bytes)
    with managed(data_dir) as manager:
        manager.open()
        log = manager.get_or_create(PARTITION)
        log.raise_high_watermark(log.end_offset)
        chance = random.Random(SEED)
        offsets = [chance.randrange(log.end_offset) for _ in range(bench.scale.lookups)]
        _time_reads(log, offsets)
        took_us = [took_ns / 1000 for took_ns in _time_reads(log, offsets)]
    shutil.rmtree(data_dir)
    median = statistics.median(took_us)
    slow = statistics.quantiles(took_us, n=100)[98]
    what = f"look up an offset in a segment of {mib(bench.scale.volume_bytes)}, {kind.name}"
    ours = f"median {median:.1f} us, 99th percentile {slow:.1f} us"
    return Figure(what, ours, "", median, "us", f"< {_LIMIT_US}", median < _LIMIT_US)


def _time_reads(log: Log, offsets: list[int]) -> list[int]:
    took = []
    for offset in offsets:
        began = time.perf_counter_ns()
        log_reader.read(log, offset, 1)
        took.append(time.perf_counter_ns() - began)
    return took
