"""Appending with every check, beside a loop that only writes the same bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.data import LARGE, OFFSETS_BYTES, PARTITION, SMALL, Kind, managed
from benchmarks.measure import Bench, Cost, Figure, alternate, clock, touch_memory


def run(bench: Bench) -> list[Figure]:
    scale = bench.scale
    figures = []
    for kind, count in ((LARGE, scale.large_appends), (SMALL, scale.small_appends)):
        ours, bare, size = _measure(bench, kind, count)
        if kind is LARGE:
            value, unit, target = 100 * bare.seconds / ours.seconds, "% of its speed", ">= 60"
            is_met = value >= 60
        else:
            value, unit, target = ours.seconds / bare.seconds, "times its cost", "<= 10"
            is_met = value <= 10
        rate = count * size / ours.seconds / 1e6
        what = f"append {kind.name} ({rate:,.0f} MB/s)"
        beside = f"bare write: {bare.each(count)}"
        figures.append(Figure(what, ours.each(count), beside, value, unit, target, is_met))
    return figures


def _measure(bench: Bench, kind: Kind, count: int) -> tuple[Cost, Cost, int]:
    data = kind.batch()
    head = bytes(data[:OFFSETS_BYTES])
    touch_memory(2 * count * len(data))
    ours, bare = alternate(
        bench.scale.rounds,
        lambda: _append(bench.directory("append"), data, head, count),
        lambda: _write(bench.work_dir / "bare", data, head, count),
    )
    return ours, bare, len(data)


def _append(data_dir: Path, data: bytearray, head: bytes, count: int) -> Cost:
    def loop() -> None:
        append = log.append_as_leader
        for _ in range(count):
            data[:OFFSETS_BYTES] = head
            append(data, 0)

    with managed(data_dir) as manager:
        manager.open()
        log = manager.get_or_create(PARTITION)
        log.append_as_leader(bytearray(data), 0)  # which makes the leader epoch durable, once
        cost = clock(loop)
    shutil.rmtree(data_dir)
    return cost


def _write(path: Path, data: bytearray, head: bytes, count: int) -> Cost:
    def loop() -> None:
        write, position = os.pwrite, 0
        for _ in range(count):
            data[:OFFSETS_BYTES] = head
            position += write(fd, data, position)

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        return clock(loop)
    finally:
        os.close(fd)
        path.unlink()
