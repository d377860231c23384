"""Consumer groups: how soon a group of 20 is stable, and how many commits of offsets there are in a second.

Both without the wait for company (`group.initial.rebalance.delay.ms`), which takes as long as it is told to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from benchmarks import group_load
from benchmarks.brokers import TIMEOUT_S, Server, ask
from benchmarks.contest import Contest, Run, contest, faster, lower
from benchmarks.load import Taken
from benchmarks.measure import Bench, Figure
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

_MEMORY_BYTES = 64 << 20  # more than is ever written here
_FIND_COORDINATOR, _FIND_VERSION = 10, 3
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "50"}


def run(bench: Bench) -> list[Figure]:
    scale = bench.scale.broker
    members = group_load.MEMBERS
    figures = []
    with contest(bench, _MEMORY_BYTES, settings=_SETTINGS) as between:
        for server in between.servers:
            _await_coordinator(server.port)
        for what, target, function in (
            (f"a group of {members} becomes stable", 0.5, group_load.come),
            (f"a stable group of {members} has a rebalance", None, group_load.meet_again),
        ):
            runs = between.race(partial(_rebalances, between, function, scale.rebalances))
            figures.append(lower(what, [run.seconds * 1000 for run in runs], "ms", target))
        for partitions in (1, 10):
            runs = between.race(partial(_commits, between, partitions, scale.commits))
            what = f"commits of {partitions} offsets, {members} consumers of a group"
            figures.append(faster(what, runs, scale.commits, "commits/s", 2.0))
    return figures


def _await_coordinator(port: int) -> None:
    """Its topic is made when it is first asked for."""
    deadline = time.monotonic() + TIMEOUT_S
    while ask(port, _FIND_COORDINATOR, _FIND_VERSION, FindCoordinatorRequest(key="g")).error_code:
        if time.monotonic() > deadline:
            raise RuntimeError("there is no coordinator of groups")
        time.sleep(0.01)


def _rebalances(between: Contest, function: Callable[[int, int], Taken], count: int, server: Server) -> Run:
    return between.load(server, function, server.port, count)


def _commits(between: Contest, partitions: int, requests: int, server: Server) -> Run:
    with server.topic(partitions) as topic:
        return between.load(server, group_load.commit, topic, partitions, requests)
