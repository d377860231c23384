"""Reading from a cluster: where partitions begin and end, and their batches as they lie on disk."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster, Key, PartitionKey
from ottla.client.failures import check, is_transient
from ottla.errors import BrokerError, CodedError, CorruptRecordError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.records import kernel

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST, EARLIEST = -1, -2  # instead of a time
NO_OFFSET = -1
DEFAULT_MAX_BYTES = 8 << 20
_MAX_WAIT_MS = 500
_BY_NAME = 12  # the last version of Fetch that names topics
_SCAN_ROWS = 2048


class FoundOffset(NamedTuple):
    """Where a time was found; `NO_OFFSET` if every record is older."""

    offset: int
    timestamp: int


class Fetched(NamedTuple):
    """Whole batches beginning with the one that holds the offset, and what the broker says of the partition.

    `next_offset` is where to go on; without batches it is the offset asked for. `aborted` are the transactions that
    were given up, as (producer id, first offset): with READ_COMMITTED their records are for the reader to leave out.
    """

    records: memoryview
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]


def list_offsets(
    cluster: Cluster, wanted: Mapping[Key, int], isolation: int = READ_UNCOMMITTED
) -> dict[PartitionKey, FoundOffset]:
    """For each partition the first offset at or after a time in ms, or `EARLIEST`, or `LATEST`.

    With READ_COMMITTED, LATEST is where the first open transaction begins.
    """
    found: dict[PartitionKey, FoundOffset] = {}

    def ask() -> dict[PartitionKey, FoundOffset]:
        by_leader: dict[int, list[Key]] = {}
        for key in wanted:
            if key not in found:
                by_leader.setdefault(cluster.leader(key), []).append(key)
        failure: BrokerError | None = None
        for leader, keys in by_leader.items():
            try:
                failure = (
                    _list_at(cluster, leader, {key: wanted[key] for key in keys}, isolation, found) or failure
                )
            except BrokerError as error:
                if not is_transient(error):
                    raise
                failure = error
        if failure is not None:
            raise failure
        return found

    return cluster.retrying(ask)


def _list_at(
    cluster: Cluster,
    leader: int,
    wanted: Mapping[Key, int],
    isolation: int,
    found: dict[PartitionKey, FoundOffset],
) -> BrokerError | None:
    topics: dict[str, ListOffsetsTopic] = {}
    for (name, index), at in wanted.items():
        topic = topics.setdefault(name, ListOffsetsTopic(name=name))
        topic.partitions.append(ListOffsetsPartition(partition_index=index, timestamp=at))
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=list(topics.values()),
        timeout_ms=int(cluster.timeout_s * 1000),
    )
    failure = None
    for answered in cluster.ask(leader, request).topics:
        for entry in answered.partitions:
            key = answered.name, entry.partition_index
            try:
                check(entry.error_code, f"{key[0]}-{key[1]}")
            except CodedError as error:
                if not is_transient(error):
                    raise
                failure = error
            else:
                found[key] = FoundOffset(entry.offset, entry.timestamp)
    return failure


def end_offsets(
    cluster: Cluster, partitions: Iterable[PartitionKey], isolation: int = READ_UNCOMMITTED
) -> dict[PartitionKey, int]:
    """The end of each partition, as a consumer with that isolation level sees it."""
    found = list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation)
    return {key: entry.offset for key, entry in found.items()}


def fetch_raw(
    cluster: Cluster,
    partition: PartitionKey,
    offset: int,
    max_bytes: int = DEFAULT_MAX_BYTES,
    isolation: int = READ_UNCOMMITTED,
    max_wait_ms: int = _MAX_WAIT_MS,
) -> Fetched:
    """Batches from an offset on. One batch comes even if it is larger than asked for; none if there is none now."""
    return cluster.retrying(lambda: _fetch(cluster, partition, offset, max_bytes, isolation, max_wait_ms))


def _fetch(
    cluster: Cluster, partition: PartitionKey, offset: int, max_bytes: int, isolation: int, max_wait_ms: int
) -> Fetched:
    name, index = partition
    leader = cluster.leader(partition)
    topic_id = cluster.topic(name).topic_id
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted])],
    )
    answer = cluster.ask(leader, request, _BY_NAME if topic_id is None else None)
    check(answer.error_code, f"fetch of {name}-{index}")
    ((entry,),) = (topic.partitions for topic in answer.responses)
    check(entry.error_code, f"{name}-{index} at offset {offset}")
    records = memoryview(b"") if entry.records is None else entry.records
    size, next_offset = _whole_batches(records, offset)
    aborted = [(one.producer_id, one.first_offset) for one in entry.aborted_transactions or ()]
    return Fetched(
        records[:size],
        next_offset,
        entry.high_watermark,
        entry.last_stable_offset,
        entry.log_start_offset,
        aborted,
    )


def _whole_batches(records: memoryview, offset: int) -> tuple[int, int]:
    """How many bytes whole batches have, and the offset after the last. The end of an answer may be cut anywhere.

    A batch that is wrong inside is for the reader to find; where the next one begins must be known.
    """
    rows = array("q", bytes(8 * kernel.ROW * _SCAN_ROWS))
    at, next_offset, status = 0, offset, kernel.OK
    while at < len(records) and status == kernel.OK:
        count, at, status = kernel.scan(records, at, len(records), rows, 0)
        if count:
            next_offset = max(next_offset, rows[(count - 1) * kernel.ROW + kernel.LAST_OFFSET] + 1)
    if status not in (kernel.OK, kernel.TRUNCATED):
        raise CorruptRecordError(f"fetched after offset {next_offset}: {kernel.STATUS_MEANING[status]}")
    if not at and len(records):
        raise CodedError(ErrorCode.MESSAGE_TOO_LARGE, f"the batch at offset {offset} is larger than a fetch")
    return at, next_offset
