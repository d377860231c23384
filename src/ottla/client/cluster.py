"""The brokers of a cluster: who leads what, connections to them, and asking again when that has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from ottla.client.connection import CLIENT_ID, Connection, parse_servers
from ottla.client.failures import check, is_transient
from ottla.client.security import Security
from ottla.errors import BrokerError, CodedError, ConfigError, ConnectionLostError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

T = TypeVar("T")

PartitionKey = tuple[str, int]
Key = TypeVar("Key", bound=PartitionKey)  # so that a named tuple of both will do

GROUP, TRANSACTION = 0, 1  # whose coordinator
NO_LEADER = -1
DEFAULT_TIMEOUT_S = 60.0
# A broker may hear of a new topic a moment after the controller made it; one that stays unknown is not there.
_UNKNOWN_FOR_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
_ONE_KEY = 3  # the last version of FindCoordinator that asks for one


@dataclass(frozen=True)
class TopicInfo:
    """A topic, and the node that leads each of its partitions; `NO_LEADER` if none does now."""

    name: str
    topic_id: UUID | None
    leaders: Mapping[int, int]
    is_internal: bool = False


class Cluster:
    """A cluster that is reached through some of its brokers. For one thread at a time."""

    def __init__(
        self,
        bootstrap: str,
        security: Security | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        client_id: str = CLIENT_ID,
    ) -> None:
        self.timeout_s = timeout_s
        self._bootstrap = parse_servers(bootstrap)
        self._security = security or Security()
        self._client_id = client_id
        self._connections: dict[tuple[str, int], Connection] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._topics: dict[str, TopicInfo] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    @classmethod
    def from_options(cls, options: Mapping[str, str], **more: Any) -> Cluster:
        """By the option names of Kafka's clients, with or without `kafka.` before them."""
        plain = client_options(options)
        servers = plain.get("bootstrap.servers")
        if not servers:
            raise ConfigError("kafka.bootstrap.servers is missing")
        if "client.id" in plain:
            more.setdefault("client_id", plain["client.id"])
        return cls(servers, Security.from_options(plain), **more)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. They are made again when needed."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    # -- asking

    def connection(self, node_id: int | None = None) -> Connection:
        """A connection to a node, or to any broker."""
        if node_id is not None:
            if node_id not in self._addresses:
                self._metadata([])
            if node_id not in self._addresses:
                raise CodedError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} is not there")
            return self._connect(self._addresses[node_id])
        known = dict.fromkeys((*self._connections, *self._bootstrap, *self._addresses.values()))
        last: ConnectionLostError | None = None
        for address in known:
            try:
                return self._connect(address)
            except ConnectionLostError as error:
                last = error
        assert last is not None
        raise last

    def _connect(self, address: tuple[str, int]) -> Connection:
        found = self._connections.get(address)
        if found is None:
            found = Connection.connect(*address, self._security, min(self.timeout_s, 30.0), self._client_id)
            self._connections[address] = found
        return found

    def ask(self, node_id: int | None, request: Message, newest: int | None = None) -> Any:
        """The response of a node, or of any broker. A connection that breaks is not used again."""
        connection = self.connection(node_id)
        try:
            return connection.send(request, newest)
        except ConnectionLostError:
            self.drop(connection)
            raise

    def drop(self, connection: Connection) -> None:
        """Close a connection that is of no more use."""
        connection.close()
        self._connections = {at: one for at, one in self._connections.items() if one is not connection}

    def retrying(self, work: Callable[[], T]) -> T:
        """Do it again, with a fresh look at who leads what, while what goes wrong may pass."""
        began = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return work()
            except BrokerError as error:
                is_unknown = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                patience_s = min(_UNKNOWN_FOR_S, self.timeout_s) if is_unknown else self.timeout_s
                if not is_transient(error) or time.monotonic() - began > patience_s:
                    raise
            self.forget()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    # -- who leads what

    def forget(self) -> None:
        """What was known of leaders and coordinators may have changed."""
        self._topics.clear()
        self._coordinators.clear()

    def topics(
        self, names: Iterable[str] | None = None, *, skip_missing: bool = False
    ) -> dict[str, TopicInfo]:
        """Topics as they are now, or all of them; a name that is not there is an error, or left out."""
        wanted = None if names is None else list(dict.fromkeys(names))
        return self.retrying(lambda: self._metadata(wanted, skip_missing=skip_missing))

    def leader(self, partition: PartitionKey) -> int:
        """The node that leads a partition; what was learned before will do."""
        topic, index = partition
        found = self.topic(topic).leaders.get(index)
        if found is None:
            raise CodedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {index}")
        if found == NO_LEADER:
            raise CodedError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader")
        return found

    def topic(self, name: str, *, create: bool = False) -> TopicInfo:
        """A topic; what was learned before will do. Some brokers create one that is to be written to."""
        return self._topics.get(name) or self._metadata([name], create=create)[name]

    def nodes(self) -> list[int]:
        """All brokers that are there."""
        self.retrying(lambda: self._metadata([]))
        return sorted(self._addresses)

    def _metadata(
        self, names: list[str] | None, *, create: bool = False, skip_missing: bool = False
    ) -> dict[str, TopicInfo]:
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        answer = self.ask(None, MetadataRequest(topics=topics, allow_auto_topic_creation=create))
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        found = {}
        for topic in answer.topics:
            if skip_missing and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
                check(topic.error_code, f"topic {topic.name}")
            leaders = {entry.partition_index: entry.leader_id for entry in topic.partitions}
            found[topic.name] = TopicInfo(topic.name, topic.topic_id, leaders, topic.is_internal)
        self._topics.update(found)
        return found

    def coordinator(self, kind: int, key: str) -> int:
        """The node that looks after a group or a transactional id; what was learned before will do."""
        node_id = self._coordinators.get((kind, key))
        if node_id is None:
            answer = self.ask(None, FindCoordinatorRequest(key=key, key_type=kind), _ONE_KEY)
            check(answer.error_code, f"coordinator of {key}", answer.error_message)
            self._addresses[answer.node_id] = (answer.host, answer.port)
            node_id = self._coordinators[kind, key] = answer.node_id
        return node_id


def client_options(options: Mapping[str, str]) -> dict[str, str]:
    """Kafka's own options among those of a command or a data source, without the `kafka.` before them."""
    plain = {name.lower(): value for name, value in options.items()}
    return {**plain, **{name[6:]: value for name, value in plain.items() if name.startswith("kafka.")}}
