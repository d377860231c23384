"""`ottla log reindex`, `trim` and `compact`: what they would do to one log, and doing it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from ottla.cli.log.progress import progress_bar
from ottla.cli.values import format_size
from ottla.config import LogConfig
from ottla.logtools import offline
from ottla.logtools.listing import Partition
from ottla.logtools.offline import Trimmed
from ottla.logtools.writing import data_dir_of, locked
from ottla.runtime import SystemRuntime
from ottla.storage.fs import FileSystem
from ottla.words import counted

_HINT = "nothing was changed; --write does it"


@dataclass(frozen=True, slots=True)
class Cut:
    """What to drop: by offset or by time."""

    before: int | None
    after: int | None
    before_ms: int | None
    after_ms: int | None


def run_reindex(fs: FileSystem, partition: Partition, *, interval: int, write: bool) -> None:
    with (
        locked(fs, data_dir_of(fs, partition.path) if write else None),
        progress_bar(fs, partition, "reindex") as done,
    ):
        changed = offline.reindex(fs, partition, interval=interval, write=write, on_progress=done)
    for path in changed:
        print(f"{'rebuilt' if write else 'would rebuild'}: {path}")
    print(differing(len(changed)) + ("" if write or not changed else f"; {_HINT}"))


def differing(files: int) -> str:
    return f"{counted(files, 'file')} {'differs' if files == 1 else 'differ'}"


def run_trim(fs: FileSystem, partition: Partition, cut: Cut, *, write: bool) -> None:
    before, after = _offsets(fs, partition, cut)
    held = offline.measure(fs, partition)
    kept_from = max(held.start_offset, before or 0)
    kept_to = held.end_offset if after is None else min(held.end_offset, after + 1)
    _tell("the log holds", held)
    print(f"kept are offsets {kept_from} to {kept_to} (without {kept_to}), and what shares a batch with them")
    if not write:
        print(_HINT)
        return
    data_dir = data_dir_of(fs, partition.path)
    with locked(fs, data_dir), closing(SystemRuntime()) as runtime:
        offline.trim(fs, partition, runtime, before=before, after=after)
    now = offline.measure(fs, partition)
    _tell("the log now holds", now)
    if data_dir is None and before is not None and now.start_offset < before:
        print(
            f"offsets below {before} in the first segment stay: there is no data directory around this one to note"
            " the log's start in"
        )


def _offsets(fs: FileSystem, partition: Partition, cut: Cut) -> tuple[int | None, int | None]:
    before, after = cut.before, cut.after
    if cut.before_ms is not None:
        found = offline.first_offset_at(fs, partition, cut.before_ms)
        before = offline.measure(fs, partition).end_offset if found is None else found
    if cut.after_ms is not None:
        found = offline.first_offset_at(fs, partition, cut.after_ms + 1)
        after = None if found is None else found - 1
    return before, after


def run_compact(fs: FileSystem, partition: Partition, *, delete_retention_ms: int, write: bool) -> None:
    held = offline.measure(fs, partition)
    _tell("the log holds", held)
    if not write:
        size = sum(segment.size for segment in partition.segments[:-1])
        segments = counted(max(0, held.segments - 1), "segment")
        print(f"{format_size(size)} in {segments} would be compacted; {_HINT}")
        return
    config = LogConfig(
        cleanup_policy=frozenset({"compact"}),
        delete_retention_ms=delete_retention_ms,
        retention_ms=-1,
        retention_bytes=-1,
    )
    with locked(fs, data_dir_of(fs, partition.path)), closing(SystemRuntime()) as runtime:
        cleaned_to = offline.compact(fs, partition, runtime, config)
    if cleaned_to is None:
        print("nothing to compact: the last segment and open transactions stay as they are")
    else:
        _tell(f"compacted up to offset {cleaned_to}; the log now holds", offline.measure(fs, partition))


def _tell(what: str, log: Trimmed) -> None:
    size = f"{format_size(log.size)} in {counted(log.segments, 'segment')}"
    print(f"{what} offsets {log.start_offset} to {log.end_offset} (without {log.end_offset}), {size}")
