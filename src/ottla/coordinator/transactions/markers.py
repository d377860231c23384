"""The markers that end transactions: into the logs of this broker, or on their way to the brokers that lead."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ottla.cluster.metadata import Metadata
from ottla.coordinator.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from ottla.coordinator.result import Producer
from ottla.errors import BrokerError
from ottla.internal_topics.transaction_records import Status, Transaction, by_topic
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.records.control import Marker, build_marker
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult
from ottla.runtime import LoopRuntime, Timer
from ottla.storage.log.validation import Origin

_logger = logging.getLogger(__name__)

_RETRY_MS = 50
_WRITE_VERSION = 1
# A newer coordinator has this transaction: the decision made here is void.
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
_NOT_HERE_NOW = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

Codes = dict[TopicPartition, int]


class Peers(Protocol):
    """The way to other brokers."""

    def send(self, node_id: int, version: int, request: Message, done: Callable[[Any], None]) -> None:
        """Ask a broker; `done` with its response, or with None if there is none."""


class LocalMarkers:
    """Writes markers to partitions that this broker leads."""

    def __init__(
        self, replicas: ReplicaManager, groups: GroupCoordinator, runtime: LoopRuntime, timeout_ms: int
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._runtime = runtime
        self._timeout_ms = timeout_ms
        self.on_end: Callable[[TopicPartition, int], None] = lambda partition, producer_id: None

    def write(
        self,
        partitions: Iterable[TopicPartition],
        producer: Producer,
        marker: Marker,
        done: Callable[[Codes], None],
    ) -> None:
        """End the producer's transaction in the partitions; `done` with what became of each."""
        wanted = list(partitions)
        codes: Codes = {}

        def take(partition: TopicPartition, code: int) -> None:
            codes[partition] = code
            self.on_end(partition, producer.producer_id)
            if len(codes) == len(wanted):
                done(codes)

        def appended(results: list[AppendResult]) -> None:
            for result in results:
                take(result.partition, result.error_code)

        if not wanted:
            done(codes)
            return
        batch = build_marker(marker, producer.producer_id, producer.producer_epoch, self._runtime.now_ms())
        plain = [partition for partition in wanted if partition.topic != OFFSETS_TOPIC]
        for partition in wanted:
            if partition.topic == OFFSETS_TOPIC:
                self._end_offsets(partition, producer, marker, take)
        if plain:
            # A batch gets its offset when it is appended: each log needs its own.
            entries = [(partition, bytearray(batch)) for partition in plain]
            self._replicas.append(
                acks=-1,
                timeout_ms=self._timeout_ms,
                entries=entries,
                done=appended,
                origin=Origin.COORDINATOR,
            )

    def _end_offsets(
        self,
        partition: TopicPartition,
        producer: Producer,
        marker: Marker,
        take: Callable[[TopicPartition, int], None],
    ) -> None:
        def reply(_: object, error: BrokerError | None) -> None:
            code = ErrorCode.NONE if error is None else error.code
            take(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_HERE_NOW else code)

        self._groups.end_txn(partition.partition, producer, marker, reply)


class Markers:
    """Sees to it that every partition of a prepared transaction gets its marker, however long that takes."""

    def __init__(self, local: LocalMarkers, metadata: Metadata, runtime: LoopRuntime, peers: Peers) -> None:
        self.local = local
        self._metadata = metadata
        self._runtime = runtime
        self._peers = peers
        self._jobs: dict[int, set[_Job]] = defaultdict(set)  # by partition of the internal topic
        self.complete: Callable[[str, Transaction], None] = lambda transactional_id, txn: None

    def send(self, partition: int, epoch: int, transactional_id: str, txn: Transaction) -> None:
        job = _Job(self, epoch, txn, lambda: self._over(partition, job, transactional_id))
        self._jobs[partition].add(job)
        job.run()

    def forget(self, partition: int) -> None:
        for job in self._jobs.pop(partition, set()):
            job.stop()

    @property
    def under_way(self) -> int:
        """How many transactions wait for their markers."""
        return sum(map(len, self._jobs.values()))

    def _over(self, partition: int, job: _Job, transactional_id: str) -> None:
        self._jobs[partition].discard(job)
        if not job.is_fenced:
            self.complete(transactional_id, job.txn)

    def split(self, partitions: Iterable[TopicPartition]) -> dict[int | None, set[TopicPartition]]:
        """Partitions by the broker that leads them, -1 if none does; under None those that are no more."""
        found: dict[int | None, set[TopicPartition]] = defaultdict(set)
        image = self._metadata.image
        for partition in partitions:
            info = image.partition(partition.topic, partition.partition)
            found[None if info is None else info.leader].add(partition)
        return found

    def ask(
        self, node_id: int, txn: Transaction, marker: Marker, partitions: Iterable[TopicPartition],
        done: Callable[[Codes], None],
    ) -> None:  # fmt: skip
        """Have the leader of some partitions write the markers."""
        if node_id == self._metadata.node_id:
            self.local.write(partitions, Producer(txn.producer_id, txn.producer_epoch), marker, done)
            return
        topics = [
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
        entry = WritableTxnMarker(
            producer_id=txn.producer_id,
            producer_epoch=txn.producer_epoch,
            transaction_result=not marker.is_abort,
            topics=topics,
            coordinator_epoch=marker.coordinator_epoch,
        )

        def answered(response: WriteTxnMarkersResponse | None) -> None:
            done({} if response is None else _codes(response))

        self._peers.send(node_id, _WRITE_VERSION, WriteTxnMarkersRequest(markers=[entry]), answered)

    def later(self, again: Callable[[], None]) -> Timer:
        return self._runtime.call_later(_RETRY_MS, again)


def _codes(response: WriteTxnMarkersResponse) -> Codes:
    return {
        TopicPartition(topic.name, entry.partition_index): entry.error_code
        for marker in response.markers
        for topic in marker.topics
        for entry in topic.partitions
    }


class _Job:
    """The markers of one transaction."""

    def __init__(self, markers: Markers, epoch: int, txn: Transaction, over: Callable[[], None]) -> None:
        self.txn = txn
        self.is_fenced = False
        self._markers = markers
        self._marker = Marker(txn.status is Status.PREPARE_ABORT, epoch)
        self._over = over
        self._left = set(txn.partitions)
        self._waiting = 0
        self._timer: Timer | None = None
        self._is_stopped = False

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def run(self) -> None:
        """Write what is left; once more later, as long as something is."""
        if self._is_stopped:
            return
        by_leader = self._markers.split(self._left)
        self._left -= by_leader.pop(None, set())  # their topics were deleted
        by_leader.pop(-1, None)
        self._waiting = len(by_leader) + 1
        for node_id, partitions in by_leader.items():
            assert node_id is not None
            self._markers.ask(node_id, self.txn, self._marker, partitions, self._take)
        self._take({})

    def _take(self, codes: Codes) -> None:
        for partition, code in codes.items():
            if code == ErrorCode.NONE:
                self._left.discard(partition)
            elif code in _FENCED:
                _logger.warning(
                    "a marker for %s of producer %s is out of date", partition, self.txn.producer_id
                )
                self.is_fenced = True
        self._waiting -= 1
        if self._waiting or self._is_stopped:
            return
        if self._left and not self.is_fenced:
            self._timer = self._markers.later(self.run)
        else:
            self._over()
