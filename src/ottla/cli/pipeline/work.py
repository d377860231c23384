"""What the commands of `ottla pipeline` do. Imported when one is called: Arrow and Spark take long to load."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer

from ottla.cli.client.connection import complain
from ottla.cli.options import SparkOptions
from ottla.cli.pipeline.progress import make_watcher
from ottla.cli.tables import print_facts, print_table
from ottla.cli.terminal import say
from ottla.errors import BrokerError, ConfigError, PipelineFileError
from ottla.spark.pipeline.config import TABLE_FORMATS, Pipeline, load
from ottla.words import counted


def _session(pipeline: Pipeline, spark: SparkOptions) -> AbstractContextManager[Any]:
    settings = {}
    if pipeline.sink.format == "topic":
        # A batch that is done again must have the same rows in the same tasks.
        settings["spark.sql.adaptive.enabled"] = "false"
    if spark.master and not spark.master.startswith("local"):
        settings["spark.task.maxFailures"] = "8"
    return spark.session(pipeline.file.stem, settings)


def run(file: Path, *, once: bool, spark: SparkOptions) -> None:
    from ottla.spark.pipeline.engine import SparkEngine
    from ottla.spark.pipeline.run import Runner

    pipeline = load(file)
    with make_watcher(pipeline) as watcher, ExitStack() as opened:

        def engine() -> SparkEngine:
            """Spark is started when there is something to do."""
            watcher.note("starting Spark")
            session = opened.enter_context(_session(pipeline, spark))
            if sys.stderr.isatty():
                from ottla.spark.session.task_progress import watched_tasks

                opened.enter_context(watched_tasks(session, watcher.tasks))
            return SparkEngine(session, pipeline, watcher.note)

        try:
            with _told():
                summary = Runner(pipeline, engine, watcher).run(once=once)
        except KeyboardInterrupt:
            watcher.note("stopped; the next run goes on where the table stands")
            raise
    bad = f", {summary.bad:,} bad" if summary.bad else ""
    done = f"{counted(summary.batches, 'batch', 'batches')}, {counted(summary.read, 'record')} read"
    print(f"{done}, {counted(summary.rows, 'row')} landed{bad}")


@contextmanager
def _told() -> Iterator[None]:
    """What Spark raises in a line, and what is wrong with a pipeline without a word about other settings."""
    from ottla.errors import PipelineError

    try:
        yield
    except ConfigError as error:
        raise (error if isinstance(error, PipelineFileError) else PipelineError(str(error))) from None
    except Exception as error:
        from ottla.spark.session.session import was_interrupted

        if was_interrupted(error):
            raise KeyboardInterrupt from None
        if isinstance(error, (BrokerError, OSError)) or not type(error).__module__.startswith("pyspark"):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise PipelineError(lines[0] if lines else type(error).__name__) from error


def validate(file: Path, *, rows: int, spark: SparkOptions) -> bool:
    from ottla.spark.pipeline.validate import dry_run

    pipeline = load(file)
    with _told():
        report = dry_run(pipeline, rows, lambda: _session(pipeline, spark))
    print(report.text())
    return report.ok


def status(file: Path, *, as_json: bool) -> None:
    from ottla.spark.pipeline.status import collect

    found = collect(load(file))
    if as_json:
        print(json.dumps(found))
        return
    facts = [(name.replace("_", " "), found[name]) for name in found if name != "partitions"]
    print_facts([(f"{name}:", "-" if value is None else value) for name, value in facts])
    if found["partitions"]:
        lines = [(one["partition"], one["offset"], one["end"], one["lag"]) for one in found["partitions"]]
        shown = [tuple("-" if cell is None else cell for cell in line) for line in lines]
        print_table(("partition", "next offset>", "end>", "lag>"), shown)


def show(file: Path, sql: str | None, *, as_json: bool, spark: SparkOptions) -> None:
    from ottla.spark.pipeline.show import register
    from ottla.spark.pipeline.targets.console import as_text

    pipeline = load(file)
    _needs_table(pipeline)
    with _told(), _session(pipeline, spark) as session:
        register(pipeline, session)
        found = session.sql(sql or "select * from rows limit 20").toArrow()
    if as_json:
        for row in found.to_pylist():
            print(json.dumps(row, default=str))
    else:
        say(as_text(found))


def compact(file: Path) -> None:
    from ottla.spark.pipeline.checkpoint import Checkpoint
    from ottla.spark.pipeline.targets.choice import table_sink

    pipeline = load(file)
    _needs_table(pipeline)
    checkpoint = Checkpoint(pipeline.checkpoint)
    if pipeline.sink.format == "parquet":
        checkpoint.acquire()  # its log has one writer
    try:
        print(table_sink(pipeline).compact())
    finally:
        checkpoint.release()


def _needs_table(pipeline: Pipeline) -> None:
    if pipeline.sink.format not in TABLE_FORMATS:
        complain(f"{pipeline.file}: the sink is no table but {pipeline.sink.format}")
        raise typer.Exit(1)
