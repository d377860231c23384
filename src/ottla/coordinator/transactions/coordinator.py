"""The transaction coordinator of a broker, put together."""

from __future__ import annotations

from collections.abc import Callable, Set

from ottla.cluster.metadata import Metadata
from ottla.config import BrokerConfig
from ottla.coordinator.groups.coordinator import GroupCoordinator
from ottla.coordinator.result import Command, Reply
from ottla.coordinator.runtime import Coordinator, InternalTopic
from ottla.coordinator.transactions.markers import LocalMarkers, Markers, Peers
from ottla.coordinator.transactions.state import NEEDS_ID, TransactionState
from ottla.coordinator.transactions.transaction import Expected
from ottla.errors import BrokerError, CoordinatorLoadInProgressError
from ottla.internal_topics.transaction_records import Transaction, TransactionRecord, TransactionRecordFormat
from ottla.names import TopicPartition
from ottla.replica.manager import ReplicaManager
from ottla.runtime import LoopRuntime

TRANSACTIONS_TOPIC = "__transaction_state"
_WRITE_TIMEOUT_MS = 5000


class TransactionCoordinator(Coordinator[TransactionState, TransactionRecord]):
    """All transactional ids that this broker looks after."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: Metadata,
        replicas: ReplicaManager,
        runtime: LoopRuntime,
        groups: GroupCoordinator,
        peers: Peers,
    ) -> None:
        topic = InternalTopic(
            TRANSACTIONS_TOPIC,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
            _WRITE_TIMEOUT_MS,
        )
        self.local_markers = LocalMarkers(replicas, groups, runtime, _WRITE_TIMEOUT_MS)
        self.markers = Markers(self.local_markers, metadata, runtime, peers)
        self.markers.complete = self._complete
        super().__init__(
            topic,
            lambda shard: TransactionState(shard, config, self.markers, self._count),
            TransactionRecordFormat(),
            metadata,
            replicas,
            runtime,
        )

    def _count(self) -> int:
        return sum([state.weight for state in self.states()])

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: Expected | None, reply: Reply
    ) -> None:
        """Give a producer its id and a new epoch; told is its Transaction."""

        def command(fresh_id: int | None) -> Command[TransactionState]:
            return lambda state, now_ms: state.init_producer(
                transactional_id, timeout_ms, expected, fresh_id, now_ms
            )

        self._run_with_id(transactional_id, command, reply)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Expected,
        added: Set[TopicPartition],
        client_version: int,
        reply: Reply,
    ) -> None:
        """Make partitions part of a transaction."""
        self.run(
            transactional_id,
            lambda state, now_ms: state.add_partitions(
                transactional_id, producer, added, client_version, now_ms
            ),
            reply,
        )

    def end(
        self, transactional_id: str, producer: Expected, commit: bool, client_version: int, reply: Reply
    ) -> None:
        """Commit or abort; told is who the producer is from now on."""

        def command(fresh_id: int | None) -> Command[TransactionState]:
            return lambda state, now_ms: state.end(
                transactional_id, producer, commit, client_version, fresh_id, now_ms
            )

        self._run_with_id(transactional_id, command, reply)

    def _run_with_id(
        self, key: str, command: Callable[[int | None], Command[TransactionState]], reply: Reply
    ) -> None:
        """Run a command that may turn out to need a new producer id."""

        def first(response: object, error: BrokerError | None) -> None:
            if response is NEEDS_ID:
                self._metadata.next_producer_id(fresh)
            else:
                reply(response, error)

        def fresh(producer_id: int | None, error: BaseException | None) -> None:
            if producer_id is None:
                reply(None, CoordinatorLoadInProgressError(f"no producer id: {error}"))
            else:
                self.run(key, command(producer_id), reply)

        self.run(key, command(None), first)

    def _complete(self, transactional_id: str, txn: Transaction) -> None:
        def written(_: object, error: BrokerError | None) -> None:
            """Whoever looks after it next does it again."""

        self.run(
            transactional_id, lambda state, now_ms: state.complete(transactional_id, txn, now_ms), written
        )
