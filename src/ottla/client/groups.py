"""A group's offsets, committed and read without being a member: where readers that assign themselves stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import GROUP, Cluster, Key, PartitionKey
from ottla.client.failures import check
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

NO_OFFSET = -1
# The last versions that name topics, and that ask for one group.
_COMMIT_BY_NAME = 9
_ONE_GROUP = 7


class Committed(NamedTuple):
    """An offset that a group has committed, and what was said with it."""

    offset: int
    metadata: str = ""


def commit_offsets(
    cluster: Cluster, group: str, offsets: Mapping[Key, int] | Mapping[Key, Committed]
) -> None:
    """Commit for a group that has no members; with members it is refused."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), given in offsets.items():
        entry = given if isinstance(given, Committed) else Committed(given)
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=entry.offset, committed_metadata=entry.metadata
            )
        )
    request = OffsetCommitRequest(group_id=group, topics=list(topics.values()))

    def commit() -> None:
        answer = cluster.ask(cluster.coordinator(GROUP, group), request, _COMMIT_BY_NAME)
        for topic in answer.topics:
            for entry in topic.partitions:
                check(entry.error_code, f"group {group}, {topic.name}-{entry.partition_index}")

    if topics:
        cluster.retrying(commit)


def fetch_offsets(
    cluster: Cluster,
    group: str,
    partitions: Iterable[PartitionKey] | None = None,
    *,
    require_stable: bool = False,
) -> dict[PartitionKey, Committed]:
    """What a group has committed, of some partitions or of all; partitions without an offset are left out.

    With `require_stable`, an offset that is part of an open transaction is waited for.
    """
    topics: dict[str, OffsetFetchRequestTopic] | None = None
    if partitions is not None:
        topics = {}
        for name, index in partitions:
            topics.setdefault(name, OffsetFetchRequestTopic(name=name)).partition_indexes.append(index)
    request = OffsetFetchRequest(
        group_id=group,
        topics=None if topics is None else list(topics.values()),
        require_stable=require_stable,
    )

    def fetch() -> dict[PartitionKey, Committed]:
        answer = cluster.ask(cluster.coordinator(GROUP, group), request, _ONE_GROUP)
        check(answer.error_code, f"group {group}")
        found = {}
        for topic in answer.topics:
            for entry in topic.partitions:
                check(entry.error_code, f"group {group}, {topic.name}-{entry.partition_index}")
                if entry.committed_offset != NO_OFFSET:
                    key = topic.name, entry.partition_index
                    found[key] = Committed(entry.committed_offset, entry.metadata or "")
        return found

    return cluster.retrying(fetch)
