"""A pipeline's driver loop: plan a batch, let tasks write it, commit it; after a restart, go on where the table stands.

    plan      the range of offsets, written to the checkpoint before anything else
    write     tasks write files that nobody sees yet
    commit    first the quarantine table, then the table itself: files, offsets and the batch's number in one step
    progress  the consumer group's offsets, for those who look at the lag; nothing depends on it

A driver that dies between any two of them leaves a plan without a commit. The next one finds it, asks the table for
the last batch of this application, and does the planned range again, or goes on behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.errors import BrokerError
from ottla.spark import offsets as offset_math
from ottla.spark.offsets import Offsets
from ottla.spark.pipeline.checkpoint import Checkpoint, Plan
from ottla.spark.pipeline.columns import find_columns, grows, merged, told_of
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.quarantine import QUARANTINE_SCHEMA
from ottla.spark.pipeline.source import reader_options
from ottla.spark.pipeline.targets.choice import make_target, quarantine_sink
from ottla.spark.pipeline.tasks import RowWriter, TaskInput, TaskResult
from ottla.spark.read.loss import DataLostError
from ottla.spark.read.stream import Position, StreamPlan
from ottla.spark.sinks.base import Commit
from ottla.spark.tables.names import Clashes
from ottla.spark.tables.table_files import Layout


class Watcher(Protocol):
    """Called at every step of a batch; an exception that it raises ends the run at that step."""

    def planned(self, plan: Plan, behind: int) -> None: ...

    def written(self, plan: Plan, results: Sequence[TaskResult]) -> None: ...

    def quarantined(self, plan: Plan, bad: int) -> None: ...

    def committed(self, plan: Plan, facts: dict[str, Any]) -> None: ...

    def note(self, text: str) -> None: ...


class Engine(Protocol):
    """Turns the splits of a batch into rows at the target."""

    def run(self, given: TaskInput, writer: RowWriter, bad_layout: Layout) -> list[TaskResult]: ...


@dataclass
class Summary:
    """Counts of one run: batches, records read, rows written, bad rows; and the offsets it ended at."""

    batches: int = 0
    read: int = 0
    rows: int = 0
    bad: int = 0
    offsets: Offsets = field(default_factory=dict)


class Runner:
    def __init__(
        self,
        pipeline: Pipeline,
        engine: Callable[[], Engine],
        watcher: Watcher,
        *,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._pipeline = pipeline
        self._make_engine = engine
        self._engine: Engine | None = None
        self._watcher = watcher
        self._wait = wait
        self._options = reader_options(pipeline)
        self._checkpoint = Checkpoint(pipeline.checkpoint)
        self._summary = Summary()
        self._told: set[str] = set()  # names of which it was said that they are passed over

    def run(self, *, once: bool = False) -> Summary:
        """Until there is nothing more (available_now, once), or until it is interrupted."""
        self._checkpoint.acquire()
        try:
            self._app_id = self._checkpoint.app_id()
            self._target = make_target(self._pipeline, self._checkpoint)
            self._quarantine = quarantine_sink(self._pipeline)
            self._go(stop_at_end=once or self._pipeline.interval_s is None)
        finally:
            self._checkpoint.release()
        return self._summary

    def _go(self, *, stop_at_end: bool) -> None:
        batch, position = 0, None
        knows_position = False
        while True:
            began = time.monotonic()
            try:
                if not knows_position:
                    batch, position = self._resume()
                    knows_position = True
                batch, position = self._round(batch, position, stop_at_end=stop_at_end)
            except (BrokerError, OSError) as error:
                # A pipeline that runs for long waits for a broker that is away; a batch that was begun is done again.
                if stop_at_end or not (isinstance(error, OSError) or error.retriable):
                    raise
                self._watcher.note(f"{error}; trying again")
                knows_position = False
            if stop_at_end:
                return
            assert self._pipeline.interval_s is not None
            self._wait(max(0.0, self._pipeline.interval_s - (time.monotonic() - began)))

    def _round(self, batch: int, position: Position | None, *, stop_at_end: bool) -> tuple[int, Position]:
        """From where it stands to the present end."""
        with closing(StreamPlan(self._options)) as stream:
            if position is None:
                position = stream.initial()
                self._checkpoint.save_start(position)
            if stop_at_end:
                stream.stop_at_the_end_of_now()
            batch, position = self._catch_up(stream, batch, position)
        self._summary.offsets = dict(position.offsets)
        return batch, position

    def _catch_up(self, stream: StreamPlan, batch: int, position: Position) -> tuple[int, Position]:
        """Batch after batch, until nothing is new."""
        while (end := stream.next(position)) != position:
            # Partitions that are new stand at their first record in `end`, and are read by the next batch.
            start = {partition: position.offsets.get(partition, at) for partition, at in end.offsets.items()}
            splits = stream.splits(Position(start, end.topic_ids), end)
            if splits:
                plan = Plan(batch, Position(start, end.topic_ids), end, tuple(splits))
                self._do(plan, behind=offset_math.count(end.offsets, stream.newest().offsets))
                batch += 1
            position = end
        return batch, position

    # -- where it stands

    def _resume(self) -> tuple[int, Position | None]:
        """The next batch's number and start. A batch that was planned and is not in the table is done now."""
        plan = self._checkpoint.last_plan()
        last = self._target.last(self._app_id)
        if last is not None and (plan is None or plan.batch < last.batch):
            if last.position is None:
                raise DataLostError(
                    f"{self._checkpoint.directory}: the plan of batch {last.batch} is missing, and the table does "
                    "not say any more where it ended"
                )
            return last.batch + 1, last.position
        if plan is None:
            return 0, self._checkpoint.start()
        if last is None or last.batch < plan.batch:
            self._watcher.note(f"batch {plan.batch} was begun and not finished; it is done again")
            self._do(plan, behind=0)
            self._target.sweep(self._app_id, plan.batch)
        return plan.batch + 1, plan.end

    # -- one batch

    def _do(self, plan: Plan, *, behind: int) -> None:
        began = time.time()
        self._checkpoint.save_plan(plan)
        self._watcher.planned(plan, behind)
        try:
            facts = self._land(plan, began)
        except BaseException:
            self._target.give_up(self._app_id)
            raise
        self._watcher.committed(plan, facts)
        self._count(facts)
        if self._pipeline.source.group:
            self._tell_group(plan.end.offsets)
        every = self._pipeline.sink.compact_every
        if every and (plan.batch + 1) % every == 0:
            self._watcher.note(f"compacted: {self._target.compact()}")

    def _land(self, plan: Plan, began: float) -> dict[str, Any]:
        results = self._written(plan)
        self._watcher.written(plan, results)
        facts = _facts(plan, results, began)
        self._put_aside(plan, results, facts)
        schemas = [result.schema for result in results if result.schema is not None]
        self._target.commit(
            Commit(
                self._app_id,
                plan.batch,
                plan.end,
                [file for result in results for file in result.files],
                merged(None, schemas) if schemas else None,
                facts,
            ),
            results,
        )
        return facts

    def _written(self, plan: Plan) -> list[TaskResult]:
        columns = find_columns(
            self._pipeline, self._checkpoint, self._options, plan.splits, self._watcher.note
        )
        if self._engine is None:
            self._engine = self._make_engine()
        while True:
            given = TaskInput(
                self._options,
                plan.splits,
                self._pipeline.decode,
                columns,
                grows(self._pipeline),
                self._pipeline.expectations,
            )
            results = self._engine.run(
                given,
                self._target.writer(self._app_id, plan.batch),
                self._quarantine.layout(self._app_id, plan.batch),
            )
            seen = [result.decoded for result in results if result.decoded is not None]
            if not given.grow or not seen:
                return results
            self._tell_clashes({name: kept for one in results for name, kept in one.clashes.items()})
            known = merged(columns, seen)
            if columns is None or not known.equals(columns):
                self._checkpoint.save_schema(known)
            kinds = {column.name: column.type for column in known}
            if all(kinds.get(column.name) == column.type for one in seen for column in one):
                return results
            # Two tasks took up the same new column with different types, or in another case: once more, with one.
            columns = known

    def _tell_clashes(self, clashes: Clashes) -> None:
        new = {name: kept for name, kept in clashes.items() if name not in self._told}
        if new:
            self._watcher.note(told_of(self._pipeline, new))
            self._told |= new.keys()

    def _put_aside(self, plan: Plan, results: Sequence[TaskResult], facts: dict[str, Any]) -> None:
        files = [file for result in results for file in result.bad_files]
        if files:
            facts_there = {"rows": sum(file.rows for file in files)}
            self._quarantine.commit(
                Commit(self._app_id, plan.batch, plan.end, files, QUARANTINE_SCHEMA, facts_there)
            )
        self._watcher.quarantined(plan, facts["bad"])

    def _tell_group(self, offsets: Offsets) -> None:
        """So that every Kafka tool sees the lag. The table alone decides where to go on, so a failure is only told."""
        from ottla.spark.progress import commit_progress

        try:
            commit_progress(self._options.kafka, offsets, self._pipeline.source.group)
        except (BrokerError, OSError) as error:
            self._watcher.note(f"progress was not committed to the group: {error}")

    def _count(self, facts: dict[str, Any]) -> None:
        self._summary.batches += 1
        self._summary.read += facts["read"]
        self._summary.rows += facts["rows"]
        self._summary.bad += facts["bad"]


def _facts(plan: Plan, results: Sequence[TaskResult], began: float) -> dict[str, Any]:
    return {
        "read": sum(result.read for result in results),
        "rows": sum(result.rows for result in results),
        "bad": sum(result.bad for result in results),
        "start": offset_math.to_nested(plan.start.offsets),
        "took_ms": round((time.time() - began) * 1000),
    }
