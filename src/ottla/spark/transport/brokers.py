"""Reading from brokers: raw batches by Fetch, the next ones on their way while the last are decoded.

Any broker of Kafka's protocol will do. Where records lie by bytes is not known here: splits are cut by an estimate from
samples, which depends on nothing but the offsets asked for, so that a batch planned again is divided in the same way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from ottla.client.cluster import Cluster
from ottla.client.reading import (
    DEFAULT_MAX_BYTES,
    EARLIEST,
    LATEST,
    NO_OFFSET,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Fetched,
    fetch_raw,
    list_offsets,
)
from ottla.errors import BrokerError
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.records import kernel
from ottla.spark.offsets import Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.transport.base import ROWS, Aborted, BadBytes, Block, Lost, Mark, blocks

_SAMPLE_BYTES = 64 << 10
_SPARE = 1.25  # how much more than the estimate the last fetch asks for
_EMPTY_FETCHES = 60  # of half a second


class FetchTransport:
    """The partitions of a cluster."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = Cluster.from_options(options.kafka)
        self._isolation = READ_COMMITTED if options.read_committed else READ_UNCOMMITTED
        self._max_bytes = int(options.kafka.get("fetch.max.bytes", DEFAULT_MAX_BYTES))

    def close(self) -> None:
        self._cluster.close()

    # -- planning

    def partitions(self) -> list[TopicPartition]:
        options = self._options
        names: Iterable[str] | None = None
        if options.assign:
            names = (partition.topic for partition in options.assign)
        elif options.subscribe:
            names = options.subscribe
        found = self._cluster.topics(names, skip_missing=True)
        every = (TopicPartition(name, index) for name, topic in found.items() for index in topic.leaders)
        return sorted(partition for partition in every if options.chooses(partition))

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        found = self._cluster.topics(topics, skip_missing=True)
        return {name: str(topic.topic_id) for name, topic in found.items() if topic.topic_id is not None}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        found = list_offsets(self._cluster, dict.fromkeys(self._existing(partitions), EARLIEST))
        return {TopicPartition(*key): entry.offset for key, entry in found.items()}

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        wanted = dict.fromkeys(self._existing(partitions), LATEST)
        found = list_offsets(self._cluster, wanted, self._isolation)
        return {TopicPartition(*key): entry.offset for key, entry in found.items()}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        wanted = {key: times_ms[key] for key in self._existing(times_ms)}
        found = list_offsets(self._cluster, wanted, self._isolation)
        return {
            TopicPartition(*key): None if entry.offset == NO_OFFSET else entry.offset
            for key, entry in found.items()
        }

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        wanted = list(partitions)
        found = self._cluster.topics((partition.topic for partition in wanted), skip_missing=True)
        return [key for key in wanted if key.topic in found and key.partition in found[key.topic].leaders]

    def marks(self, partition: TopicPartition, start: int, end: int, step_bytes: int) -> list[Mark]:
        if start >= end:
            return [Mark(start, 0), Mark(end, 0)]
        size, offsets = self._sample(partition, start, end)
        if start + offsets < end:
            more_size, more_offsets = self._sample(partition, (start + end) // 2, end)
            size, offsets = size + more_size, offsets + more_offsets
        per_offset = size / max(1, offsets)
        step = max(1, int(step_bytes / per_offset)) if per_offset else end - start
        cuts = [*range(start, end, step), end]
        return [Mark(offset, round((offset - start) * per_offset)) for offset in cuts]

    def _sample(self, partition: TopicPartition, start: int, end: int) -> tuple[int, int]:
        """Bytes and offsets of a few batches before `end`; as many offsets as were asked for if that is all."""
        try:
            fetched = fetch_raw(self._cluster, partition, start, _SAMPLE_BYTES, max_wait_ms=0)
        except BrokerError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return 0, end - start  # the read will say what is gone
        rows = array("q", bytes(8 * kernel.ROW * ROWS))
        count, _, _ = kernel.scan(fetched.records, 0, len(fetched.records), rows, 0)
        size, next_offset = 0, start
        for row in range(0, count * kernel.ROW, kernel.ROW):
            if rows[row + kernel.BASE_OFFSET] >= end:
                next_offset = end
                break
            size += rows[row + kernel.SIZE]
            next_offset = rows[row + kernel.LAST_OFFSET] + 1
        return size, min(next_offset, end) - start

    # -- reading

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Block | BadBytes | Lost]:
        where = f"{self._options.servers}, {partition}"
        rows = array("q", bytes(8 * kernel.ROW * ROWS))
        for fetched in self._fetches(partition, start, end):
            if isinstance(fetched, Lost):
                yield fetched
                continue
            aborted = [Aborted(*one) for one in fetched.aborted] if self._options.read_committed else []
            yield from blocks(fetched.records, rows, where, aborted)

    def _fetches(self, partition: TopicPartition, start: int, end: int) -> Iterator[Fetched | Lost]:
        """Answers in order up to `end`; the next one is asked for before one is given out."""
        offset, size_bytes, empty = start, 0, 0
        with ThreadPoolExecutor(1, "fetch") as pool:
            pending = pool.submit(self._fetch, partition, offset, self._max_bytes)
            while True:
                found = pending.result()
                if isinstance(found, Lost):
                    offset = start = found.to_offset
                elif found.next_offset > offset:
                    offset, size_bytes, empty = found.next_offset, size_bytes + len(found.records), 0
                elif (empty := empty + 1) == _EMPTY_FETCHES:
                    # What was there when the read was planned is there, unless a leader has lost it.
                    ends = f"{partition} ends at offset {found.high_watermark} now"
                    raise BrokerError(f"{ends}; it was to be read from {offset} to {end}")
                if offset < end:
                    left = (end - offset) * size_bytes / max(1, offset - start) * _SPARE + _SAMPLE_BYTES
                    wanted_bytes = min(self._max_bytes, int(left)) if size_bytes else self._max_bytes
                    pending = pool.submit(self._fetch, partition, offset, wanted_bytes)
                yield found
                if offset >= end:
                    return

    def _fetch(self, partition: TopicPartition, offset: int, max_bytes: int) -> Fetched | Lost:
        try:
            return fetch_raw(self._cluster, partition, offset, max_bytes, self._isolation)
        except BrokerError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            earliest = list_offsets(self._cluster, {partition: EARLIEST})[partition].offset
            if earliest <= offset:
                raise
            return Lost(offset, earliest)
