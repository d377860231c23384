"""Fetching a partition from its beginning to its end, 1 MiB at a time, from the page cache."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from benchmarks import load
from benchmarks.brokers import Server, Topic
from benchmarks.contest import Contest, Run, contest, faster
from benchmarks.data import LARGE
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure, mib

_SIZE_BYTES = 1 << 20


def run(bench: Bench) -> list[Figure]:
    scale = bench.scale.broker
    figures = []
    with contest(bench, scale.log_bytes) as between, ExitStack() as stack:
        topics = {}
        for server in between.servers:
            topics[server.name] = topic = stack.enter_context(server.topic(1))
            batches = scale.log_bytes // len(LARGE.batch())
            between.load(server, load.produce, topic, Shape(LARGE, 1, 5, 1), batches)
        for consumers, target in ((1, 1.5), (4, None)):
            passes = scale.fetch_passes * 4 // consumers
            job = (LARGE, scale.log_bytes, passes, _SIZE_BYTES, consumers)
            runs = between.race(partial(_fetch, between, topics, job))
            volume_mb = passes * consumers * scale.log_bytes / 1e6
            who = "one consumer" if consumers == 1 else f"{consumers} consumers"
            what = f"fetch {mib(_SIZE_BYTES)} at a time, {LARGE.name}, {who}"
            figures.append(faster(what, runs, volume_mb, "MB/s", target))
    return figures


def _fetch(between: Contest, topics: dict[str, Topic], job: tuple[object, ...], server: Server) -> Run:
    return between.load(server, load.fetch, topics[server.name], *job)
