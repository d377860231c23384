"""A consumer over ottla's logs that answers as Kafka's own does (see interop/java/KafkaOps.java).

It goes by what `log_reader.read` gives it and nothing else: batches and the list of aborted transactions. Records
come as dicts in the shape of KafkaOps, so that both can be compared with `==`.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ottla.config import BrokerConfig, LogConfig
from ottla.records import batch, control, kernel
from ottla.records.legacy import conversion as legacy
from ottla.records.record import read_records
from ottla.runtime import Runtime
from ottla.storage.fs import RealFileSystem
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log_manager import LogManager

MAX_OUTPUT_BYTES = 1 << 26
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def open_logs(
    data_dir: Path,
    runtime: Runtime,
    defaults: LogConfig,
    topic_configs: Mapping[str, LogConfig] | None = None,
) -> tuple[LogManager, dict[str, Log]]:
    """Open a data directory; every log with all it holds readable, as on a broker without followers."""
    broker = BrokerConfig(log_dirs=(str(data_dir),))
    manager = LogManager(RealFileSystem(), runtime, broker, defaults=defaults, topic_configs=topic_configs)
    manager.open()
    for log in manager.logs.values():
        log.raise_high_watermark(log.end_offset)
    return manager, {str(partition): log for partition, log in manager.logs.items()}


def consume(
    log: Log, offset: int | None = None, *, committed: bool = False, max_bytes: int = 1 << 20
) -> list[dict[str, Any]]:
    """Every record from `offset` on (or from the log's start) that a consumer is given."""
    isolation = Isolation.COMMITTED if committed else Isolation.HIGH_WATERMARK
    position = log.start_offset if offset is None else offset
    records: list[dict[str, Any]] = []
    while True:
        found = log_reader.read(log, position, max_bytes, isolation=isolation)
        if found.slice is None:
            return records
        data = found.slice.read()
        rows = _whole_batches(data)
        dropped = _aborted_batches(data, rows, found.aborted)
        for row in rows:
            if row[kernel.POSITION] not in dropped and not row[kernel.ATTRIBUTES] & batch.CONTROL:
                records += (one for one in describe(data, row) if one["offset"] >= position)
        position = rows[-1][kernel.LAST_OFFSET] + 1


def describe(data: bytes, row: array[int]) -> Iterator[dict[str, Any]]:
    """The records of the batch, of any magic, that a scan of `data` found."""
    start, size = row[kernel.POSITION], row[kernel.SIZE]
    if row[kernel.MAGIC] == batch.MAGIC_V2:
        kind = TIMESTAMP_TYPES[bool(row[kernel.ATTRIBUTES] & batch.LOG_APPEND_TIME)]
        epoch = None if row[kernel.LEADER_EPOCH] < 0 else row[kernel.LEADER_EPOCH]
        for record in read_records(data, start):
            yield as_dict(
                record.offset, record.timestamp, kind, record.key, record.value, epoch, record.headers
            )
        return
    for old in legacy.read_message_set(data, start, start + size, max_output_bytes=MAX_OUTPUT_BYTES):
        kind = TIMESTAMP_TYPES[old.timestamp_type] if row[kernel.MAGIC] else "NoTimestampType"
        yield as_dict(old.offset, old.timestamp, kind, old.key, old.value, None, [])


def _whole_batches(data: bytes) -> list[array[int]]:
    """The rows of all whole batches; what is behind them is a batch cut by the end of the read."""
    rows = array("q", bytes(8 * kernel.ROW * (len(data) // 26 + 1)))
    count, _, status = kernel.scan(data, 0, len(data), rows, kernel.CHECK_CRC | kernel.CHECK_RECORDS)
    assert count, "a read must give one whole batch at least"
    assert status in (kernel.OK, kernel.TRUNCATED), kernel.STATUS_MEANING[status]
    return [rows[at : at + kernel.ROW] for at in range(0, count * kernel.ROW, kernel.ROW)]


def _aborted_batches(data: bytes, rows: list[array[int]], aborted: list[Any]) -> set[int]:
    """Positions of batches that belong to aborted transactions, found the way a consumer finds them."""
    waiting = sorted(aborted, key=lambda txn: txn.first_offset)
    open_producers: set[int] = set()
    dropped = set()
    for row in rows:
        while waiting and waiting[0].first_offset <= row[kernel.LAST_OFFSET]:
            open_producers.add(waiting.pop(0).producer_id)
        producer_id, attributes = row[kernel.PRODUCER_ID], row[kernel.ATTRIBUTES]
        if attributes & batch.CONTROL:
            marker = control.parse_marker(data, row[kernel.POSITION])
            if marker is not None and marker.is_abort:
                open_producers.discard(producer_id)
        elif attributes & batch.TRANSACTIONAL and producer_id in open_producers:
            dropped.add(row[kernel.POSITION])
    return dropped


def as_dict(
    offset: int,
    timestamp: int,
    timestamp_type: str,
    key: bytes | None,
    value: bytes | None,
    leader_epoch: int | None,
    headers: list[tuple[bytes, bytes | None]],
) -> dict[str, Any]:
    """A record in the shape that KafkaOps gives it."""
    return {
        "offset": offset,
        "timestamp": timestamp,
        "timestamp_type": timestamp_type,
        "key": _text(key),
        "value": _text(value),
        "leader_epoch": leader_epoch,
        "headers": [[name.decode(), _text(data)] for name, data in headers],
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
