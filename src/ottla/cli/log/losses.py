"""`ottla log losses`: shows which records are on record as lost, and takes note that somebody knows."""

from __future__ import annotations

from contextlib import closing

from ottla.cli.json_text import to_json
from ottla.cli.values import format_time
from ottla.logtools.listing import NotALogError, Partition, SideFile, Target, partitions_of
from ottla.runtime import SystemRuntime
from ottla.storage import losses
from ottla.storage.fs import FileSystem
from ottla.storage.losses import Loss


def run(fs: FileSystem, target: Target, *, acknowledge: bool, as_json: bool) -> bool:
    """Whether nothing is left that nobody has acknowledged."""
    if isinstance(target, SideFile) or (isinstance(target, Partition) and not target.whole):
        raise NotALogError("losses are on record for partitions; give a partition or a data directory")
    shown = left = done = 0
    with closing(SystemRuntime()) as runtime:
        for partition in partitions_of(fs, target):
            record = losses.read(fs, partition.path)
            if acknowledge and (record.open or record.unreadable):
                done += len(losses.acknowledge(fs, partition.path, runtime.now_ms()))
                record = losses.read(fs, partition.path)
            for loss in record.losses:
                print(_as_json(partition, loss) if as_json else _line(partition, loss))
            if record.unreadable and not as_json:
                print(f"{partition.path}/{losses.FILE}: {len(record.unreadable)} damaged lines")
            shown += len(record.losses)
            left += len(record.open) + len(record.unreadable)
    if not as_json:
        print(_summary(shown, left, done))
    return not left


def _as_json(partition: Partition, loss: Loss) -> str:
    return to_json({"partition": partition.name, **loss.as_json()})


def _line(partition: Partition, loss: Loss) -> str:
    state = "open" if loss.acknowledged_ms is None else f"acknowledged {format_time(loss.acknowledged_ms)}"
    return f"{partition.name}: {loss.describe()} (found by {loss.found_by} {format_time(loss.found_ms)}; {state})"


def _summary(shown: int, left: int, done: int) -> str:
    if not shown and not left:
        return "nothing is on record as lost"
    if done:
        return f"{done} acknowledged: starts, metrics and `ottla log verify` tell of them no more"
    if not left:
        return "all acknowledged"
    return f"{left} not acknowledged; --acknowledge ends the messages at every start, and verify's defects"
