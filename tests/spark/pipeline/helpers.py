"""What the tests of pipelines share: files, topics with records, and runs in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from ottla.spark.pipeline.checkpoint import Plan
from ottla.spark.pipeline.config import Pipeline, load
from ottla.spark.pipeline.run import Runner, Summary
from ottla.spark.pipeline.targets.choice import quarantine_sink, table_sink
from ottla.spark.pipeline.tasks import RowWriter, TaskInput, TaskResult, run_split
from ottla.spark.sinks.base import TableSink
from ottla.spark.tables.ddl import TIMESTAMP
from ottla.spark.tables.table_files import Layout
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.table_rows import table_rows

TABLES = ("delta", "iceberg", "parquet")
SCHEMA = "id long, item string, price double"


class KilledHere(Exception):  # noqa: N818 - what a test raises in place of a kill
    """The driver dies at this step."""


class Steps:
    """Writes down every step, and dies at the one that it is told to."""

    def __init__(self, die_at: str = "", die_in_batch: int = 0) -> None:
        self.steps: list[str] = []
        self.notes: list[str] = []
        self._die_at = die_at
        self._die_in_batch = die_in_batch

    def _step(self, name: str, plan: Plan) -> None:
        self.steps.append(name)
        if name == self._die_at and plan.batch == self._die_in_batch:
            raise KilledHere(name)

    def planned(self, plan: Plan, behind: int) -> None:
        self._step("planned", plan)

    def written(self, plan: Plan, results: Sequence[TaskResult]) -> None:
        self._step("written", plan)

    def quarantined(self, plan: Plan, bad: int) -> None:
        self._step("quarantined", plan)

    def committed(self, plan: Plan, facts: dict[str, Any]) -> None:
        self._step("committed", plan)

    def note(self, text: str) -> None:
        self.notes.append(text)


def write_pipeline(place: Path, broker: EmbeddedBroker, topic: str, **sections: str) -> Pipeline:
    """A pipeline's file: lines of sections, given or as most tests want them."""
    source = f'topics = ["{topic}"]\nbootstrap = "{broker.bootstrap}"\n'
    parts = {
        "source": source + sections.pop("more_source", ""),
        "decode": f'value = "json"\nschema = "{SCHEMA}"\n',
        "sink": 'format = "delta"\npath = "lake/rows"\n',
        "run": 'checkpoint = "checkpoint"\n',
    }
    extra = sections.pop("extra", "")
    parts |= sections
    text = "".join(f"[{name}]\n{lines}\n" for name, lines in parts.items()) + extra
    file = place / "pipeline.toml"
    file.write_text(text)
    return load(file)


def sink_lines(form: str, more: str = "") -> str:
    return f'format = "{form}"\npath = "lake/rows"\n{more}'


class EngineHere:
    """Tasks in this process, one after the other."""

    def run(self, given: TaskInput, writer: RowWriter, bad_layout: Layout) -> list[TaskResult]:
        return [run_split(given, writer, bad_layout, index) for index in range(len(given.splits))]


def run_here(pipeline: Pipeline, steps: Steps | None = None) -> Summary:
    """To the present end, tasks in this process."""
    return Runner(pipeline, EngineHere, steps or Steps()).run(once=True)


def produce(
    broker: EmbeddedBroker, topic: str, values: Iterable[object], partition: int = 0, **settings: object
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 5, **settings})
    for value in values:
        data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
        producer.produce(topic, data, partition=partition)
    assert producer.flush(60) == 0


def orders(start: int, end: int) -> list[dict[str, object]]:
    return [{"id": number, "item": "book", "price": number + 0.5} for number in range(start, end)]


def ids(sink: TableSink) -> list[int]:
    table = table_rows(sink)
    return [] if table is None else sorted(table.column("id").to_pylist())


def landed_ids(pipeline: Pipeline) -> list[int]:
    return ids(table_sink(pipeline))


def bad_rows(pipeline: Pipeline) -> list[dict[str, Any]]:
    table = table_rows(quarantine_sink(pipeline))
    rows = [] if table is None else table.to_pylist()
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def raw_batch(values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Records as the reader gives them."""
    count = len(values)
    return pa.record_batch(
        {
            "key": pa.array([b"key"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["topic"] * count, pa.string()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, TIMESTAMP),
        }
    )
