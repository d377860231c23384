"""`ottla log dump --parquet`: batches or records as a Parquet file, a row group at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ottla.cli.log.output import found_fields, warn
from ottla.logtools.dump import FoundDamage, Query, dump_batches, dump_records
from ottla.logtools.listing import NotALogError, Partition, Target, partitions_of
from ottla.storage.fs import FileSystem

_ROW_GROUP_ROWS = 50_000
_ROW_GROUP_BYTES = 32 << 20


def write(
    fs: FileSystem,
    target: Target,
    query: Query,
    path: str,
    *,
    records: bool,
    on_progress: Callable[[int], None],
) -> bool:
    """Whether everything could be read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise NotALogError("Parquet needs pyarrow: pip install 'ottla[parquet]'") from None
    schema = _record_schema(pa) if records else _batch_schema(pa)
    found = _Rows(fs, query, on_progress)
    with pq.ParquetWriter(path, schema) as writer:
        for partition in partitions_of(fs, target):
            rows = found.records(partition) if records else found.batches(partition)
            for group in _groups(rows):
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
    return found.whole


def _record_schema(pa: Any) -> Any:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(header)),
        ]
    )


def _batch_schema(pa: Any) -> Any:
    names = [
        "base_offset",
        "last_offset",
        "count",
        "position",
        "size",
        "magic",
        "base_timestamp",
        "max_timestamp",
    ]
    names += ["producer_id", "producer_epoch", "base_sequence", "leader_epoch", "crc"]
    fields = [("topic", pa.string()), ("partition", pa.int32()), ("file", pa.string())]
    fields += [(name, pa.int64()) for name in names]
    fields += [("codec", pa.string()), ("timestamp_type", pa.string()), ("damage", pa.string())]
    fields += [(name, pa.bool_()) for name in ("is_transactional", "is_control", "crc_ok")]
    return pa.schema(fields)


class _Rows:
    """What the files hold, as rows; `whole` is False once something could not be read."""

    def __init__(self, fs: FileSystem, query: Query, on_progress: Callable[[int], None]) -> None:
        self._fs = fs
        self._query = query
        self._on_progress = on_progress
        self.whole = True

    def records(self, partition: Partition) -> Iterator[dict[str, Any]]:
        where = _where(partition)
        for found in dump_records(self._fs, partition, self._query, self._on_progress):
            if isinstance(found, FoundDamage):
                self.whole = False
                warn(found)
                continue
            record = found[1]
            yield where | {
                "offset": record.offset,
                "timestamp": record.timestamp if record.timestamp >= 0 else None,
                "key": record.key,
                "value": record.value,
                "headers": [
                    {"key": k.decode(errors="backslashreplace"), "value": v} for k, v in record.headers
                ],
            }

    def batches(self, partition: Partition) -> Iterator[dict[str, Any]]:
        where = _where(partition)
        for found in dump_batches(self._fs, partition, self._query, self._on_progress):
            fields = found_fields(partition, found)
            if isinstance(found, FoundDamage):
                self.whole = False
            fields.pop("damaged_bytes", None)
            yield fields | where


def _where(partition: Partition) -> dict[str, Any]:
    known = partition.topic_partition
    return {
        "topic": known.topic if known else partition.name,
        "partition": known.partition if known else None,
    }


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.get("value") or b"") + len(row.get("key") or b"")
        if len(group) >= _ROW_GROUP_ROWS or size >= _ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
