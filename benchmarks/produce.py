"""Producing: large, middle and small batches, and requests of one record; and what that costs the broker.

A producer has one connection to a broker and, by default, five requests under way on it. So batches come from one
producer; what four of them reach is shown beside it.
"""

from __future__ import annotations

from functools import partial

from benchmarks import load
from benchmarks.brokers import Server
from benchmarks.contest import Contest, Run, cheaper, contest, faster
from benchmarks.data import LARGE, Kind
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure

_VALUE_BYTES = LARGE.value_bytes  # of 100-byte records
_CPU_TARGET = 0.5
_UNDER_WAY = 5
ONE_RECORD = Kind("one-record requests", 1, _VALUE_BYTES)
HUGE = Kind("1 MB batches", 10_000, _VALUE_BYTES)
_MIDDLE = Kind("16 KB batches", 160, _VALUE_BYTES)


def run(bench: Bench) -> list[Figure]:
    scale = bench.scale.broker
    with contest(bench, scale.produce_bytes) as between:
        return [
            *_batches(between, LARGE, scale.produce_bytes, 3),
            *_batches(between, _MIDDLE, scale.small_produce_bytes, 2.5),
            *_batches(between, HUGE, scale.produce_bytes, 3),
            _one_record(between, _UNDER_WAY, scale.requests, 2),
            _one_record(between, 1, scale.requests // 2, 2),
        ]


def _batches(between: Contest, kind: Kind, volume_bytes: int, target: float) -> list[Figure]:
    size_bytes = len(kind.batch())
    requests = volume_bytes // size_bytes // 4 * 4
    volume_bytes = requests * size_bytes
    alone, together = (
        between.race(partial(_produce, between, Shape(kind, producers, _UNDER_WAY, producers), requests))
        for producers in (1, 4)
    )
    what = f"{kind.name} of 100-byte records"
    return [
        faster(f"produce {what}", alone, volume_bytes / 1e6, "MB/s", target),
        cheaper(f"broker CPU per GB, produce {what}", alone, volume_bytes, _CPU_TARGET),
        faster(f"produce {what}, 4 producers", together, volume_bytes / 1e6, "MB/s"),
    ]


def _one_record(between: Contest, under_way: int, requests: int, target: float) -> Figure:
    shape = Shape(ONE_RECORD, 8, under_way, 8)
    runs = between.race(partial(_produce, between, shape, requests))
    how = "one at a time" if under_way == 1 else f"{under_way} under way on each"
    return faster(f"produce {ONE_RECORD.name}, 8 connections, {how}", runs, requests, "requests/s", target)


def _produce(between: Contest, shape: Shape, requests: int, server: Server) -> Run:
    with server.topic(shape.partitions) as topic:
        return between.load(server, load.produce, topic, shape, requests)
