"""The transport that reads segment files, of ottla or Apache Kafka, with or without a broker on them.

While a broker holds the directory, a read ends at the high watermark that it last wrote into its checkpoint (every 5
seconds); what lies behind may not be replicated, or half written. Without a broker, it ends at the last whole batch.
For read_committed it ends before the first transaction that is open there.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from ottla.errors import (
    ConfigError,
    CorruptCheckpointError,
    CorruptSnapshotError,
    UnknownTopicOrPartitionError,
)
from ottla.logtools import listing
from ottla.logtools.writing import data_dir_of
from ottla.names import TopicPartition
from ottla.spark.offsets import Offsets
from ottla.spark.options import ReadOptions
from ottla.spark.transport.base import BadBytes, Block, Lost, Mark
from ottla.spark.transport.committed import read_committed
from ottla.spark.transport.log_files import LogFiles
from ottla.spark.transport.transactions import TransactionsSoFar
from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.storage.producers import snapshot_file as producer_snapshot


class FileTransport:
    """Partitions that lie in directories."""

    def __init__(self, options: ReadOptions, fs: FileSystem | None = None) -> None:
        self._options = options
        self._fs = fs or RealFileSystem()
        self._transactions: dict[TopicPartition, TransactionsSoFar] = {}

    def close(self) -> None:
        """Files are opened for each call; there is nothing to give back."""

    # -- which partitions

    def partitions(self) -> list[TopicPartition]:
        found: set[TopicPartition] = set()
        for path in self._options.paths:
            target = listing.resolve(self._fs, path)
            if isinstance(target, listing.Partition):
                found.add(_named(target))
            elif isinstance(target, listing.DataDir):
                parsed = (layout.parse_partition_dir(name) for name in target.partitions)
                found |= {partition for partition in parsed if partition and self._options.chooses(partition)}
            else:
                raise ConfigError(f"{path} is a file; give a data directory or a partition directory")
        return sorted(found)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        wanted = set(topics)
        for partition in self.partitions():
            if partition.topic not in wanted or partition.topic in found:
                continue
            log = self._log(partition)
            path = f"{log.directory}/{layout.PARTITION_METADATA}" if log else ""
            try:
                topic_id = checkpoint.read_topic_id(self._fs, path) if log else None
            except (CorruptCheckpointError, FileNotFoundError):
                continue
            if topic_id is not None:
                found[partition.topic] = str(topic_id)
        return found

    def _log(self, partition: TopicPartition) -> LogFiles | None:
        """The partition's directory; of several, such as those of replicas, the one that has come furthest."""
        found: list[tuple[int, int, str]] = []
        for path in self._options.paths:
            own = layout.parse_partition_dir(os.path.basename(path)) == partition
            for directory in (path, f"{path}/{partition}") if own else (f"{path}/{partition}",):
                if self._fs.is_dir(directory):
                    segments = listing.if_there(LogFiles(self._fs, directory).segments)
                    if segments:
                        last = segments[-1]
                        size = listing.if_there(partial(self._fs.size, last.path)) or 0
                        found.append((last.base_offset, size, directory))
        return LogFiles(self._fs, max(found)[2]) if found else None

    # -- where they begin and end

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        found: Offsets = {}
        for partition in partitions:
            log = self._log(partition)
            first = listing.if_there(log.first_offset) if log else None
            if log is not None and first is not None:
                checkpointed = self._checkpoint(log, layout.LOG_START_OFFSETS).get(partition, 0)
                found[partition] = max(first, checkpointed)
        return found

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        found: Offsets = {}
        for partition in partitions:
            log = self._log(partition)
            end = listing.if_there(partial(self._end, log, partition)) if log else None
            if log is not None and end is not None:
                found[partition] = self._stable(log, partition, end) if self._options.read_committed else end
        return found

    def readable_end(self, partition: TopicPartition) -> int | None:
        """Where a read ends, open transactions left aside; None where there are no files."""
        log = self._log(partition)
        return listing.if_there(partial(self._end, log, partition)) if log else None

    def _end(self, log: LogFiles, partition: TopicPartition) -> int:
        data_dir = data_dir_of(self._fs, log.directory)
        if data_dir is None or not is_held(self._fs, data_dir):
            return log.end_offset()
        first = log.first_offset() or 0
        return max(first, self._checkpoint(log, layout.HIGH_WATERMARKS).get(partition, first))

    def _checkpoint(self, log: LogFiles, name: str) -> Offsets:
        data_dir = data_dir_of(self._fs, log.directory)
        if data_dir is None:
            return {}
        try:
            return checkpoint.read_offsets(self._fs, f"{data_dir}/{name}")
        except FileNotFoundError:  # replaced just now
            return checkpoint.read_offsets(self._fs, f"{data_dir}/{name}")

    def _stable(self, log: LogFiles, partition: TopicPartition, end: int) -> int:
        """Where the first transaction begins that is open at `end`, or `end`.

        One that is open where the log is damaged does not count: its marker may have been there, and then it would
        hold back all that follows for good. Whoever reads it finds that nobody knows its end.
        """
        known = self._transactions.get(partition)
        if known is None or known.at > end:  # the log was cut, or made anew
            known = self._transactions[partition] = self._snapshot(log, end)
        for found in log.read(known.at, end) if known.at < end else ():
            known.take(found, end)
            known.forget_ended()
        known.at = end
        return min(known.began.values(), default=end)

    def _snapshot(self, log: LogFiles, end: int) -> TransactionsSoFar:
        """Those that the newest producer snapshot at or before `end` has as open."""
        names = (layout.parse_segment_file(name) for name in self._fs.list_dir(log.directory))
        bases = (n.base_offset for n in names if n and n.suffix == layout.SNAPSHOT and not n.marker)
        for base in sorted((base for base in bases if base <= end), reverse=True):
            path = f"{log.directory}/{layout.segment_file(base, layout.SNAPSHOT)}"
            try:
                entries = producer_snapshot.decode(self._fs.read_bytes(path), path)
            except (FileNotFoundError, CorruptSnapshotError):
                continue
            began = {e.producer_id: e.txn_first_offset for e in entries if e.txn_first_offset >= 0}
            return TransactionsSoFar(base, began)
        return TransactionsSoFar(log.first_offset() or 0)

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        starts, ends = self.earliest(times_ms), self.latest(times_ms)
        found: dict[TopicPartition, int | None] = {}
        for partition, time_ms in times_ms.items():
            log = self._log(partition)
            if log is not None and partition in starts and partition in ends:
                found[partition] = log.at_time(time_ms, starts[partition], ends[partition])
        return found

    # -- their bytes

    def marks(self, partition: TopicPartition, start: int, end: int, step_bytes: int) -> list[Mark]:
        log = self._log(partition)
        return log.marks(start, end, step_bytes) if log else [Mark(start, 0), Mark(end, 0)]

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Block | BadBytes | Lost]:
        log = self._log(partition)
        if log is None:
            if self._options.fail_on_data_loss:
                raise UnknownTopicOrPartitionError(
                    f"{partition} is not below {', '.join(self._options.paths)} on {socket.gethostname()}: every"
                    " machine that reads must see these directories, or the topic was deleted"
                )
            yield Lost(start, end)
            return
        yield from read_committed(log, start, end) if self._options.read_committed else log.read(start, end)


def _named(target: listing.Partition) -> TopicPartition:
    if target.topic_partition is None:
        raise ConfigError(f"{target.path} is not named <topic>-<partition>; give the directory such a name")
    return target.topic_partition


def is_held(fs: FileSystem, data_dir: str) -> bool:
    """Whether a broker, ottla's or Apache Kafka's, runs on this directory."""
    try:
        if int(fs.read_bytes(f"{data_dir}/{layout.PID_FILE}")) == os.getpid():
            return True  # in this very process. The lock must not be looked at: closing its file would give it up
    except (FileNotFoundError, ValueError):
        pass
    return fs.is_locked(f"{data_dir}/{layout.LOCK}")
