"""How one image of the cluster becomes the next: topics and brokers. Pure; settings are in config_changes.py.

Each function takes the image and a request and gives an `Outcome`. It checks as Kafka's controller does, item by
item: one that is refused leaves the others alone.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.cluster.config_views import broker_properties
from ottla.cluster.image import BrokerInfo, ClusterImage, PartitionInfo, TopicInfo
from ottla.cluster.outcome import Outcome, Result
from ottla.cluster.placement import Assignments, Placement
from ottla.config import BrokerConfig, LogConfig
from ottla.errors import (
    BrokerError,
    BrokerIdNotRegisteredError,
    ConfigError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ottla.names import is_topic_name
from ottla.storage.layout import METADATA_TOPIC

MAX_PARTITIONS_PER_REQUEST = 10_000  # Kafka's; a request must not be able to fill the disk with directories


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to make: by numbers (-1 for the broker's default) or by a list of replicas for each partition."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Assignments = ()
    config: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic that is to have `count` partitions in all. Assignments list the replicas of each new one."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class DoomedTopic:
    """A topic to delete, by name or by id."""

    name: str | None = None
    topic_id: uuid.UUID | None = None


def random_topic_id(randrange: Callable[[int], int]) -> uuid.UUID:
    """A random id. As Kafka's, it never begins with a dash where it is written: a tool would take it for an option."""
    while True:
        topic_id = uuid.UUID(int=randrange(1 << 128), version=4)
        if not base64.urlsafe_b64encode(topic_id.bytes).startswith(b"-"):
            return topic_id


# -- topics


def create_topics(
    image: ClusterImage,
    topics: Sequence[NewTopic],
    config: BrokerConfig,
    randrange: Callable[[int], int],
    *,
    validate_only: bool = False,
    max_partitions: int | None = None,
) -> Outcome:
    """Make topics. A name that comes twice is refused, once. `max_partitions`: for each broker, if there is a limit."""
    counts = Counter(topic.name for topic in topics)
    total = sum(_partition_count(topic, config) for topic in topics)
    room = _Room(image, max_partitions)
    properties = broker_properties(image, config.node_id, config.properties)
    # Two names of one request that collide are let through, as in Kafka.
    placement, taken = Placement(image), {_plain(name): name for name in image.topics}
    made: dict[str, TopicInfo] = {}
    results = []
    for topic in {topic.name: topic for topic in topics}.values():
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            if total > MAX_PARTITIONS_PER_REQUEST:
                raise PolicyViolationError(
                    f"{total} partitions in one request; at most {MAX_PARTITIONS_PER_REQUEST} are allowed."
                )
            _check_name(topic.name, taken)
            settings = _checked_settings(topic.config, properties)
            partitions = tuple(_new_partitions(placement, topic, config))
            room.take(len(partitions))
        except BrokerError as error:
            results.append(Result.failed(topic.name, error))
        else:
            info = TopicInfo(topic.name, random_topic_id(randrange), partitions, settings)
            made[topic.name] = info
            results.append(Result(topic.name, topic_id=info.topic_id, topic=info))
    return Outcome(image if validate_only else _with_topics(image, made), results)


class _Room:
    """How many partitions the cluster may still get."""

    def __init__(self, image: ClusterImage, max_partitions: int | None) -> None:
        self._limit = max_partitions
        if max_partitions is not None:
            have = sum(len(topic.partitions) for topic in image.topics.values())
            self._left = max_partitions * max(1, len(image.brokers)) - have

    def take(self, partitions: int) -> None:
        if self._limit is None:
            return
        if partitions > self._left:
            raise PolicyViolationError(
                f"{partitions} more partition(s), and the cluster has room for {max(0, self._left)}: a broker may have "
                f"{self._limit}. Delete topics, add brokers, or raise ottla.max.partitions."
            )
        self._left -= partitions


def _partition_count(topic: NewTopic, config: BrokerConfig) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return config.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _checked_settings(given: Mapping[str, str | None], properties: Mapping[str, str]) -> dict[str, str]:
    missing = sorted(key for key, value in given.items() if value is None)
    if missing:
        raise ConfigError(f"Null value not supported for topic configs: {', '.join(missing)}")
    settings = {key: value for key, value in given.items() if value is not None}
    LogConfig.from_properties(settings, properties)
    return settings


def _new_partitions(placement: Placement, topic: NewTopic, config: BrokerConfig) -> list[PartitionInfo]:
    if topic.assignments:
        if topic.num_partitions != -1 or topic.replication_factor != -1:
            raise InvalidRequestError(
                "With an assignment, the numbers of partitions and replicas must be -1."
            )
        return placement.assigned(topic.assignments, 0)
    factor = config.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    count = _partition_count(topic, config)
    if count < 1 <= factor:  # where both are wrong, the factor is what Kafka names
        raise InvalidPartitionsError("The number of partitions must be at least 1, or -1 for the default.")
    return placement.spread(count, factor)


def _plain(name: str) -> str:
    """Names of metrics have no dots: Kafka keeps two topics from having the same one."""
    return name.replace(".", "_")


def _check_name(name: str, taken: Mapping[str, str]) -> None:
    if not is_topic_name(name):
        raise InvalidTopicError(
            f"Topic name {name[:300]!r} is not allowed: 1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-', not '.' or '..'."
        )
    if name == METADATA_TOPIC:
        raise InvalidRequestError(f"{name} belongs to Kafka's controller and cannot be created.")
    other = taken.get(_plain(name))
    if other == name:
        raise TopicAlreadyExistsError(f"Topic '{name}' already exists.")
    if other is not None:
        raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")


def create_partitions(
    image: ClusterImage,
    topics: Sequence[MorePartitions],
    *,
    validate_only: bool = False,
    max_partitions: int | None = None,
) -> Outcome:
    """Add partitions to topics. Their number can only grow."""
    counts = Counter(topic.name for topic in topics)
    placement = Placement(image)
    room = _Room(image, max_partitions)
    changed: dict[str, TopicInfo] = {}
    results = []
    for topic in {topic.name: topic for topic in topics}.values():
        try:
            if counts[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            grown = _grown(image, topic, placement)
            room.take(len(grown.partitions) - len(image.topics[topic.name].partitions))
        except BrokerError as error:
            results.append(Result.failed(topic.name, error))
        else:
            changed[topic.name] = grown
            results.append(Result(grown.name, topic_id=grown.topic_id, topic=grown))
    return Outcome(image if validate_only else _with_topics(image, changed), results)


def _grown(image: ClusterImage, topic: MorePartitions, placement: Placement) -> TopicInfo:
    known = image.topics.get(topic.name)
    if known is None:
        raise UnknownTopicOrPartitionError(f"Topic '{topic.name}' does not exist.")
    have = len(known.partitions)
    if topic.count <= have:
        raise InvalidPartitionsError(
            f"Topic '{topic.name}' has {have} partition(s) already, asked for {topic.count}."
        )
    if topic.count - have > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolationError(
            f"{topic.count - have} new partitions; at most {MAX_PARTITIONS_PER_REQUEST} are allowed in one request."
        )
    if topic.assignments is None:
        new = placement.spread(topic.count - have, 1)
    elif len(topic.assignments) != topic.count - have:
        raise InvalidReplicaAssignmentError(
            f"{topic.count - have} new partition(s), but {len(topic.assignments)} assignment(s)."
        )
    else:
        new = placement.assigned(list(enumerate(topic.assignments, have)), have)
    return replace(known, partitions=(*known.partitions, *new))


def delete_topics(image: ClusterImage, topics: Sequence[DoomedTopic], config: BrokerConfig) -> Outcome:
    """Delete topics. One that is given twice, be it once by name and once by id, is refused, once."""
    doomed: dict[str, TopicInfo] = {}
    results: dict[object, Result] = {}
    counts = Counter(topics)
    for topic in counts:
        try:
            if counts[topic] > 1:
                raise InvalidRequestError("A topic is given more than once.")
            found = _doomed(image, topic, config)
        except BrokerError as error:
            results[topic] = Result.failed(topic.name, error, topic.topic_id)
            continue
        if found.name in doomed:
            del doomed[found.name]
            twice = InvalidRequestError(f"Topic '{found.name}' is given by its name and by its id.")
            results[found.name] = Result.failed(found.name, twice, found.topic_id)
        else:
            doomed[found.name] = found
            results[found.name] = Result(found.name, topic_id=found.topic_id, topic=found)
    return Outcome(_without_topics(image, doomed) if doomed else image, list(results.values()))


def _doomed(image: ClusterImage, topic: DoomedTopic, config: BrokerConfig) -> TopicInfo:
    if not config.delete_topic_enable:
        raise TopicDeletionDisabledError("Topics cannot be deleted: delete.topic.enable is false.")
    if topic.name is not None and topic.topic_id is not None:
        raise InvalidRequestError("A topic to delete is given by its name or by its id, not by both.")
    if topic.name is None and topic.topic_id is None:
        raise InvalidRequestError("A topic to delete needs a name or an id.")
    if topic.name is None:
        found = image.topic_by_id(topic.topic_id)
        if found is None:
            raise UnknownTopicIdError(f"No topic has the id {topic.topic_id}.")
        return found
    found = image.topics.get(topic.name)
    if found is None:
        raise UnknownTopicOrPartitionError(f"Topic '{topic.name}' does not exist.")
    return found


# -- brokers


def register_broker(image: ClusterImage, broker: BrokerInfo, *, clean: bool) -> Outcome:
    """A broker comes up. After an unclean stop its logs may have lost their ends, so what it leads gets a new epoch:
    a consumer that has read further than the log now reaches can tell."""
    broker = replace(broker, epoch=image.revision + 1)  # revisions only grow, so epochs do
    changed = {}
    for topic in image.topics.values():
        led = tuple(_led_by(partition, broker.node_id, clean) for partition in topic.partitions)
        if any(new is not old for new, old in zip(led, topic.partitions, strict=True)):
            changed[topic.name] = replace(topic, partitions=led)
    image = replace(image, brokers={**image.brokers, broker.node_id: broker})
    return Outcome(_with_topics(image, changed))


def _led_by(partition: PartitionInfo, node_id: int, clean: bool) -> PartitionInfo:
    comes_back = partition.leader == -1 and node_id in partition.isr
    if not comes_back and (clean or partition.leader != node_id):
        return partition
    return _next_leader(partition, node_id)


def unregister_broker(image: ClusterImage, node_id: int) -> Outcome:
    """A broker is gone for good. What it led has no leader until it comes back."""
    if node_id not in image.brokers:
        error = BrokerIdNotRegisteredError(f"Broker {node_id} is not registered.")
        return Outcome(image, [Result.failed(str(node_id), error)])
    changed = {}
    for topic in image.topics.values():
        if any(partition.leader == node_id for partition in topic.partitions):
            partitions = (_next_leader(p, -1) if p.leader == node_id else p for p in topic.partitions)
            changed[topic.name] = replace(topic, partitions=tuple(partitions))
    brokers = {known: info for known, info in image.brokers.items() if known != node_id}
    return Outcome(_with_topics(replace(image, brokers=brokers), changed), [Result(str(node_id))])


def _next_leader(partition: PartitionInfo, leader: int) -> PartitionInfo:
    return replace(
        partition,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


# -- images


def _with_topics(image: ClusterImage, changed: Mapping[str, TopicInfo]) -> ClusterImage:
    if not changed:
        return image
    return replace(
        image,
        topics={**image.topics, **changed},
        topic_names={**image.topic_names, **{topic.topic_id: name for name, topic in changed.items()}},
    )


def _without_topics(image: ClusterImage, doomed: Mapping[str, TopicInfo]) -> ClusterImage:
    topics = {name: topic for name, topic in image.topics.items() if name not in doomed}
    return replace(image, topics=topics, topic_names={t.topic_id: name for name, t in topics.items()})
