"""How far consumer groups are behind, as Prometheus reads it: worked out at each scrape, a slice a turn of the loop.

The names are those of kafka_exporter, so that dashboards made for it find them. A lag is told for partitions that this
broker leads; of the others it knows only what was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ottla.coordinator.groups.coordinator import GroupCoordinator
from ottla.names import TopicPartition
from ottla.replica.manager import ReplicaManager

MAX_SERIES = 50_000  # partitions of groups that one answer tells of; LEFT_OUT counts the others
OFFSET = "kafka_consumergroup_current_offset"
LAG = "kafka_consumergroup_lag"
LEFT_OUT = "ottla_consumergroup_left_out"
_SLICE = 500


async def render(groups: GroupCoordinator, replicas: ReplicaManager) -> bytes:
    """The lines of `/metrics` about groups."""
    offsets = [f"# HELP {OFFSET} The offset that a group has committed.", f"# TYPE {OFFSET} gauge"]
    lags = [f"# HELP {LAG} Records that a group has not committed yet.", f"# TYPE {LAG} gauge"]
    left_out = seen = 0
    for group, key, committed in _committed(groups):
        seen += 1
        if seen % _SLICE == 0:
            await asyncio.sleep(0)
        if seen > MAX_SERIES:
            left_out += 1
            continue
        labels = f'consumergroup="{_escaped(group)}",partition="{key.partition}",topic="{key.topic}"'
        offsets.append(f"{OFFSET}{{{labels}}} {committed}")
        partition = replicas.partition(key)
        if partition is not None and partition.is_leader and partition.log is not None:
            lags.append(f"{LAG}{{{labels}}} {max(0, partition.log.high_watermark - committed)}")
    told = (
        f"# HELP {LEFT_OUT} Partitions of groups that are too many to be told.",
        f"# TYPE {LEFT_OUT} gauge",
        f"{LEFT_OUT} {left_out}",
    )
    return "\n".join([*offsets, *lags, *told, ""]).encode()


def _committed(groups: GroupCoordinator) -> Iterator[tuple[str, TopicPartition, int]]:
    """Each group's committed offsets. Between two of them groups may come and go."""
    for state in groups.states():
        for group in list(state.offsets.groups()):
            for place, stored in state.offsets.of(group).items():
                yield group, TopicPartition(*place), stored.offset


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
