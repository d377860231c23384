"""What the tests of the jobs share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ottla.cli.options import SparkOptions
from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.listing import DataDir, Partition, partitions_of, resolve
from ottla.storage.fs import RealFileSystem

FS = RealFileSystem()
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("headers", HEADERS),
    ]
)


@dataclass(frozen=True)
class Here(SparkOptions):
    """A session that is there already, and stays."""

    spark: SparkSession | None = None

    def session(self, name: str, settings: Mapping[str, str] | None = None) -> AbstractContextManager[Any]:
        return nullcontext(self.spark)


def target_at(path: Path) -> DataDir | Partition:
    target = resolve(FS, str(path))
    assert isinstance(target, DataDir | Partition)
    return target


def tree(path: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def records(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the plain reader gives, by partition."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for partition in partitions_of(FS, target_at(path)):
        found[partition.name] = rows = []
        for item in dump_records(FS, partition, Query()):
            assert not isinstance(item, FoundDamage)
            record = item[1]
            headers = [(name.decode(), value) for name, value in record.headers]
            rows.append((record.offset, record.timestamp, record.key, record.value, headers))
    return found
