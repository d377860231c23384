"""Fetching a partition from its beginning to its end, 1 MiB at a time, from the page cache."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks import load
from benchmarks.contest import contest, faster
from benchmarks.data import LARGE
from benchmarks.load import Shape
from benchmarks.measure import Bench, Figure, mib

_SIZE_BYTES = 1 << 20
_CONSUMERS = (1, 4)  # one is what the target is about


def run(bench: Bench) -> list[Figure]:
    scale = bench.scale.broker
    figures = []
    with contest(bench, scale.log_bytes) as between, ExitStack() as stack:
        topics = {}
        for server in between.servers:
            topics[server.name] = topic = stack.enter_context(server.topic(1))
            batches = scale.log_bytes // len(LARGE.batch())
            between.load(server, load.produce, topic, Shape(LARGE, 1, 5, 1), batches)
        for consumers in _CONSUMERS:
            passes = scale.fetch_passes * max(_CONSUMERS) // consumers
            runs = between.race(
                lambda server, consumers=consumers, passes=passes: between.load(
                    server,
                    load.fetch,
                    topics[server.name],
                    LARGE,
                    scale.log_bytes,
                    passes,
                    _SIZE_BYTES,
                    consumers,
                )
            )
            volume_mb = passes * consumers * scale.log_bytes / 1e6
            what = f"fetch {mib(_SIZE_BYTES)} at a time, {LARGE.name}, {consumers} consumer{'s' * (consumers > 1)}"
            figures.append(faster(what, runs, volume_mb, "MB/s", 1.5 if consumers == 1 else None))
    return figures
