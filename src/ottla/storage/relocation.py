"""The way of a partition's log from one log directory to another of the same broker.

A copy grows beside the log, in a directory marked `-future`, which a start after a crash throws away. When it has all,
and is on disk, it gets the partition's name, and then the old directory gets the mark `-delete`. A crash between the
two renames leaves two equal logs, of which the next start keeps the new one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from ottla.config import LogConfig
from ottla.errors import StorageError
from ottla.names import Bytes, TopicPartition
from ottla.runtime import Runtime
from ottla.storage import checkpoint, layout, losses, quarantine
from ottla.storage.log import reader as log_reader
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.loading import load_log

_COPY_BYTES = 1 << 20


def has_room_for_name(partition: TopicPartition) -> bool:
    """Whether the directory of a copy can be named; a topic's name may be too long for that."""
    name = f"{partition}.{'0' * 32}{layout.FUTURE_DIR}"
    return layout.parse_marked_dir(name) is not None and len(name) <= layout.MAX_NAME_LENGTH


def first_batch_offset(log: Log) -> int:
    """Where a copy begins: with the batch that holds the log start, which may lie inside of it."""
    located = log.segments.from_offset(log.start_offset)[0].locate(log.start_offset)
    return log.start_offset if located is None else min(located.base_offset, log.start_offset)


class Relocation:
    """A copy under way. One thread at a time may use it; `finish` is for the owner of the log that is copied."""

    def __init__(
        self,
        partition: TopicPartition,
        target: LogDir,
        config: LogConfig,
        runtime: Runtime,
        producer_expiration_ms: int,
    ) -> None:
        self.partition = partition
        self.target = target
        self._config = config
        self._runtime = runtime
        self._producer_expiration_ms = producer_expiration_ms
        unique = uuid.UUID(int=runtime.randrange(2**128), version=4).hex
        self._path = f"{target.path}/{layout.marked_dir(partition, unique, layout.FUTURE_DIR)}"
        self._future: Log | None = None

    @property
    def future(self) -> Log:
        assert self._future is not None
        return self._future

    @property
    def has_begun(self) -> bool:
        return self._future is not None

    def begin(self, start_offset: int, topic_id: uuid.UUID | None) -> None:
        """Make the directory, or begin anew in it."""
        if self._future is not None:
            truncation.truncate_fully_and_start_at(self._future, start_offset, truncation.no_point_on_disk)
            return
        self._future = self._load(self._path, start_offset)
        # Nothing of it counts before it is complete: it is flushed then, and not by itself.
        self._future.flusher.hold()
        if topic_id is not None:
            try:
                checkpoint.write_topic_id(
                    self.target.fs, f"{self._path}/{layout.PARTITION_METADATA}", topic_id
                )
            except OSError as error:
                raise self.target.refuse(error, f"copying {self.partition}") from error

    def _load(self, path: str, start_offset: int) -> Log:
        return load_log(
            self.target, path, self.partition, self._config, self._runtime, clean=True, start_offset=start_offset,
            producer_expiration_ms=self._producer_expiration_ms,
        )  # fmt: skip

    def append(self, records: Bytes) -> None:
        """Add what was read from the log."""
        self.future.append_as_follower(records)

    def finish(self, log: Log, old_path: str) -> Log:
        """Copy what is left, then let the copy take the place of the log, whose files get the name `old_path`."""
        self._copy_rest(log)
        log.flush()  # should both be found after a crash, they are the same
        self.future.close()
        new_path = f"{self.target.path}/{self.partition}"
        try:
            quarantine.carry(self.target.fs, log.path, self._path)
            losses.carry(self.target.fs, log.path, self._path)
            self.target.fs.rename(self._path, new_path)
            self.target.fs.sync_dir(self.target.path)
        except OSError as error:
            raise self.target.fail(error, f"moving {self.partition}") from error
        new = self._load(new_path, log.start_offset)
        new.raise_high_watermark(log.high_watermark)
        log.abandon()
        try:
            log.dir.fs.rename(log.path, old_path)
            log.dir.fs.sync_dir(log.dir.path)
        except OSError as error:
            log.dir.fail(error, f"moving {self.partition}")  # the new one is complete and in its place
        return new

    def _copy_rest(self, log: Log) -> None:
        while self.future.end_offset < log.end_offset:
            found = log_reader.read(log, self.future.end_offset, _COPY_BYTES, isolation=Isolation.LOG_END)
            if found.slice is None or self.future.append_as_follower(found.slice.read()) is None:
                raise StorageError(f"{self.partition}: nothing can be read at {self.future.end_offset}")

    def discard(self, remove_dir: Callable[[LogDir, str], None]) -> None:
        """The move is called off."""
        if self._future is not None:
            self._future.abandon()
            remove_dir(self.target, self._path)
