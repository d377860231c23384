"""Imports rows as a topic: chooses where it goes, has it built there, and puts it in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from ottla.config import LogConfig
from ottla.errors import ConfigError
from ottla.logtools.listing import NotALogError, list_partition
from ottla.logtools.offline import open_log
from ottla.names import is_topic_name
from ottla.records.compression.codec import Codec
from ottla.runtime import Runtime, SystemRuntime
from ottla.spark.jobs import import_into
from ottla.spark.jobs.import_into import Destination
from ottla.spark.jobs.import_rows import Packing, Spool
from ottla.spark.jobs.importing import BuiltPartition, build_segments
from ottla.spark.jobs.tasks import run_tasks
from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem, RealFileSystem

Pack = Callable[[Packing], list[Spool]]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Which topic the rows become, where, and how they are packed."""

    into: str
    topic: str
    partitions: int | None = None
    append: bool = False
    codec: Codec = Codec.ZSTD
    batch_bytes: int = 64 << 10
    config: Mapping[str, str] = field(default_factory=dict)  # of a new topic
    node_id: int = 1  # of the broker of a new data directory


@dataclass(frozen=True, slots=True)
class Imported:
    """How many rows were imported, and the partitions that were built of them."""

    rows: int
    partitions: dict[int, BuiltPartition]


def import_topic(
    spark: SparkSession, fs: FileSystem, runtime: Runtime, options: ImportOptions, pack: Pack
) -> Imported:
    """Build the topic of the rows that `pack` writes into spools."""
    _check(options)
    with _destination(fs, runtime, options) as to:
        if options.append:
            config = _stage_behind(spark, fs, to, options)
        else:
            assert options.partitions is not None
            config = LogConfig.from_properties(options.config)
            for number in range(options.partitions):
                to.stage(number)
        packing = Packing(
            options.topic, len(to.places), options.codec, options.batch_bytes, runtime.now_ms(), to.spools
        )
        spools = pack(packing)
        built = build_segments(spark, spools, to.places, config)
        if options.append:
            import_into.put_behind(to, built)
        else:
            import_into.put_new_topic(to, built, options.config, runtime)
    return Imported(sum(spool.rows for spool in spools), built)


def _check(options: ImportOptions) -> None:
    if not is_topic_name(options.topic):
        raise ConfigError(f"{options.topic!r} is no name for a topic: letters, digits, . _ and - make one")
    if options.append and options.config:
        raise ConfigError("--config is for a new topic; `ottla configs` changes those of one that is there")
    if not options.append and (options.partitions is None or options.partitions < 1):
        raise ConfigError("say how many partitions the new topic has, with --partitions")
    LogConfig.from_properties(options.config)


@contextmanager
def _destination(fs: FileSystem, runtime: Runtime, options: ImportOptions) -> Iterator[Destination]:
    path = options.into
    if not fs.exists(path) or (fs.is_dir(path) and not fs.list_dir(path)):
        if options.append:
            raise ConfigError(f"{path} is empty: there is no topic {options.topic} to append to")
        with import_into.new_data_dir(fs, path, options.topic, options.node_id, runtime) as to:
            yield to
        return
    if not fs.exists(f"{path}/{layout.META_PROPERTIES}"):
        raise NotALogError(f"{path} is neither empty nor the data directory of a broker; choose another")
    with import_into.old_data_dir(fs, path, options.topic, runtime) as to:
        if not options.append:
            import_into.check_new_topic(to)
        yield to


def _stage_behind(spark: SparkSession, fs: FileSystem, to: Destination, options: ImportOptions) -> LogConfig:
    to.existing = import_into.existing_topic(to, options.partitions)
    ends = run_tasks(spark, _end_of, list(to.existing.values()))
    for number, (end_offset, leader_epoch) in zip(to.existing, ends, strict=True):
        to.stage(number, end_offset, leader_epoch)
    return LogConfig.from_properties(import_into.topics_of(fs, to.path).get(options.topic, {}))


def _end_of(path: str) -> tuple[int, int]:
    """Where a log ends, and its newest leader epoch; it is closed cleanly there. A damaged one is refused."""
    fs = RealFileSystem()
    with closing(SystemRuntime()) as runtime, open_log(fs, list_partition(fs, path), runtime) as log:
        end_offset = log.end_offset
    epochs = checkpoint.read_epochs(fs, f"{path}/{layout.LEADER_EPOCHS}")
    return end_offset, max((epoch for epoch, _ in epochs), default=0)
