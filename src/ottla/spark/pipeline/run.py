"""A pipeline's driver loop: plan a batch, let tasks write it, commit it; after a restart, go on where the table stands.

    plan      the range of offsets, written to the checkpoint before anything else
    write     tasks write files that nobody sees yet
    commit    first the quarantine table, then the table itself: files, offsets and the batch's number in one step
    progress  the consumer group's offsets, for those who look at the lag; nothing depends on it

A driver that dies between any two of them leaves a plan without a commit. The next one finds it, asks the table for
the last batch of this application, and does the planned range again, or goes on behind it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.errors import BrokerError
from ottla.spark import offsets as offset_math
from ottla.spark.loss import DataLostError
from ottla.spark.offsets import EARLIEST, Offsets
from ottla.spark.options import Bound, ReadOptions
from ottla.spark.pipeline.checkpoint import Checkpoint, Plan
from ottla.spark.pipeline.columns import find_columns, grows, merged
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.progress import commit_progress
from ottla.spark.pipeline.quarantine import QUARANTINE_SCHEMA
from ottla.spark.pipeline.sinks.base import Commit
from ottla.spark.pipeline.sinks.choice import make_target, quarantine_sink
from ottla.spark.pipeline.source import reader_options
from ottla.spark.pipeline.table_files import Layout
from ottla.spark.pipeline.tasks import Destination, Reading, Result
from ottla.spark.plan import latest_offsets, plan_splits, starting_offsets

_PATIENCE_S = 5.0  # between two looks for a broker that does not answer


class Watcher(Protocol):
    """Told of every step; what it raises ends the run there."""

    def planned(self, plan: Plan, behind: int) -> None: ...

    def written(self, plan: Plan, results: Sequence[Result]) -> None: ...

    def quarantined(self, plan: Plan, bad: int) -> None: ...

    def committed(self, plan: Plan, facts: dict[str, Any]) -> None: ...

    def note(self, text: str) -> None: ...


class Engine(Protocol):
    """Turns the splits of a batch into rows at the target."""

    def land(self, reading: Reading, destination: Destination, bad_layout: Layout) -> list[Result]: ...


@dataclass
class Summary:
    """What a run did."""

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
        batch, position = self._resume()
        patient = not stop_at_end
        if position is None:  # before the end is asked for: what comes between belongs to the first batch
            position = self._asked(starting_offsets, patient=patient)
            self._checkpoint.save_start(position)
        while True:
            began = time.monotonic()
            goal = self._asked(latest_offsets, patient=patient)
            while (plan := self._next(batch, position, goal)) is not None:
                self._do(plan, behind=offset_math.count(plan.end, goal))
                batch, position = plan.batch + 1, plan.end
            self._summary.offsets = dict(position)
            if stop_at_end:
                return
            assert self._pipeline.interval_s is not None
            self._wait(max(0.0, self._pipeline.interval_s - (time.monotonic() - began)))

    # -- where it stands

    def _resume(self) -> tuple[int, Offsets | None]:
        """The next batch's number and start. A batch that was planned and is not in the table is done now."""
        plan = self._checkpoint.last_plan()
        landed = self._target.last(self._app_id)
        if landed is not None and (plan is None or plan.batch < landed.batch):
            if landed.offsets is None:
                raise DataLostError(
                    f"{self._checkpoint.directory}: the plan of batch {landed.batch} is missing, and the table does "
                    "not say any more where it ended"
                )
            return landed.batch + 1, offset_math.parse(landed.offsets, "the table's offsets")
        if plan is None:
            return 0, self._checkpoint.start()
        if landed is None or landed.batch < plan.batch:
            self._watcher.note(f"batch {plan.batch} was begun and not finished; it is done again")
            self._do(plan, behind=0)
            self._target.sweep(self._app_id, plan.batch)
        return plan.batch + 1, plan.end

    def _asked(self, question: Callable[[ReadOptions], Offsets], *, patient: bool) -> Offsets:
        """What the source says. A pipeline that runs for long waits for a broker that is away."""
        while True:
            try:
                return question(self._options)
            except (BrokerError, OSError) as error:
                if not patient or not (isinstance(error, OSError) or error.retriable):
                    raise
                self._watcher.note(f"{error}; trying again")
                self._wait(_PATIENCE_S)

    def _next(self, batch: int, position: Offsets, goal: Offsets) -> Plan | None:
        """The next batch, or None if there is nothing new. Partitions that are new begin at their first record."""
        start = dict(position)
        fresh = goal.keys() - start.keys()
        if fresh:
            first = starting_offsets(dataclasses.replace(self._options, starting=Bound(EARLIEST)))
            start |= {partition: first[partition] for partition in fresh}
        for partition, last in goal.items():
            if last < start[partition]:
                start[partition] = self._shrunk(str(partition), start[partition], last)
        end = start | offset_math.limit(start, goal, self._pipeline.max_records)
        if end == start:
            return None
        return Plan(batch, start, end, tuple(plan_splits(self._options, start, end)))

    def _shrunk(self, partition: str, known: int, end: int) -> int:
        what = f"{partition} ends at {end}, before {known}, up to which it has been read: it was cut, or made anew"
        if self._options.fail_on_data_loss:
            raise DataLostError(
                f"{what}. With failOnDataLoss=false in [source.options] it is read from there on"
            )
        self._watcher.note(what)
        return end

    # -- one batch

    def _do(self, plan: Plan, *, behind: int) -> None:
        began = time.time()
        self._checkpoint.save_plan(plan)
        self._watcher.planned(plan, behind)
        results = self._written(plan)
        self._watcher.written(plan, results)
        facts = _facts(plan, results, began)
        self._put_aside(plan, results, facts)
        schemas = [result.taken.schema for result in results if result.taken.schema is not None]
        self._target.commit(
            Commit(
                self._app_id,
                plan.batch,
                offset_math.render(plan.end),
                [file for result in results for file in result.taken.files],
                merged(None, schemas) if schemas else None,
                facts,
            ),
            results,
        )
        self._watcher.committed(plan, facts)
        self._count(facts)
        if self._pipeline.source.group:
            self._tell_group(plan.end)
        every = self._pipeline.sink.compact_every
        if every and (plan.batch + 1) % every == 0:
            self._watcher.note(f"compacted: {self._target.compact()}")

    def _written(self, plan: Plan) -> list[Result]:
        columns = find_columns(self._pipeline, self._checkpoint, self._options, plan.splits)
        if self._engine is None:
            self._engine = self._make_engine()
        while True:
            reading = Reading(
                self._options,
                plan.splits,
                self._pipeline.decode,
                columns,
                grows(self._pipeline),
                self._pipeline.expectations,
            )
            results = self._engine.land(
                reading,
                self._target.destination(self._app_id, plan.batch),
                self._quarantine.layout(self._app_id, plan.batch),
            )
            seen = [result.decoded for result in results if result.decoded is not None]
            if not reading.grow or not seen:
                return results
            known = merged(columns, seen)
            if columns is None or not known.equals(columns):
                self._checkpoint.save_schema(known)
            if all(known.field(column.name).type == column.type for one in seen for column in one):
                return results
            # Two tasks took up the same new column with different types: once more, with one type for both.
            columns = known

    def _put_aside(self, plan: Plan, results: Sequence[Result], facts: dict[str, Any]) -> None:
        files = [file for result in results for file in result.bad_files]
        if files:
            facts_there = {"rows": sum(file.rows for file in files)}
            offsets = offset_math.render(plan.end)
            self._quarantine.commit(
                Commit(self._app_id, plan.batch, offsets, files, QUARANTINE_SCHEMA, facts_there)
            )
        self._watcher.quarantined(plan, facts["bad"])

    def _tell_group(self, offsets: Offsets) -> None:
        """So that every Kafka tool sees the lag. The table alone decides where to go on, so a failure is only told."""
        assert self._pipeline.source.group is not None
        try:
            commit_progress(self._options, self._pipeline.source.group, offsets)
        except (BrokerError, OSError) as error:
            self._watcher.note(f"progress was not committed to the group: {error}")

    def _count(self, facts: dict[str, Any]) -> None:
        self._summary.batches += 1
        self._summary.read += facts["read"]
        self._summary.rows += facts["rows"]
        self._summary.bad += facts["bad"]


def _facts(plan: Plan, results: Sequence[Result], began: float) -> dict[str, Any]:
    return {
        "read": sum(result.read for result in results),
        "rows": sum(result.taken.rows for result in results),
        "bad": sum(result.bad for result in results),
        "start": offset_math.to_nested(plan.start),
        "took_ms": round((time.time() - began) * 1000),
    }
