"""What handlers may use: the broker's parts, wired together by broker.py."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.api.access import AllowAll, Authorizer, Operation, Resource
from ottla.api.call import Call
from ottla.api.fetch_sessions import FetchSessionCache
from ottla.cluster.metadata import Metadata
from ottla.config import BrokerConfig
from ottla.coordinator.groups.coordinator import GroupCoordinator
from ottla.coordinator.transactions.coordinator import TransactionCoordinator
from ottla.coordinator.transactions.verification import Verifier
from ottla.metrics import Metrics
from ottla.replica.manager import ReplicaManager
from ottla.runtime import LoopRuntime
from ottla.slices import Slices
from ottla.stall_watch import StallWatch


@dataclass(slots=True)
class Services:
    """One broker's parts."""

    node_id: int
    config: BrokerConfig
    runtime: LoopRuntime
    metadata: Metadata
    replicas: ReplicaManager
    metrics: Metrics
    fetch_sessions: FetchSessionCache
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: Verifier
    slices: Slices
    watch: StallWatch = field(default_factory=StallWatch)
    max_partitions: int | None = None  # for each broker
    authorizer: Authorizer = field(default_factory=AllowAll)
    topics_being_made: set[str] = field(default_factory=set)  # because a client asked for their metadata

    def allows(self, call: Call, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether the client that sent a request may do this."""
        return self.authorizer.allows(call.peer, operation, resource, name)
