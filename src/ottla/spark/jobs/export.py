"""Writes topics out as Parquet: a file for each split, under topic=<name>/partition=<number>.

The files get their place together, when all of them are complete. Rows never pass the JVM.
"""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ottla.errors import ConfigError
from ottla.spark.jobs.tasks import run_tasks
from ottla.spark.options import CORRUPT, ReadOptions
from ottla.spark.read import plan
from ottla.spark.read.ranges import Split

_CODEC = "zstd"
_LEFT_OUT = ("topic", "partition", CORRUPT)


@dataclass(frozen=True, slots=True)
class Exported:
    """One file."""

    file: str  # below the directory
    topic: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int
    size: int
    damaged: int  # stretches of bad bytes that were left out


@dataclass(frozen=True, slots=True)
class _Todo:
    options: ReadOptions
    split: Split
    directory: str

    def write(self) -> Exported:
        partition, start, end = self.split.partition, self.split.start, self.split.end
        name = f"topic={partition.topic}/partition={partition.partition}/{start:020d}-{end:020d}.parquet"
        path = Path(self.directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        # The directories say what topic and partition are; readers take them for columns.
        wanted = [field for field in plan.arrow_schema(self.options) if field.name not in _LEFT_OUT]
        schema = pa.schema(wanted)
        rows = damaged = 0
        with pq.ParquetWriter(temporary, schema, compression=_CODEC) as writer:
            for batch in plan.read_split(self.options, self.split):
                good = batch.select(schema.names)
                if CORRUPT in batch.schema.names:
                    bad = batch.column(CORRUPT)
                    damaged += len(bad) - bad.null_count
                    good = good.filter(pc.is_null(bad))
                rows += good.num_rows
                writer.write_batch(good)
        temporary.replace(path)
        size = path.stat().st_size
        return Exported(name, partition.topic, partition.partition, start, end, rows, size, damaged)


def export(spark: SparkSession, options: ReadOptions, target: str) -> list[Exported]:
    """Write what the options choose into a new directory."""
    if os.path.lexists(target) and not (Path(target).is_dir() and not os.listdir(target)):
        raise ConfigError(f"{target} is there already; choose a new directory, or remove it")
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    staged = f"{target}.{uuid.uuid4().hex}.exporting"
    os.makedirs(staged)
    try:
        written = run_tasks(spark, _Todo.write, [_Todo(options, split, staged) for split in splits])
        Path(staged).replace(target)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return written
