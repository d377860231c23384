"""The console: the first rows of each batch, for people. A batch that is done again is shown again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ottla.escapes import visible_line
from ottla.spark.pipeline.checkpoint import Checkpoint
from ottla.spark.pipeline.tasks import TaskResult
from ottla.spark.sinks.base import Commit, LastCommit
from ottla.words import counted

SHOWN_ROWS = 20


@dataclass(frozen=True)
class ConsoleWriter:
    """Counts rows, and keeps the first."""

    def write(self, tables: Iterable[pa.Table], task: int) -> TaskResult:
        rows, kept = 0, list[pa.Table]()
        schema: pa.Schema | None = None
        for table in tables:
            if rows < SHOWN_ROWS:
                kept.append(table.slice(0, SHOWN_ROWS - rows))
            rows += table.num_rows
            schema = table.schema
        shown = pa.concat_tables(kept, promote_options="permissive").combine_chunks() if kept else None
        return TaskResult(rows, [], schema, shown)


class ConsoleTarget:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def last(self, app_id: str) -> LastCommit | None:
        return last_of(self._checkpoint)

    def writer(self, app_id: str, batch: int) -> ConsoleWriter:
        return ConsoleWriter()

    def commit(self, commit: Commit, results: Sequence[TaskResult]) -> None:
        shown = [result.shown for result in results if result.shown is not None]
        if shown:
            rows = pa.concat_tables(shown, promote_options="permissive").slice(0, SHOWN_ROWS)
            print(f"batch {commit.batch}: {counted(commit.facts['rows'], 'row')}")
            print(as_text(rows), flush=True)
        self._checkpoint.save_commit(commit.batch, commit.as_json())

    def give_up(self, app_id: str) -> None:
        """Nobody waits for what was not shown."""

    def sweep(self, app_id: str, batch: int) -> None:
        """Nothing is left behind."""

    def compact(self) -> str:
        return "the console has no files"


def last_of(checkpoint: Checkpoint) -> LastCommit | None:
    found = checkpoint.last_commit()
    return None if found is None else LastCommit(found["batch"], found)


def as_text(rows: pa.Table, width: int = 40) -> str:
    """A table of text, long values cut."""
    cells = [[_cell(name, width) for name in rows.schema.names]]
    cells += [[_cell(value, width) for value in row.values()] for row in rows.to_pylist()]
    widths = [max(len(row[at]) for row in cells) for at in range(rows.num_columns)]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in cells
    ]
    lines.insert(1, "  ".join("-" * size for size in widths))
    return "\n".join(lines)


def _cell(value: object, width: int) -> str:
    if value is None:
        return "null"
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    text = visible_line(" ".join(text.split()))
    return text if len(text) <= width else text[: width - 1] + "…"
