"""Rules about the replicas that are in sync. Pure: numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def effective_minimum(min_insync_replicas: int, replica_count: int) -> int:
    """How many replicas must be in sync: no more than there are."""
    return min(min_insync_replicas, replica_count)


def high_watermark(
    leader_id: int, leader_end: int, follower_ends: Mapping[int, int], isr: Collection[int]
) -> int:
    """What every replica in sync has: the lowest of their end offsets. A follower not heard of yet has nothing."""
    ends = [follower_ends.get(node, 0) for node in isr if node != leader_id]
    return min(leader_end, *ends) if ends else leader_end
