"""The logs that are measured: one partition of large or of small batches, written by ottla itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ottla.config import BrokerConfig, LogConfig
from ottla.names import TopicPartition
from ottla.records.batch import HEADER_SIZE
from ottla.records.builder import build_batch
from ottla.runtime import SystemRuntime
from ottla.storage.fs import RealFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager

PARTITION = TopicPartition("bench", 0)
SEED = 3
OFFSETS_BYTES = 16  # what an append writes into a client's batch

# Batches get the time of their append, as if producers had sent them one after another.
_STAMPED = LogConfig(message_timestamp_type="LogAppendTime")
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))


class Kind(NamedTuple):
    """One of the two shapes of batches."""

    name: str
    records: int
    value_bytes: int

    def batch(self) -> bytearray:
        now_ms = time.time_ns() // 1_000_000
        return build_batch([(now_ms, None, bytes(self.value_bytes), ())] * self.records)


LARGE = Kind("110 KB batches", 1_100, 90)  # of 100-byte records
SMALL = Kind("200-byte batches", 1, 130)


@contextmanager
def managed(data_dir: Path, config: LogConfig | None = None) -> Iterator[LogManager]:
    """A log manager, not yet opened; at the end its files are closed as a crash would close them."""
    runtime = SystemRuntime()
    manager = LogManager(
        RealFileSystem(), runtime, BrokerConfig(log_dirs=(str(data_dir),)), defaults=config or LogConfig()
    )
    try:
        yield manager
    finally:
        runtime.drain()
        manager.abandon()
        runtime.close()


def write_log(data_dir: Path, kind: Kind, volume_bytes: int) -> None:
    """A cleanly closed log of as many batches as fit into `volume_bytes`."""
    data = kind.batch()
    head = bytes(data[:HEADER_SIZE])

    def next_batch() -> bytearray:
        data[:HEADER_SIZE] = head
        return data

    with managed(data_dir, _STAMPED) as manager:
        manager.open()
        _fill(manager.get_or_create(PARTITION), next_batch, volume_bytes)
        manager.close()


def write_keyed_log(data_dir: Path, keys: int, volume_bytes: int) -> None:
    """A cleanly closed log to compact: large batches whose records have random keys; its last segment is empty."""
    chance = random.Random(SEED)
    names = [b"%08d" % number for number in range(keys)]
    value = bytes(LARGE.value_bytes - 8)

    def next_batch() -> bytearray:
        now_ms = time.time_ns() // 1_000_000
        return build_batch([(now_ms, key, value, ()) for key in chance.choices(names, k=LARGE.records)])

    with managed(data_dir, COMPACTED) as manager:
        manager.open()
        log = manager.get_or_create(PARTITION)
        _fill(log, next_batch, volume_bytes)
        log.roll()
        manager.close()


def _fill(log: Log, next_batch: Callable[[], bytearray], volume_bytes: int) -> None:
    data = next_batch()
    while log.size_bytes + len(data) <= volume_bytes:
        log.append_as_leader(data, leader_epoch=0)
        data = next_batch()
