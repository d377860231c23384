"""Producing: large, middle and small batches, and requests of one record; and what that costs the broker."""

from __future__ import annotations

from benchmarks import load
from benchmarks.brokers import Server
from benchmarks.contest import Contest, Run, cheaper, contest, faster
from benchmarks.data import LARGE, Kind
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure

_VALUE_BYTES = LARGE.value_bytes  # of 100-byte records
_CPU_TARGET = 0.5
ONE_RECORD = Kind("one-record requests", 1, _VALUE_BYTES)
HUGE = Kind("1 MB batches", 10_000, _VALUE_BYTES)
_MIDDLE = Kind("16 KB batches", 160, _VALUE_BYTES)
_WINDOW = 5  # as clients have it by default


def run(bench: Bench) -> list[Figure]:
    scale = bench.scale.broker
    with contest(bench, scale.produce_bytes) as between:
        return [
            *_batches(between, Shape(LARGE, 4, _WINDOW, 4), scale.produce_bytes, 3),
            *_batches(between, Shape(_MIDDLE, 4, _WINDOW, 4), scale.small_produce_bytes, 2.5),
            *_batches(between, Shape(HUGE, 4, _WINDOW, 4), scale.produce_bytes, 3),
            _one_record(between, Shape(ONE_RECORD, 8, _WINDOW, 8), scale.requests),
        ]


def _batches(between: Contest, shape: Shape, volume_bytes: int, target: float) -> list[Figure]:
    size_bytes = len(shape.kind.batch())
    requests = volume_bytes // size_bytes // shape.connections * shape.connections
    volume_bytes = requests * size_bytes
    runs = between.race(lambda server: _produce(between, server, shape, requests))
    what = f"{shape.kind.name} of 100-byte records, {shape.connections} connections"
    return [
        faster(f"produce {what}", runs, volume_bytes / 1e6, "MB/s", target),
        cheaper(f"broker CPU per GB, produce {shape.kind.name}", runs, volume_bytes, _CPU_TARGET),
    ]


def _one_record(between: Contest, shape: Shape, requests: int) -> Figure:
    runs = between.race(lambda server: _produce(between, server, shape, requests))
    return faster(
        f"produce {shape.kind.name}, {shape.connections} connections", runs, requests, "requests/s", 2
    )


def _produce(between: Contest, server: Server, shape: Shape, requests: int) -> Run:
    with server.topic(shape.partitions) as topic:
        return between.load(server, load.produce, topic, shape, requests)
