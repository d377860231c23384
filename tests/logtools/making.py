"""Makes the logs that the tests of the log tools look at: small, with everything in them that a log can hold."""

from __future__ import annotations

import uuid
from pathlib import Path

from ottla.config import BrokerConfig, LogConfig
from ottla.logtools.findings import Finding
from ottla.logtools.listing import resolve
from ottla.logtools.verify.data_dir import verify
from ottla.names import TopicPartition
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.control import Marker, build_marker
from ottla.storage.fs import RealFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.validation import Origin
from ottla.storage.log_manager import LogManager
from ottla.testing.runtime import START_MS, SimulatedRuntime

SMALL = LogConfig(internal_segment_bytes=2000, index_interval_bytes=200, segment_index_bytes=240)
ORDERS = TopicPartition("orders", 0)


def records(number: int, count: int = 4) -> list[NewRecord]:
    """Records whose timestamps grow from batch to batch and inside them."""
    return [
        NewRecord(
            START_MS + number * 10 + i,
            b"key-%d" % (number % 3) if i else None,
            b"value %d " % number * 3,
            [(b"header", b"\xff\x00"), (b"none", None)] if i % 2 else [],
        )
        for i in range(count)
    ]


def append(log: Log, number: int, count: int = 4, **fields: object) -> None:
    epoch = number // 12
    log.append_as_leader(build_batch(records(number, count), **fields), epoch)  # type: ignore[arg-type]


def end_transaction(log: Log, producer_id: int, number: int, *, is_abort: bool) -> None:
    marker = build_marker(Marker(is_abort, 0), producer_id, 0, START_MS + number * 10 + 9)
    log.append_as_leader(marker, number // 12, Origin.COORDINATOR)


def fill(log: Log) -> None:
    """Every codec, an idempotent producer, committed and aborted transactions, several epochs and segments."""
    sequences = {7: 0, 8: 0, 9: 0}
    for number in range(36):
        codec = list(Codec)[number % 5]
        kind = number % 6
        if kind in (1, 2, 4):
            producer_id = {1: 7, 2: 8, 4: 9}[kind]
            append(
                log,
                number,
                codec=codec,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequences[producer_id],
                transactional=producer_id != 7,
            )
            sequences[producer_id] += 4
        else:
            append(log, number, codec=codec)
        if kind == 5:
            end_transaction(log, 8, number, is_abort=number % 4 == 1)
            end_transaction(log, 9, number, is_abort=True)


def open_manager(path: Path, config: LogConfig = SMALL) -> LogManager:
    manager = LogManager(
        RealFileSystem(), SimulatedRuntime(), BrokerConfig(log_dirs=(str(path),)), defaults=config
    )
    manager.open()
    return manager


def make_data_dir(path: Path, config: LogConfig = SMALL) -> Path:
    """A data directory after a clean stop, with the partitions orders-0 and orders-1."""
    manager = open_manager(path, config)
    for partition in (ORDERS, TopicPartition("orders", 1)):
        log = manager.get_or_create(partition, uuid.UUID(int=0x1234567890))
        fill(log)
        log.raise_high_watermark(log.end_offset)
    manager.close()
    return path


def check(path: Path | str) -> list[Finding]:
    fs = RealFileSystem()
    return list(verify(fs, resolve(fs, str(path))))


def defects(path: Path | str) -> list[Finding]:
    return [finding for finding in check(path) if finding.level == "defect"]
