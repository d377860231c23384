"""Producing where every record is on the disk before it is acknowledged: `flush.messages=1`."""

from __future__ import annotations

from functools import partial

from benchmarks import load
from benchmarks.brokers import Server
from benchmarks.contest import Contest, Run, contest, faster
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure
from benchmarks.produce import ONE_RECORD

_PRODUCERS = 16
_MEMORY_BYTES = 64 << 20  # more than is ever written here


def run(bench: Bench) -> list[Figure]:
    """Into one partition, where one flush can serve all; and into one for each producer, where it cannot."""
    requests = bench.scale.broker.durable_requests
    figures = []
    with contest(bench, _MEMORY_BYTES) as between:
        for partitions, target in ((1, 3.0), (_PRODUCERS, None)):
            shape = Shape(ONE_RECORD, _PRODUCERS, 1, partitions)
            runs = between.race(partial(_produce, between, shape, requests))
            into = "one partition" if partitions == 1 else f"{partitions} partitions"
            what = f"produce with flush.messages=1, {_PRODUCERS} producers, {into}"
            figures.append(faster(what, runs, requests, "requests/s", target))
    return figures


def _produce(between: Contest, shape: Shape, requests: int, server: Server) -> Run:
    with server.topic(shape.partitions, {"flush.messages": "1"}) as topic:
        return between.load(server, load.produce, topic, shape, requests)
