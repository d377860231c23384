"""Takes over the log directories of a KRaft Kafka, and gives them back.

Taking over writes ottla.db and nothing else, but for a partition.metadata that is missing: topics keep their names,
ids and settings, the cluster and the broker their ids. Giving back removes what ottla has added. The controller's log
is only read, so Kafka comes back to what it knew; what it cannot know is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ottla.cluster.controller import random_topic_id
from ottla.cluster.image import ClusterImage, PartitionInfo, TopicInfo
from ottla.cluster.kraft_log import KraftMetadata, read_kraft_metadata
from ottla.cluster.outcome import Outcome
from ottla.cluster.sqlite import DB_FILE, DB_FILES, SqliteStore
from ottla.cluster.survey import FoundPartition, FoundTopic, Survey, find_log_dirs, survey
from ottla.errors import ConfigError, InconsistentClusterIdError, LogDirLockedError, StorageError
from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem
from ottla.storage.recovery import opened_dir
from ottla.words import counted

SECURED_FILE = "ottla.secured"  # there if what was taken over was guarded; says how, a line each
_NOWHERE = PartitionInfo(leader=-1, replicas=(), isr=())


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was found, and which of it is new in ottla.db."""

    survey: Survey
    store_path: str
    new_topics: list[str]  # those that were not there, or not with all partitions


def adopt(fs: FileSystem, paths: Sequence[str], randrange: Callable[[int], int]) -> Adopted:
    """Take over log directories. ottla.db goes to the first path; where it is already, what is new is added."""
    log_dirs = find_log_dirs(fs, paths)
    store_path = f"{paths[0].rstrip('/')}/{DB_FILE}"
    with locked(fs, log_dirs):
        found = survey(fs, log_dirs)
        _give_ids(fs, found, randrange)
        if found.security:  # before ottla.db, without which nothing is served
            _mark_secured(fs, paths[0].rstrip("/"), found.security)
        store = SqliteStore(store_path, found.cluster_id, _first_producer_id(randrange))
        store.open()
        try:
            before = store.load()
            after, _ = store.update(lambda image: take_over(image, found))
        finally:
            store.close()
    changed = [name for name in found.topics if after.topics[name] is not before.topics.get(name)]
    return Adopted(found, store_path, changed)


def register_topic(
    fs: FileSystem,
    log_dir: str,
    topic: str,
    config: Mapping[str, str],
    randrange: Callable[[int], int],
) -> None:
    """Make a topic whose partitions lie in a log directory one of the cluster's; whoever asks holds the directory."""
    found = survey(fs, [log_dir])
    found.topics = {topic: found.topics[topic]}
    found.topics[topic].config = dict(config)
    found.broker_configs = {}
    store = SqliteStore(f"{log_dir}/{DB_FILE}", found.cluster_id, _first_producer_id(randrange))
    store.open()
    try:
        store.update(lambda image: take_over(image, found))
    finally:
        store.close()


def _first_producer_id(randrange: Callable[[int], int]) -> int:
    """Far from the ids that Kafka has given out and will give out: logs remember whose sequence numbers they saw."""
    return (1 << 48) + randrange(1 << 48)


@contextmanager
def locked(fs: FileSystem, log_dirs: Sequence[str]) -> Iterator[None]:
    """Nobody else has the directories meanwhile: Kafka and ottla take the same lock."""
    locks = []
    try:
        for path in log_dirs:
            lock = fs.lock(f"{path}/{layout.LOCK}")
            if lock is None:
                raise LogDirLockedError(f"{path} is in use by {opened_dir.holder(fs, path)}")
            locks.append(lock)
        yield
    finally:
        for lock in locks:
            lock.close()


def _give_ids(fs: FileSystem, found: Survey, randrange: Callable[[int], int]) -> None:
    """A crash just after a partition was made can leave it without its id; then it is written now."""
    for topic in found.topics.values():
        if topic.topic_id is None:
            topic.topic_id = random_topic_id(randrange)
            found.notes.append(f"{topic.name}: had no id and gets {topic.topic_id}")
        for partition in topic.partitions.values():
            if partition.topic_id is None:
                checkpoint.write_topic_id(fs, f"{partition.path}/{layout.PARTITION_METADATA}", topic.topic_id)


def take_over(image: ClusterImage, found: Survey) -> Outcome:
    """The image with everything that was found. What it has already stays as it is."""
    if image.cluster_id != found.cluster_id:
        raise InconsistentClusterIdError(
            f"{DB_FILE} is that of cluster {image.cluster_id}, the directories belong to {found.cluster_id}"
        )
    topics = dict(image.topics)
    for name, topic in found.topics.items():
        topics[name] = _taken(image.topics.get(name), topic)
    configs = image.broker_configs if image.topics else found.broker_configs
    if configs == image.broker_configs and all(topics[name] is image.topics.get(name) for name in topics):
        return Outcome(image)
    names = {topic.topic_id: name for name, topic in topics.items()}
    return Outcome(replace(image, topics=topics, topic_names=names, broker_configs=configs))


def _taken(known: TopicInfo | None, found: FoundTopic) -> TopicInfo:
    assert found.topic_id is not None
    if known is None:
        known = TopicInfo(found.name, found.topic_id, (), found.config)
    elif known.topic_id != found.topic_id:
        raise StorageError(
            f"{found.name} has the id {found.topic_id} in its directories and {known.topic_id} in {DB_FILE}: "
            "it was deleted and made anew; move the directories away"
        )
    count = max(len(known.partitions), max(found.partitions) + 1)
    partitions = list(known.partitions) + [_NOWHERE] * (count - len(known.partitions))
    for number, partition in found.partitions.items():
        if not partitions[number].replicas:
            partitions[number] = _led_on(partition)
    return known if tuple(partitions) == known.partitions else replace(known, partitions=tuple(partitions))


def _led_on(partition: FoundPartition) -> PartitionInfo:
    """Its broker leads it in the epoch in which it did, unless it was killed: then a new one begins when it comes up.

    Kafka, when it has the directory back, begins with the epoch that its controller knows: a higher one of ottla's
    would make it forget the epochs in its log.
    """
    nodes = (partition.node_id,)
    return PartitionInfo(
        leader=partition.node_id, replicas=nodes, isr=nodes, leader_epoch=partition.leader_epoch
    )


def unknown_partitions(fs: FileSystem, log_dirs: Sequence[str], image: ClusterImage) -> list[str]:
    """Directories of partitions that the cluster does not have: those of a Kafka that were not adopted."""
    unknown = []
    for path in log_dirs:
        for name in sorted(fs.list_dir(path)) if fs.is_dir(path) else ():
            partition = layout.parse_partition_dir(name)
            if (
                partition is None
                or partition.topic == layout.METADATA_TOPIC
                or not fs.is_dir(f"{path}/{name}")
            ):
                continue
            if layout.parse_marked_dir(name) is None and image.partition(*partition) is None:
                unknown.append(f"{path}/{name}")
    return unknown


def check_adopted(fs: FileSystem, log_dirs: Sequence[str], image: ClusterImage) -> None:
    """Raise before a new ottla.db makes strays of all that a Kafka has left there."""
    unknown = unknown_partitions(fs, log_dirs, image) if image.revision == 0 else []
    if unknown:
        raise StorageError(
            f"there is data of {counted(len(unknown), 'partition')} in {', '.join(log_dirs)} that ottla does not know;"
            f" run `ottla adopt {' '.join(log_dirs)}` to take it over"
        )


# -- not served openly by mistake


def _mark_secured(fs: FileSystem, place: str, security: Sequence[str]) -> None:
    path = f"{place}/{SECURED_FILE}"
    checkpoint.replace_file(fs, path, "".join(f"{line}\n" for line in security).encode())


def check_served_open(fs: FileSystem, place: str) -> None:
    """Raise if what lies there was taken from a Kafka that asked its clients who they are."""
    path = f"{place}/{SECURED_FILE}"
    if fs.exists(path):
        how = "; ".join(fs.read_bytes(path).decode("utf-8", "replace").split("\n")).strip("; ")
        raise ConfigError(
            f"{place} was taken from a Kafka that was guarded ({how}), and ottla would serve it to everybody who can "
            "reach it. If that is meant, start it with --set ottla.serve.open=true"
        )


# -- giving back


@dataclass(slots=True)
class Released:
    """What was removed, and what Kafka will not find as it was."""

    log_dirs: list[str]
    removed: list[str] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)  # partitions that Kafka does not know: it moves them aside
    # Topics that Kafka knows and that are gone: made anew, empty.
    empty: list[str] = field(default_factory=list)
    # Topics whose settings go back to those that Kafka knows.
    changed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def release(fs: FileSystem, paths: Sequence[str]) -> Released:
    """Remove ottla's own files, so that Kafka can have the directories back."""
    released = Released(find_log_dirs(fs, paths))
    places = list(dict.fromkeys([*(path.rstrip("/") for path in paths), *released.log_dirs]))
    with locked(fs, released.log_dirs):
        kafka = read_kraft_metadata(fs, released.log_dirs)
        if kafka is None:
            released.notes.append(
                "no controller's log lies here: a Kafka that is to have these directories must be formatted with "
                "their cluster.id, and moves partitions that it does not know aside as stray"
            )
        else:
            _compare(fs, released, kafka, _image(fs, places))
        names = (*reversed(DB_FILES), layout.PID_FILE, SECURED_FILE)
        for path in (f"{place}/{name}" for place in places for name in names):
            if fs.exists(path):
                fs.unlink(path)
                released.removed.append(path)
        for place in places:
            fs.sync_dir(place)
    return released


def _image(fs: FileSystem, places: Sequence[str]) -> ClusterImage | None:
    path = next((f"{place}/{DB_FILE}" for place in places if fs.exists(f"{place}/{DB_FILE}")), None)
    if path is None:
        return None
    store = SqliteStore(path, "")
    try:
        store.open()
        return store.load()
    except StorageError:
        return None  # it goes anyway; only the comparison of settings is lost
    finally:
        store.close()


def _compare(fs: FileSystem, released: Released, kafka: KraftMetadata, image: ClusterImage | None) -> None:
    found = survey(fs, released.log_dirs)
    for name, topic in sorted(found.topics.items()):
        known = kafka.topics.get(name)
        if known is None or known.topic_id != topic.topic_id:
            released.stray += [f"{name}-{number}" for number in sorted(topic.partitions)]
            continue
        for number, partition in sorted(topic.partitions.items()):
            if partition.node_id not in known.partitions.get(number, ()):
                released.stray.append(f"{name}-{number}")
        if image is not None and name in image.topics and image.topics[name].config != topic.config:
            released.changed.append(name)
    for name, gone in sorted(kafka.topics.items()):
        here = found.topics.get(name)
        for number, replicas in sorted(gone.partitions.items()):
            lies_here = here is not None and here.topic_id == gone.topic_id and number in here.partitions
            if not lies_here and not set(replicas).isdisjoint(found.node_ids):
                released.empty.append(f"{name}-{number}")
