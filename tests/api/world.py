"""A broker's handlers for tests: real metadata, replicas and files, a simulated clock, no sockets.

Requests and responses go through the codec, so a test sees what a client of that version would see.
"""

from __future__ import annotations

from typing import Any

from ottla.api import registry
from ottla.api.access import AllowAll, Operation, Resource
from ottla.api.call import PENDING, Call, Peer
from ottla.api.fetch_sessions import FetchSessionCache
from ottla.api.services import Services
from ottla.cluster import controller
from ottla.cluster.image import BrokerInfo, ClusterImage
from ottla.cluster.metadata import Metadata
from ottla.cluster.outcome import Command
from ottla.cluster.sqlite import SqliteStore
from ottla.config import BrokerConfig
from ottla.coordinator.groups.coordinator import GroupCoordinator
from ottla.coordinator.transactions.coordinator import TransactionCoordinator
from ottla.coordinator.transactions.verification import Verifier
from ottla.metrics import Metrics
from ottla.names import TopicPartition
from ottla.protocol import frame
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult
from ottla.slices import Slices
from ottla.stall_watch import StallWatch
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.log_manager import LogManager
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.world import batch

NODE = 1
NOTHING = object()  # what `ask` gives while the answer has not come


class Client:
    """Who asks: reads each answer as its version is written."""

    def __init__(self, answers: list[Any]) -> None:
        self.address = "127.0.0.1:50000"
        self.client_software_name = "tests"
        self.client_software_version = "1"
        self.producer_ids = 0
        self._answers = answers

    def answered(self, call: Call, response: Any) -> None:
        key, version = call.api_key, call.version
        if not isinstance(response, bytes):  # which is a whole frame already
            response = b"".join(frame.response_parts(key, version, call.correlation_id, response))
        correlation_id, message = frame.decode_response(key, version, response[4:])
        assert correlation_id == call.correlation_id
        self._answers.append(message)


class NoPeers:
    """No other broker can be reached."""

    def send(self, node_id: int, version: int, request: Any, done: Any) -> None:
        done(None)


class Refusing(AllowAll):
    """Refuses some operations on some resources."""

    def __init__(self, *refused: tuple[Operation, Resource, str]) -> None:
        self._refused = set(refused)

    def allows(self, peer: Peer, operation: Operation, resource: Resource, name: str) -> bool:
        return (operation, resource, name) not in self._refused


class World:
    """One broker of a cluster."""

    def __init__(
        self,
        data: str,
        *more_dirs: str,
        queued: bool = False,
        fs: FileSystem | None = None,
        store_path: str | None = None,
        **properties: str,
    ) -> None:
        self.runtime = SimulatedRuntime(queued=queued)
        self._fs = fs or RealFileSystem()
        named = {name.replace("_", "."): value for name, value in properties.items()}
        dirs = ",".join((data, *more_dirs))
        self.config = BrokerConfig.from_properties({"node.id": str(NODE), "log.dirs": dirs, **named})
        self._store_path = store_path or f"{data}.db"
        self.start()

    def start(self) -> None:
        self.metrics = Metrics()
        self.metadata = Metadata(SqliteStore(self._store_path, "cluster-1"), self.runtime, NODE, self.config)
        self.metadata.open(lambda error: None)
        self.runtime.run_pending()
        self.logs = LogManager(self._fs, self.runtime, self.config, node_id=NODE)
        self.logs.open()
        self.replicas = ReplicaManager(
            self.runtime, self.logs, self.config, NODE, self.metrics, config_of=self.metadata.topic_config
        )
        groups = GroupCoordinator(self.config, self.metadata, self.replicas, self.runtime)
        peers = NoPeers()
        transactions = TransactionCoordinator(
            self.config, self.metadata, self.replicas, self.runtime, groups, peers
        )
        self.services = Services(
            node_id=NODE,
            config=self.config,
            runtime=self.runtime,
            metadata=self.metadata,
            replicas=self.replicas,
            metrics=self.metrics,
            fetch_sessions=FetchSessionCache(self.runtime, 10),
            groups=groups,
            transactions=transactions,
            verifier=Verifier(transactions, self.replicas, peers, NODE),
            slices=Slices(self.runtime, StallWatch()),
        )
        self.replicas.apply_image(None, self.image)
        self.metadata.subscribe(self._apply)
        self.metadata.subscribe(self.services.groups.apply_image)
        self.metadata.subscribe(self.services.transactions.apply_image)
        self.services.groups.follow()
        self.services.transactions.follow()
        self.register(NODE)

    def _apply(self, old: ClusterImage, new: ClusterImage, ready: Any) -> None:
        self.replicas.apply_image(old, new)
        self.replicas.when_ready(ready)

    def close(self) -> None:
        self.runtime.run_pending()
        self.metadata.close(lambda: None)
        self.runtime.run_pending()
        self.logs.abandon()

    def restart(self) -> None:
        self.close()
        self.runtime.forget_pending()  # a process that ends takes its timers with it
        self.start()

    @property
    def image(self) -> ClusterImage:
        return self.metadata.image

    def change(self, command: Command) -> None:
        errors: list[BaseException | None] = []
        self.metadata.change(command, lambda outcome, error: errors.append(error))
        self.runtime.run_pending()
        assert errors == [None]

    def register(self, node_id: int) -> None:
        info = BrokerInfo(node_id, f"host-{node_id}", 9090 + node_id, rack=f"rack-{node_id}")
        self.change(lambda image: controller.register_broker(image, info, clean=True))

    # -- asking

    def call(self, request: Any, version: int, answers: list[Any], client_id: str | None = "client") -> None:
        """Send a request; what is answered is appended to `answers`, as the client reads it."""
        key = request.API_KEY
        sent = b"".join(frame.request_parts(key, version, 7, client_id, request))[4:]
        header = frame.RequestHeader.parse(sent)
        decoded = frame.decode_request(header, sent)

        call = Call(key, version, 7, client_id, decoded, Client(answers))
        response = registry.handler(registry.APIS[key])(self.services, call, decoded)
        if response is not PENDING:
            call.reply(response)

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer to a request, in the newest version if none is given; blocking work is done meanwhile."""
        answers: list[Any] = []
        api = registry.APIS[request.API_KEY]
        self.call(request, api.max_version if version is None else version, answers)
        self.runtime.run_pending()
        return answers[0] if answers else NOTHING

    def make_topic(self, name: str, partitions: int = 1, **config: str) -> Any:
        """Make a topic, by a request."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()
            ],
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic])).topics
        assert result.error_code == 0, result.error_message
        return result.topic_id

    def append(self, topic: str, partition: int = 0, **fields: Any) -> AppendResult:
        results: list[AppendResult] = []
        key = TopicPartition(topic, partition)
        self.replicas.append(
            acks=1, timeout_ms=0, entries=[(key, batch(**fields))], done=lambda told: results.extend(told)
        )
        (result,) = results
        return result
