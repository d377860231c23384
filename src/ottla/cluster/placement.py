"""Which brokers hold new partitions: those asked for, or the ones with the fewest. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.cluster.image import ClusterImage, PartitionInfo
from ottla.errors import InvalidReplicaAssignmentError, InvalidReplicationFactorError

Assignments = Sequence[tuple[int, Sequence[int]]]  # (partition, its replicas)


class Placement:
    """Places the new partitions of one request, each with the ones before it in mind."""

    def __init__(self, image: ClusterImage) -> None:
        self._node_ids = sorted(image.brokers)
        self._led = Counter(p.leader for topic in image.topics.values() for p in topic.partitions)

    def spread(self, count: int, replication_factor: int) -> list[PartitionInfo]:
        """New partitions, each on the broker that leads the fewest at that moment."""
        self._check_replication_factor(replication_factor)
        return [self._on((min(self._node_ids, key=self._led.__getitem__),)) for _ in range(count)]

    def assigned(self, assignments: Assignments, first: int) -> list[PartitionInfo]:
        """New partitions where the caller wants them; their numbers must go on from `first`."""
        numbers = sorted(number for number, _ in assignments)
        if numbers != list(range(first, first + len(numbers))):
            raise InvalidReplicaAssignmentError(
                f"The assigned partitions must be numbered {first} to {first + len(numbers) - 1}, each once."
            )
        for number, replicas in assignments:
            self._check_replicas(number, replicas)
        factors = {len(replicas) for _, replicas in assignments}
        if len(factors) > 1:
            raise InvalidReplicaAssignmentError("All partitions of a topic must have as many replicas.")
        self._check_replication_factor(max(factors))
        return [self._on(tuple(replicas)) for _, replicas in sorted(assignments)]

    def _on(self, replicas: tuple[int, ...]) -> PartitionInfo:
        self._led[replicas[0]] += 1
        return PartitionInfo(leader=replicas[0], replicas=replicas, isr=replicas)

    def _check_replication_factor(self, factor: int) -> None:
        if factor < 1:
            raise InvalidReplicationFactorError(
                "The replication factor must be at least 1, or -1 for the default."
            )
        if factor > len(self._node_ids):
            raise InvalidReplicationFactorError(
                f"Replication factor {factor} is more than the {len(self._node_ids)} registered broker(s)."
            )
        if factor > 1:
            raise InvalidReplicationFactorError(
                f"Replication factor {factor} is not there yet: ottla keeps one replica of a partition."
            )

    def _check_replicas(self, number: int, replicas: Sequence[int]) -> None:
        if not replicas:
            raise InvalidReplicaAssignmentError(f"Partition {number} is assigned to no broker.")
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignmentError(f"Partition {number} is assigned to the same broker twice.")
        for node_id in replicas:
            if node_id not in self._node_ids:
                raise InvalidReplicaAssignmentError(
                    f"Partition {number} is assigned to broker {node_id}, which is not registered."
                )
