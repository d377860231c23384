"""The commit log of a Parquet directory: numbered entries, each made in one step, each number only once.

Every tenth entry is a summary of all before it, so that the state is read from a few files however old the table is.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ottla.errors import PipelineError

FOLDER = "_ottla_commits"
_SUMMARY_EVERY = 10


@dataclass
class Entry:
    """One commit."""

    schema: str
    partition_by: list[str]
    added: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    app: dict[str, Any] | None = None


@dataclass
class State:
    """All commits together."""

    version: int = -1
    schema: str | None = None
    partition_by: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # path: rows
    apps: dict[str, dict[str, Any]] = field(default_factory=dict)

    def apply(self, version: int, entry: Entry) -> None:
        self.version = version
        self.schema, self.partition_by = entry.schema, entry.partition_by
        for file in entry.added:
            self.files[file["path"]] = file["rows"]
        for path in entry.removed:
            self.files.pop(path, None)
        if entry.app is not None:
            self.apps[entry.app["app"]] = entry.app


class CommitLog:
    def __init__(self, table: str) -> None:
        self._place = os.path.join(table, FOLDER)

    def state(self) -> State:
        versions = self._versions(".json")
        summaries = [version for version in self._versions(".summary") if version <= (versions or [-1])[-1]]
        state = State(**self._read(summaries[-1], ".summary")) if summaries else State()
        for version in versions:
            if version > state.version:
                state.apply(version, Entry(**self._read(version, ".json")))
        return state

    def last(self) -> Entry | None:
        versions = self._versions(".json")
        return Entry(**self._read(versions[-1], ".json")) if versions else None

    def append(self, version: int, entry: Entry) -> None:
        """Make an entry; if somebody else made one with this number, nothing is done and an error is raised."""
        os.makedirs(self._place, exist_ok=True)
        text = json.dumps(asdict(entry) | {"app": _stamped(entry.app)})
        temporary = self._write(text)
        try:
            # A link fails where the name is taken, which a rename does not.
            os.link(temporary, self._name(version, ".json"))
        except FileExistsError:
            raise PipelineError(
                f"{self._place}: somebody else made commit {version}; is the pipeline running twice?"
            ) from None
        finally:
            os.unlink(temporary)
        _sync(self._place)
        if (version + 1) % _SUMMARY_EVERY == 0:
            Path(self._write(json.dumps(asdict(self.state())))).replace(self._name(version, ".summary"))

    def _write(self, text: str) -> str:
        path = os.path.join(self._place, f"_{uuid.uuid4().hex}.tmp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return path

    def _name(self, version: int, suffix: str) -> str:
        return os.path.join(self._place, f"{version:09d}{suffix}")

    def _read(self, version: int, suffix: str) -> dict[str, Any]:
        with open(self._name(version, suffix), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found

    def _versions(self, suffix: str) -> list[int]:
        names = os.listdir(self._place) if Path(self._place).is_dir() else []
        return sorted(int(name[: -len(suffix)]) for name in names if name.endswith(suffix) and name[0] != "_")


def _stamped(app: dict[str, Any] | None) -> dict[str, Any] | None:

    return None if app is None else app | {"committed_ms": int(time.time() * 1000)}


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
