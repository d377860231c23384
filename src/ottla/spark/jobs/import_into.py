"""Where an import puts a topic: a new data directory, or that of a stopped broker, as a new topic or behind an old one.

All or nothing. A new data directory is built beside its place and renamed. In an old one everything is built in
directories marked `-delete`, which a broker removes when it starts; a new topic counts once it is in ottla.db. Behind
an old topic, a journal says what was added until all of it is there: the next to open the directory takes it out.
Directories that got their names while the topic did not get into ottla.db have a mark: the next import removes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from ottla.cluster.adopt import register_topic
from ottla.cluster.controller import random_topic_id
from ottla.cluster.sqlite import DB_FILE, SqliteStore
from ottla.config import LogConfig
from ottla.errors import ConfigError, StorageError
from ottla.logtools.listing import NotALogError
from ottla.logtools.writing import locked
from ottla.names import TopicPartition
from ottla.runtime import Runtime
from ottla.spark.jobs.importing import BuiltPartition, PartitionPlace
from ottla.storage import checkpoint, layout
from ottla.storage.building import import_journal
from ottla.storage.building.built_segments import BuiltSegments
from ottla.storage.fs import FileSystem
from ottla.storage.recovery.opened_dir import cluster_id, new_identity

_UNFINISHED = "import.unfinished"  # in directories of a topic that may not be in ottla.db
_SUFFIXES = (layout.INDEX, layout.TIME_INDEX, layout.LOG)  # the log last: without it an index means nothing


@dataclass(slots=True)
class Destination:
    """A data directory that is held for an import."""

    fs: FileSystem
    path: str  # what is being written: the data directory, or one that takes its place
    topic: str
    unique: str
    topic_id: uuid.UUID
    places: dict[int, PartitionPlace] = field(default_factory=dict)
    existing: dict[int, str] = field(default_factory=dict)  # directories of the topic that is added to
    spools: str = ""

    def stage(self, number: int, base_offset: int = 0, leader_epoch: int = 0) -> None:
        directory = f"{self.path}/{self._marked(number, self.unique)}"
        self.fs.make_dir(directory)
        self.places[number] = PartitionPlace(directory, base_offset, leader_epoch)

    def stage_spools(self) -> None:
        self.spools = f"{self.path}/{self._marked(0, self.unique[::-1])}"
        self.fs.make_dir(self.spools)

    def _marked(self, number: int, unique: str) -> str:
        return layout.marked_dir(TopicPartition(self.topic, number), unique, layout.DELETE_DIR)

    def discard(self) -> None:
        for directory in (self.spools, *(place.directory for place in self.places.values())):
            with suppress(OSError):  # a task may still be writing; a broker removes what is left
                if directory and self.fs.exists(directory):
                    remove_flat(self.fs, directory)

    def directory_of(self, number: int) -> str:
        return f"{self.path}/{self.topic}-{number}"

    def note_ends(self, built: Mapping[int, BuiltPartition]) -> None:
        """Checkpoints say that all of it is on disk and replicated."""
        for name in import_journal.CHECKPOINTS:
            path = f"{self.path}/{name}"
            known = checkpoint.read_offsets(self.fs, path) if self.fs.exists(path) else {}
            ends = {TopicPartition(self.topic, number): part.end_offset for number, part in built.items()}
            checkpoint.write_offsets(self.fs, path, {**known, **ends})


def put_new_topic(
    to: Destination, built: Mapping[int, BuiltPartition], config: Mapping[str, str], runtime: Runtime
) -> None:
    """Finish the partitions, give them their names, and tell the cluster."""
    log_config = LogConfig.from_properties(config)
    for part in built.values():
        place = part.place
        if not part.segments:
            BuiltSegments(to.fs, place.directory, place.base_offset, place.leader_epoch, log_config).finish()
        checkpoint.write_epochs(
            to.fs, f"{place.directory}/{layout.LEADER_EPOCHS}", [(0, 0)] if part.size else []
        )
        checkpoint.write_topic_id(to.fs, f"{place.directory}/{layout.PARTITION_METADATA}", to.topic_id)
        checkpoint.replace_file(to.fs, f"{place.directory}/{_UNFINISHED}", b"")
    named: list[str] = []
    try:
        for number, part in built.items():
            to.fs.rename(part.place.directory, to.directory_of(number))
            named.append(to.directory_of(number))
        to.fs.sync_dir(to.path)
        register_topic(to.fs, to.path, to.topic, config, runtime.randrange)
    except BaseException:
        for directory in named:
            remove_flat(to.fs, directory)
        raise
    for directory in named:
        to.fs.unlink(f"{directory}/{_UNFINISHED}")
    # Last: without these a broker reads the logs in full, and that is all.
    to.note_ends(built)


def put_behind(to: Destination, built: Mapping[int, BuiltPartition]) -> None:
    """Move new segments behind the old ones of each partition."""
    try:
        _put_behind(to, built)
    except BaseException:
        import_journal.undo(to.fs, to.path)
        raise


def _put_behind(to: Destination, built: Mapping[int, BuiltPartition]) -> None:
    added = {
        f"{to.topic}-{number}": [base for base, _ in part.segments]
        for number, part in built.items()
        if part.segments
    }
    import_journal.begin(to.fs, to.path, added)
    for number, part in built.items():
        target = to.existing[number]
        for base, _ in part.segments:
            for suffix in _SUFFIXES:
                name = layout.segment_file(base, suffix)
                to.fs.rename(f"{part.place.directory}/{name}", f"{target}/{name}")
        epochs = f"{target}/{layout.LEADER_EPOCHS}"
        if part.segments and not checkpoint.read_epochs(to.fs, epochs):
            checkpoint.write_epochs(to.fs, epochs, [(part.place.leader_epoch, part.place.base_offset)])
        to.fs.sync_dir(target)
    to.note_ends(built)
    import_journal.end(to.fs, to.path)


@contextmanager
def new_data_dir(
    fs: FileSystem, path: str, topic: str, node_id: int, runtime: Runtime
) -> Iterator[Destination]:
    """Build a whole data directory beside its place; it gets its name when all went well."""
    unique = uuid.UUID(int=runtime.randrange(1 << 128)).hex
    staged = f"{path}.{unique}.importing"
    fs.make_dir(staged)
    to = Destination(fs, staged, topic, unique, random_topic_id(runtime.randrange))
    try:
        to.stage_spools()
        identity = new_identity(cluster_id(fs, [], runtime), node_id, runtime)
        checkpoint.write_properties(fs, f"{staged}/{layout.META_PROPERTIES}", identity)
        yield to
        to.discard()
        checkpoint.write_clean_shutdown(fs, staged)
        fs.rename(staged, path)
        fs.sync_dir(path.rpartition("/")[0] or "/")
    except BaseException:
        with suppress(OSError):  # a task may still be writing
            remove_tree(fs, staged)
        raise


@contextmanager
def old_data_dir(fs: FileSystem, path: str, topic: str, runtime: Runtime) -> Iterator[Destination]:
    """Hold the directory of a stopped broker."""
    unique = uuid.UUID(int=runtime.randrange(1 << 128)).hex
    with ExitStack() as stack:
        stack.enter_context(locked(fs, path))
        import_journal.undo(fs, path)
        to = Destination(fs, path, topic, unique, random_topic_id(runtime.randrange))
        stack.callback(to.discard)
        to.stage_spools()
        yield to


def check_new_topic(to: Destination) -> None:
    """Refuse a topic that is there already, or that nobody would know of."""
    names = [name for name in to.fs.list_dir(to.path) if _topic_of(name) == to.topic]
    if to.topic in topics_of(to.fs, to.path):
        raise ConfigError(f"{to.path} has a topic {to.topic} already; --append adds to it")
    for name in list(names):
        if to.fs.exists(f"{to.path}/{name}/{_UNFINISHED}"):  # of an import that was killed
            remove_flat(to.fs, f"{to.path}/{name}")
            names.remove(name)
    if names and to.fs.exists(f"{to.path}/{DB_FILE}"):
        raise ConfigError(
            f"{to.path} has {', '.join(sorted(names))}, but {DB_FILE} does not know the topic; move what you do not"
            " need out of the way, and import again"
        )
    if names:
        raise ConfigError(f"{to.path} has a topic {to.topic} already; --append adds to it")
    if not to.fs.exists(f"{to.path}/{DB_FILE}"):
        raise NotALogError(
            f"{to.path} has no {DB_FILE}, so that no broker would know the topic: run `ottla adopt` first, or make the"
            " topic on the Kafka that owns the directory, stop it, and import with --append"
        )


def existing_topic(to: Destination, partitions: int | None) -> dict[int, str]:
    """The directories of the topic's partitions, by number."""
    found = {}
    for name in to.fs.list_dir(to.path):
        parsed = layout.parse_partition_dir(name)
        if parsed is not None and parsed.topic == to.topic:
            found[parsed.partition] = f"{to.path}/{name}"
    knows_topics = to.fs.exists(f"{to.path}/{DB_FILE}")
    if not found or (knows_topics and to.topic not in topics_of(to.fs, to.path)):
        raise ConfigError(f"{to.path} has no topic {to.topic}; without --append it is made")
    if sorted(found) != list(range(len(found))):
        raise StorageError(f"{to.path} does not hold all partitions of {to.topic}, only {sorted(found)}")
    if partitions is not None and partitions != len(found):
        raise ConfigError(f"{to.topic} has {len(found)} partitions, not {partitions}")
    return dict(sorted(found.items()))


def topics_of(fs: FileSystem, data_dir: str) -> dict[str, Mapping[str, str]]:
    """The topics that ottla.db knows, with their settings; none if there is no such file."""
    if not fs.exists(f"{data_dir}/{DB_FILE}"):
        return {}
    store = SqliteStore(f"{data_dir}/{DB_FILE}", "")
    store.open()
    try:
        return {name: topic.config for name, topic in store.load().topics.items()}
    finally:
        store.close()


def _topic_of(name: str) -> str | None:
    parsed = layout.parse_partition_dir(name)
    return parsed.topic if parsed else None


def remove_flat(fs: FileSystem, path: str) -> None:
    """A directory and the files in it."""
    for name in fs.list_dir(path):
        fs.unlink(f"{path}/{name}")
    fs.remove_dir(path)


def remove_tree(fs: FileSystem, path: str) -> None:
    """A data directory."""
    for name in fs.list_dir(path):
        if fs.is_dir(f"{path}/{name}"):
            remove_flat(fs, f"{path}/{name}")
        else:
            fs.unlink(f"{path}/{name}")
    fs.remove_dir(path)
