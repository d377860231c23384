"""A small world for storage tests: one partition directory, a disk of either kind, a clock that is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.config import LogConfig
from ottla.names import TopicPartition
from ottla.records.builder import NewRecord, build_batch
from ottla.records.control import Marker, build_marker
from ottla.records.record import Record, read_batches, read_records
from ottla.storage.fs import FileSystem
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import AppendInfo, Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log.validation import Origin
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.loading import load_log
from ottla.testing.runtime import START_MS, SimulatedRuntime

SMALL: dict[str, Any] = {"internal_segment_bytes": 1 << 20, "segment_index_bytes": 4096}


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    key: bytes | None = b"key",
    timestamp: int = START_MS,
    **fields: Any,
) -> bytes:
    """A batch of `count` records; their timestamps are one millisecond apart."""
    records = [NewRecord(timestamp + number, key, value) for number in range(count)]
    return bytes(build_batch(records, **fields))


def marker(
    producer_id: int, epoch: int = 0, *, commit: bool = False, coordinator_epoch: int = 0, **fields: Any
) -> bytes:
    timestamp = fields.pop("timestamp", START_MS)
    return bytes(build_marker(Marker(not commit, coordinator_epoch), producer_id, epoch, timestamp, **fields))


def records_in(data: bytes) -> list[Record]:
    return [record for position, _ in read_batches(data) for record in read_records(data, position)]


class World:
    """A log dir with the partition `t-0`; `load` opens its log, also after a stop or a kill."""

    def __init__(self, fs: FileSystem, root: str, runtime: SimulatedRuntime) -> None:
        self.fs = fs
        self.root = root
        self.path = f"{root}/t-0"
        self.runtime = runtime
        self.dir = LogDir(fs, root)

    def load(
        self,
        *,
        clean: bool = False,
        recovery_point: int = 0,
        start_offset: int = 0,
        may_have_gaps: bool = False,
        **config: Any,
    ) -> Log:
        """Open the log: small files unless `config` says otherwise."""
        return load_log(
            self.dir, self.path, TopicPartition("t", 0), LogConfig(**{**SMALL, **config}), self.runtime,
            clean=clean, recovery_point=recovery_point, start_offset=start_offset, may_have_gaps=may_have_gaps,
        )  # fmt: skip

    def names(self, suffix: str = "") -> list[str]:
        return sorted(name for name in self.fs.list_dir(self.path) if name.endswith(suffix))

    def read(self, name: str) -> bytes:
        return self.fs.read_bytes(f"{self.path}/{name}")

    def write(self, name: str, data: bytes) -> None:
        """Replace a file's content."""
        self.fs.make_dir(self.path)
        file = self.fs.open(f"{self.path}/{name}", create=True)
        file.truncate(0)
        file.pwrite(data, 0)
        file.close()

    def add(self, name: str, data: bytes) -> None:
        """Put bytes behind what is in a file."""
        self.write(name, self.read(name) + data)


def append(
    log: Log, count: int = 1, *, epoch: int = 0, origin: Origin = Origin.CLIENT, **fields: Any
) -> AppendInfo:
    """Append a batch as leader."""
    return log.append_as_leader(batch(count, **fields), epoch, origin)


def end_transaction(log: Log, producer_id: int, epoch: int = 0, **fields: Any) -> AppendInfo:
    return log.append_as_leader(marker(producer_id, epoch, **fields), 0, Origin.COORDINATOR)


def read_all(log: Log, offset: int | None = None) -> list[Record]:
    """Every record up to the log's end, fetched the way a follower does."""
    offset = log.start_offset if offset is None else offset
    found: list[Record] = []
    while offset < log.end_offset:
        read = log_reader.read(log, offset, 1 << 20, isolation=Isolation.LOG_END)
        if read.slice is None:
            break
        records = list(_whole_records(read.slice.read()))
        found += [record for record in records if record.offset >= offset]
        offset = records[-1].offset + 1
    return found


def _whole_records(data: bytes) -> Iterator[Record]:
    position = 0
    while position + 61 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        if position + size > len(data):
            return
        yield from read_records(data[position : position + size])
        position += size


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]
