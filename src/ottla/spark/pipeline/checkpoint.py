"""A pipeline's own directory: who it is, which ranges its batches have, and that only one driver runs it.

    pipeline.json     the application's id, by which tables know its batches
    start.json        the offsets at which the first run began
    plans/N.json      batch N's range of offsets, written before the batch begins
    schema.ddl        the columns found so far, where they are inferred
    commits/N.json    batches that are done, for sinks that keep no log of their own
    lock              held while a driver runs

A plan is never changed: a batch that is done again has the same range, so that it has the same rows.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ottla.errors import LogDirLockedError, PipelineError
from ottla.names import TopicPartition
from ottla.spark.read.ranges import Split
from ottla.spark.read.stream import Position
from ottla.spark.tables.ddl import parse_schema, schema_text
from ottla.storage.checkpoint import replace_file
from ottla.storage.fs import File, RealFileSystem

_KEPT_PLANS = 100
_FS = RealFileSystem()


@dataclass(frozen=True)
class Plan:
    batch: int
    start: Position
    end: Position
    splits: tuple[Split, ...]  # kept too: done again, a task has the same rows


class Checkpoint:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock: File | None = None

    # -- who runs

    def acquire(self) -> None:
        """Make the directory, and be the only one who uses it until `release` or the end of the process."""
        for name in ("plans", "commits"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        self._lock = _FS.lock(str(self.directory / "lock"))
        if self._lock is None:
            raise LogDirLockedError(f"{self.directory}: this pipeline is running already")

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def app_id(self) -> str:
        """The application's id; made at the first run."""
        found = self.known_app_id()
        if found is None:
            found = uuid.uuid4().hex
            self._replace("pipeline.json", json.dumps({"app": found}))
        return found

    def known_app_id(self) -> str | None:
        found = self._read("pipeline.json")
        return None if found is None else str(found["app"])

    # -- plans

    def last_plan(self) -> Plan | None:
        numbers = self._numbers("plans")
        return self.plan(numbers[-1]) if numbers else None

    def plan(self, batch: int) -> Plan | None:
        found = self._read(f"plans/{batch}.json")
        if found is None:
            return None
        splits = tuple(
            Split(**{**split, "partition": TopicPartition(*split["partition"])}) for split in found["splits"]
        )
        return Plan(batch, Position.from_json(found["start"]), Position.from_json(found["end"]), splits)

    def save_plan(self, plan: Plan) -> None:
        told = {
            "batch": plan.batch,
            "start": plan.start.to_json(),
            "end": plan.end.to_json(),
            "splits": [asdict(split) for split in plan.splits],
        }
        self._replace(f"plans/{plan.batch}.json", json.dumps(told))
        for number in self._numbers("plans")[:-_KEPT_PLANS]:
            os.unlink(self.directory / "plans" / f"{number}.json")

    def start(self) -> Position | None:
        """Where the first run began; what "latest" meant then, it means for good."""
        found = self._read("start.json")
        return None if found is None else Position.from_json(found)

    def save_start(self, position: Position) -> None:
        self._replace("start.json", json.dumps(position.to_json()))

    # -- commits of sinks without a log

    def last_commit(self) -> dict[str, Any] | None:
        numbers = self._numbers("commits")
        return self._read(f"commits/{numbers[-1]}.json") if numbers else None

    def save_commit(self, batch: int, facts: str) -> None:
        self._replace(f"commits/{batch}.json", facts)
        for number in self._numbers("commits")[:-_KEPT_PLANS]:
            os.unlink(self.directory / "commits" / f"{number}.json")

    # -- columns

    def schema(self) -> pa.Schema | None:
        path = self.directory / "schema.ddl"
        return parse_schema(path.read_text(encoding="utf-8")) if path.exists() else None

    def save_schema(self, schema: pa.Schema) -> None:
        self._replace("schema.ddl", schema_text(schema))

    # -- files

    def _numbers(self, folder: str) -> list[int]:
        place = self.directory / folder
        names = os.listdir(place) if place.exists() else []
        return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.directory / name
        if not path.exists():
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise PipelineError(f"{path} cannot be read: {error}") from None
        return found

    def _replace(self, name: str, text: str) -> None:
        replace_file(_FS, str(self.directory / name), text.encode())
