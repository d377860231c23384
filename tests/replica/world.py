"""A broker's replicas for tests: real files, a simulated clock, images made by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ottla.cluster.image import ClusterImage, PartitionInfo, TopicInfo
from ottla.config import BrokerConfig, LogConfig
from ottla.metrics import Metrics
from ottla.names import TopicPartition
from ottla.replica.manager import ReplicaManager
from ottla.replica.results import AppendResult, FetchEntry, FetchParams, FetchResult
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.world import SMALL, batch

R = TypeVar("R")

NODE = 1
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def leading(
    *, isr: tuple[int, ...] = (NODE,), replicas: tuple[int, ...] = (), epoch: int = 0
) -> PartitionInfo:
    """A partition that this broker leads."""
    return PartitionInfo(NODE, replicas or isr, isr, epoch)


class Told(Generic[R]):
    """What a request was answered: `results` is None until then. `wait` is what it returned."""

    def __init__(self) -> None:
        self.results: list[R] | None = None
        self.wait: Any = None
        self.then: Callable[[], None] = lambda: None

    def __call__(self, results: list[R]) -> None:
        assert self.results is None, "answered twice"
        self.results = results
        self.then()

    @property
    def is_waiting(self) -> bool:
        return self.results is None

    @property
    def only(self) -> R:
        assert self.results is not None
        (result,) = self.results
        return result


class World:
    """One broker with one log directory or more."""

    def __init__(
        self,
        *dirs: str,
        runtime: Any = None,  # a simulated one, unless a test brings its own
        fs: FileSystem | None = None,
        topic: TopicInfo | None = None,
        topic_config: dict[str, Any] | None = None,
        **config: Any,
    ) -> None:
        self.runtime: Any = runtime or SimulatedRuntime()
        self.fs = fs or RealFileSystem()
        self.config = BrokerConfig(log_dirs=dirs, **config)
        self.metrics = Metrics()
        self.image = ClusterImage("cluster")
        self.configs: dict[str, dict[str, Any]] = {}
        if topic is not None:  # which the cluster knows from before
            self.configs[topic.name] = topic_config or {}
            self.image = replace(
                self.image, topics={topic.name: topic}, topic_names={topic.topic_id: topic.name}
            )
        self.start()

    def start(self) -> None:
        self.logs = LogManager(
            self.fs,
            self.runtime,
            self.config,
            defaults=LogConfig(**SMALL),
            topic_configs={name: self.config_of(name) for name in self.image.topics},
            node_id=NODE,
        )
        self.logs.open()
        self.replicas = ReplicaManager(
            self.runtime, self.logs, self.config, NODE, self.metrics, config_of=self.config_of
        )
        self.replicas.apply_image(None, self.image)

    def config_of(self, topic: str) -> LogConfig:
        return LogConfig(**{**SMALL, **self.configs.get(topic, {})})

    def set_image(self, topics: Mapping[str, TopicInfo]) -> None:
        old = self.image
        self.image = replace(
            old,
            revision=old.revision + 1,
            topics=dict(topics),
            topic_names={topic.topic_id: name for name, topic in topics.items()},
        )
        self.replicas.apply_image(old, self.image)

    def make_topic(self, name: str = "t", *partitions: PartitionInfo, **config: Any) -> TopicInfo:
        """A topic of these partitions; one that this broker leads alone, if none is given."""
        known = self.image.topics.get(name)
        topic_id = known.topic_id if known else uuid.UUID(int=self.runtime.randrange(2**128), version=4)
        self.configs[name] = config
        topic = TopicInfo(name, topic_id, partitions or (leading(),), {"made": str(self.image.revision)})
        self.set_image({**self.image.topics, name: topic})
        return topic

    def drop_topic(self, name: str = "t") -> None:
        self.set_image({key: topic for key, topic in self.image.topics.items() if key != name})

    def log(self, key: TopicPartition = T0) -> Log:
        log = self.logs.get(key)
        assert log is not None
        return log

    # -- requests, and what they are told; an answer that has not come is None

    def append(
        self,
        *keys: TopicPartition,
        acks: int = 1,
        timeout_ms: int = 1000,
        count: int = 1,
        records: bytes | None = None,
        **fields: Any,
    ) -> Told[AppendResult]:
        told: Told[AppendResult] = Told()
        entries = [(key, batch(count, **fields) if records is None else records) for key in keys or (T0,)]
        told.wait = self.replicas.append(acks=acks, timeout_ms=timeout_ms, entries=entries, done=told)
        return told

    def fetch(self, *entries: FetchEntry, **params: Any) -> Told[FetchResult]:
        told: Told[FetchResult] = Told()
        told.wait = self.replicas.fetch(FetchParams(**params), entries, told)
        return told
