"""Runs plain Python functions as Spark tasks, and shares segments out among them by bytes.

Every task is a row of a tiny frame in a partition of its own, and what it returns comes back pickled. That works on a
classic session and through Spark Connect alike. Errors that a command tells in one line come back too, without a
second try; only a task that is lost is run again, so that a function must bear that.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from ottla.errors import BrokerError, StorageError

T = TypeVar("T")
R = TypeVar("R")

TASK_BYTES = 64 << 20
_RESULT = pa.schema([("number", pa.int64()), ("result", pa.binary())])


class NotSafeError(StorageError):
    """The session is set up so that writing tasks could get into each other's way."""


@dataclass(frozen=True, slots=True)
class Sized(Generic[T]):
    """A piece of work, and how many bytes of logs it reads."""

    item: T
    size: int


def run_tasks(spark: SparkSession, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """`work` of every item, each in a Spark task, in the order of the items."""
    if not items:
        return []
    packed = [pickle.dumps(item) for item in items]

    def run(batches: Iterator[pa.RecordBatch], _: int) -> Iterator[tuple[int, R]]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield number, work(pickle.loads(packed[number]))

    return run_partitions(spark.range(0, len(items), 1, len(items)), run)


def run_partitions(
    frame: DataFrame, work: Callable[[Iterator[pa.RecordBatch], int], Iterator[tuple[int, R]]]
) -> list[R]:
    """`work` of the rows and the number of every partition of a frame; what it gives, in the order of its numbers."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        own = context.partitionId() if context is not None else 0
        try:
            for number, result in work(batches, own):
                yield _row(number, (True, result))
        except (BrokerError, OSError) as error:
            yield _row(own, (False, error))

    rows = frame.mapInArrow(run, "number long, result binary").collect()
    return [_unpack(row["result"]) for row in sorted(rows, key=lambda row: row["number"])]


def _row(number: int, result: tuple[bool, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()), pa.array([pickle.dumps(result)], pa.binary())], schema=_RESULT
    )


def run_blocks(
    spark: SparkSession, work: Callable[[T], R], items: Sequence[Sized[T]], task_bytes: int = TASK_BYTES
) -> list[R]:
    """As `run_tasks`, with neighbours that are small together in one task."""
    block = _Block(work)
    found = run_tasks(spark, block, _blocks(items, task_bytes))
    return [result for results in found for result in results]


def refuse_speculation(spark: SparkSession) -> None:
    """Tasks that change files must not run twice at the same time."""
    if spark.conf.get("spark.speculation", "false") == "true":
        raise NotSafeError("spark.speculation is on: two tasks would write the same files; turn it off")


class _Block(Generic[T, R]):
    """Does several pieces of work one after the other."""

    def __init__(self, work: Callable[[T], R]) -> None:
        self._work = work

    def __call__(self, items: list[T]) -> list[R]:
        return [self._work(item) for item in items]


def _blocks(items: Sequence[Sized[T]], task_bytes: int) -> list[list[T]]:
    blocks: list[list[T]] = []
    size = 0
    for sized in items:
        if not blocks or size + sized.size > task_bytes:
            blocks.append([])
            size = 0
        blocks[-1].append(sized.item)
        size += sized.size
    return blocks


def _unpack(data: bytes) -> Any:
    is_fine, result = pickle.loads(data)
    if not is_fine:
        raise result
    return result
