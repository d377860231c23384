"""Which brokers hold new partitions: those asked for, or the ones with the fewest. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence

from ottla.cluster.image import ClusterImage, PartitionInfo
from ottla.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError

Assignments = Sequence[tuple[int, Sequence[int]]]  # (partition, its replicas)


def spread(image: ClusterImage, count: int, replication_factor: int) -> list[PartitionInfo]:
    """New partitions, each on the broker that has the fewest at that moment."""
    check_replication_factor(image, replication_factor)
    held = Counter(p.leader for topic in image.topics.values() for p in topic.partitions)
    heap = [(held[node_id], node_id) for node_id in image.brokers]
    heapq.heapify(heap)
    placed = []
    for _ in range(count):
        load, node_id = heap[0]
        heapq.heapreplace(heap, (load + 1, node_id))
        placed.append(_on((node_id,)))
    return placed


def check_replication_factor(image: ClusterImage, replication_factor: int) -> None:
    if replication_factor < 1:
        raise InvalidReplicationFactorError(
            "The replication factor must be at least 1, or -1 for the default."
        )
    if replication_factor > len(image.brokers):
        raise InvalidReplicationFactorError(
            f"Replication factor {replication_factor} is more than the {len(image.brokers)} registered broker(s)."
        )
    if replication_factor > 1:
        raise InvalidReplicationFactorError(
            f"Replication factor {replication_factor} is not there yet: ottla keeps one replica of a partition."
        )


def assigned(image: ClusterImage, assignments: Assignments, first: int) -> list[PartitionInfo]:
    """New partitions where the caller wants them; their numbers must go on from `first`."""
    numbers = sorted(number for number, _ in assignments)
    if numbers != list(range(first, first + len(numbers))):
        raise InvalidReplicaAssignmentError(
            f"The assigned partitions must be numbered {first} to {first + len(numbers) - 1}, each once."
        )
    factors = {len(replicas) for _, replicas in assignments}
    for number, replicas in assignments:
        _check_replicas(image, number, replicas)
    if len(factors) > 1:
        raise InvalidReplicaAssignmentError(
            "All partitions of a topic must have the same number of replicas."
        )
    check_replication_factor(image, max(factors))
    return [_on(tuple(replicas)) for _, replicas in sorted(assignments)]


def _check_replicas(image: ClusterImage, number: int, replicas: Sequence[int]) -> None:
    if not replicas:
        raise InvalidReplicaAssignmentError(f"Partition {number} is assigned to no broker.")
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignmentError(f"Partition {number} is assigned to the same broker twice.")
    for node_id in replicas:
        if node_id not in image.brokers:
            raise InvalidReplicaAssignmentError(
                f"Partition {number} is assigned to broker {node_id}, which is not registered."
            )


def _on(replicas: tuple[int, ...]) -> PartitionInfo:
    return PartitionInfo(leader=replicas[0], replicas=replicas, isr=replicas)
