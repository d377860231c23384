"""A coordinator: one internal topic, and a shard for each of its partitions that this broker leads.

`Coordinator` makes the topic when it is first needed, follows the cluster's image to see which partitions are its
own, and finds the shard of a key. What a shard does is in shard.py, what a state must offer in result.py.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic

from ottla.cluster import controller
from ottla.cluster.controller import NewTopic
from ottla.cluster.image import BrokerInfo, ClusterImage, TopicInfo
from ottla.cluster.metadata import Metadata
from ottla.cluster.outcome import Outcome
from ottla.coordinator.result import Command, Producer, R, RecordCodec, Reply, S, Shard
from ottla.coordinator.shard import PartitionShard, Phase
from ottla.errors import BrokerError, CoordinatorLoadInProgressError, NotCoordinatorError
from ottla.names import TopicPartition
from ottla.records.control import Marker
from ottla.replica.manager import ReplicaManager
from ottla.runtime import LoopRuntime
from ottla.timers import Timers

_logger = logging.getLogger(__name__)

_RELOAD_MS = 1000  # between attempts to read a partition that cannot be read


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """The topic of a coordinator, as it is made on first use."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]
    timeout_ms: int  # how long a write may take


class Coordinator(Generic[S, R]):
    """All shards of one internal topic on this broker. Owned by the loop."""

    def __init__(
        self,
        topic: InternalTopic,
        make_state: Callable[[Shard], S],
        codec: RecordCodec[R],
        metadata: Metadata,
        replicas: ReplicaManager,
        runtime: LoopRuntime,
    ) -> None:
        self.topic = topic
        self._make_state = make_state
        self._codec = codec
        self._metadata = metadata
        self._replicas = replicas
        self._runtime = runtime
        self._timers = Timers(runtime)
        self._shards: dict[int, PartitionShard[S, R]] = {}
        self._topic_id: uuid.UUID | None = None
        self._waiting_for_topic: list[Callable[[], None]] = []

    # -- who looks after a key

    def partition_of(self, key: str) -> int:
        """The partition that a group or transactional id belongs to."""
        info = self._info
        return string_hash(key) % (len(info.partitions) if info is not None else self.topic.partitions)

    def find(self, key: str, done: Callable[[BrokerInfo | None], None]) -> None:
        """The broker that looks after a key; None if there is none now. The topic is made if it is not there."""

        def answer() -> None:
            image = self._metadata.image
            info = image.partition(self.topic.name, self.partition_of(key))
            done(image.brokers.get(info.leader) if info is not None else None)

        self.when_made(answer)

    def leader_of(self, key: str) -> int | None:
        """The node that looks after a key, -1 while none can; None while there is no topic."""
        info = self._metadata.image.partition(self.topic.name, self.partition_of(key))
        return None if info is None else info.leader

    def when_made(self, then: Callable[[], None]) -> None:
        """Call when the topic is there, or could not be made; now, if it is."""
        if self._info is not None and not self._waiting_for_topic:
            then()
            return
        self._waiting_for_topic.append(then)
        if len(self._waiting_for_topic) == 1:
            self._metadata.change(self._create, self._created)

    def _create(self, image: ClusterImage) -> Outcome:
        topic = self.topic
        new = NewTopic(topic.name, topic.partitions, topic.replication_factor, config=dict(topic.config))
        return controller.create_topics(image, [new], self._metadata.config, self._runtime.randrange)

    def _created(self, outcome: Outcome | None, error: BaseException | None) -> None:
        if self._info is None:
            reason = outcome.results[0].error_message if outcome is not None else None
            _logger.error("%s could not be made: %s", self.topic.name, reason, exc_info=error)
        waiting, self._waiting_for_topic = self._waiting_for_topic, []
        for then in waiting:
            then()

    @property
    def _info(self) -> TopicInfo | None:
        return self._metadata.image.topics.get(self.topic.name)

    # -- commands

    def run(self, key: str, command: Command[S], reply: Reply) -> None:
        """Run a command on the state of a key; `reply` is told its response, or why there is none."""
        self.run_on(self.partition_of(key), command, reply)

    def run_on(self, partition: int, command: Command[S], reply: Reply) -> None:
        """As `run`, on the state of a partition."""
        shard = self._shards.get(partition)
        if shard is None:
            reply(None, self._not_here(partition))
        else:
            shard.run(command, reply)

    def run_everywhere(
        self, command: Command[S], done: Callable[[list[tuple[Any, BrokerError | None]]], None]
    ) -> None:
        """Run a command on every state that this broker looks after, over some turns of the loop; `done` with all the
        answers."""
        shards = list(self._shards.values())
        answers: list[tuple[Any, BrokerError | None]] = []

        def one(response: Any, error: BrokerError | None) -> None:
            answers.append((response, error))
            if len(answers) == len(shards):
                done(answers)

        for shard in shards:
            self._timers.call_soon(partial(shard.run, command, one))
        if not shards:
            done(answers)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """For work on states that is to be done over some turns of the loop."""
        self._timers.call_soon(callback)

    def end_txn(self, partition: int, producer: Producer, marker: Marker, reply: Reply) -> None:
        """Write a transaction's marker to a partition of this topic; its state follows when it is written."""
        shard = self._shards.get(partition)
        if shard is None:
            reply(None, self._not_here(partition))
        else:
            shard.end_txn(producer, marker, reply)

    def states(self) -> list[S]:
        """The states that are in charge here, for tests and metrics."""
        return [shard.state for shard in self._shards.values() if shard.phase is Phase.ACTIVE]

    def _not_here(self, partition: int) -> BrokerError:
        info = self._metadata.image.partition(self.topic.name, partition)
        if info is not None and info.leader == self._metadata.node_id:
            return CoordinatorLoadInProgressError(f"{self.topic.name}-{partition} is being made")
        return NotCoordinatorError(f"{self.topic.name}-{partition} is not led by this broker")

    # -- which partitions are led here

    def apply_image(self, old: ClusterImage, new: ClusterImage, ready: Callable[[], None]) -> None:
        """Hear of a new image (a subscriber of Metadata), after the replica manager has."""
        if old.topics.get(self.topic.name) is new.topics.get(self.topic.name):
            ready()
            return

        def follow() -> None:
            self.follow()
            ready()

        self._replicas.when_ready(follow)

    def follow(self) -> None:
        """Look after what this broker leads now, and after nothing else."""
        info = self._info
        led = {}
        if info is not None:
            for number, partition in enumerate(info.partitions):
                if partition.leader == self._metadata.node_id:
                    led[number] = partition.leader_epoch
        made_anew = info is not None and info.topic_id != self._topic_id
        for number, shard in list(self._shards.items()):
            if number not in led or made_anew:
                del self._shards[number]
                shard.unload(NotCoordinatorError(f"{shard.key} is not led by this broker any more"))
        self._topic_id = info.topic_id if info is not None else None
        for number, epoch in led.items():
            if number in self._shards:
                self._shards[number].epoch = epoch
            else:
                self._load(number, epoch)

    def _load(self, number: int, epoch: int) -> None:
        name = self.topic.name

        shard = self._shards[number] = PartitionShard(
            TopicPartition(name, number),
            epoch,
            self._make_state,
            self._codec,
            self._replicas,
            self._runtime,
            self._timers,
            timeout_ms=self.topic.timeout_ms,
            max_bytes=lambda: self._metadata.topic_config(name).max_message_bytes,
            failed=self._reload,
        )

        def loaded(error: BaseException | None) -> None:
            if error is not None:
                _logger.error("%s-%s could not be read", name, number, exc_info=error)
                self._runtime.call_later(_RELOAD_MS, lambda: self._reload(shard))

        shard.load(loaded)

    def _reload(self, shard: PartitionShard[S, R]) -> None:
        """Read a partition again, if it is still this broker's."""
        number = shard.partition
        if self._shards.get(number) is shard:
            del self._shards[number]
            self.follow()


@lru_cache(maxsize=10_000)
def string_hash(key: str) -> int:
    """Java's hash of a string, without its sign: what Kafka spreads keys by."""
    value = 0
    data = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (31 * value + (data[at] << 8) + data[at + 1]) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
