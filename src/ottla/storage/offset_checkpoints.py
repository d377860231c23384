"""The checkpoints of all log directories: recovery points, log starts, high watermarks, and how far logs are compacted.

What may block is planned here and done by whoever has threads for it: `plan...` returns the work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ottla.errors import DiskFullError
from ottla.names import TopicPartition
from ottla.storage import layout
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.opened_dir import OpenedDir


class OffsetCheckpoints:
    """Knows what they say on disk, so that nothing is written twice."""

    def __init__(self, opened: Sequence[OpenedDir], logs: Mapping[TopicPartition, Log]) -> None:
        self._opened = opened
        self._logs = logs
        self._written: dict[tuple[LogDir, str], dict[TopicPartition, int]] = {}

    def dir_of(self, log: Log) -> OpenedDir:
        return self.opened(log.dir)

    def opened(self, log_dir: LogDir) -> OpenedDir:
        return next(opened for opened in self._opened if opened.dir is log_dir)

    def write_all(self, only: LogDir | None = None) -> None:
        """Write recovery points, log start offsets and high watermarks of each directory."""
        for opened in self._opened:
            write = self.plan(opened.dir) if only in (None, opened.dir) else None
            if write is not None:
                write()

    def plan(
        self, log_dir: LogDir, names: Collection[str] = layout.OFFSET_CHECKPOINTS, *, must: bool = False
    ) -> Callable[[], None] | None:
        """What a directory's checkpoints would say now; None if that is nothing new. What is returned writes them, and
        may run on any thread, but one after the other. A full disk keeps the old ones for now, unless they must be."""
        opened = self.opened(log_dir)
        logs = [log for log in self._logs.values() if log.dir is log_dir]
        contents: dict[str, dict[TopicPartition, int]] = {}
        if layout.RECOVERY_POINTS in names:
            contents[layout.RECOVERY_POINTS] = {log.partition: log.recovery_point for log in logs}
        if layout.LOG_START_OFFSETS in names:
            contents[layout.LOG_START_OFFSETS] = _starts(logs)
        if layout.HIGH_WATERMARKS in names:
            contents[layout.HIGH_WATERMARKS] = {log.partition: log.high_watermark for log in logs}

        news = {
            name: offsets
            for name, offsets in contents.items()
            if self._written.get((log_dir, name)) != offsets
        }
        self._written.update({(log_dir, name): offsets for name, offsets in news.items()})

        def write() -> None:
            for name, offsets in news.items():
                if not log_dir.offline:
                    try:
                        opened.write(name, offsets)
                    except DiskFullError:
                        self._written.pop((log_dir, name), None)  # the next time, then
                        if must:
                            raise

        return write if news else None

    def write_recovery_point(self, log: Log) -> None:
        """Put it on disk, whatever the disk thinks: something is about to be cut (see storage/log/truncation.py)."""
        write = self.plan(log.dir, must=True)
        if write is not None:
            write()

    def plan_start_in(self, log: Log, target: LogDir) -> Callable[[], None]:
        """Before a log appears in `target`, its start is written down there: nothing that was deleted comes back."""
        opened = self.opened(target)
        logs = [other for other in self._logs.values() if other.dir is target]
        starts = {other.partition: other.start_offset for other in (*logs, log)}
        self._written.pop((target, layout.LOG_START_OFFSETS), None)
        return lambda: opened.write(layout.LOG_START_OFFSETS, starts)

    def plan_start(self, log: Log, offset: int) -> Callable[[], None]:
        """What writes down that a log will begin at `offset`, before it does: a deletion that was answered stays one.
        On a full disk it waits for the next checkpoint, because to delete is how room is made."""
        opened = self.dir_of(log)
        starts = _starts(other for other in self._logs.values() if other.dir is log.dir)
        starts[log.partition] = offset
        self._written.pop((log.dir, layout.LOG_START_OFFSETS), None)

        def write() -> None:
            with contextlib.suppress(DiskFullError):
                opened.write(layout.LOG_START_OFFSETS, starts)

        return write

    def cleaned_to(self, log: Log) -> int | None:
        """What cleaner-offset-checkpoint says of a log."""
        return self.dir_of(log).cleaned.get(log.partition)

    def note_cleaned(self, log: Log, first_dirty_offset: int) -> Callable[[], None]:
        """A log is compacted up to here. What is returned writes that down, and may run on any thread."""
        opened = self.dir_of(log)
        opened.cleaned[log.partition] = first_dirty_offset
        cleaned = dict(opened.cleaned)

        def write() -> None:
            with contextlib.suppress(DiskFullError):  # the next one says it too
                opened.write(layout.CLEANER_OFFSETS, cleaned)

        return write


def _starts(logs: Iterable[Log]) -> dict[TopicPartition, int]:
    """What log-start-offset-checkpoint says of them. Kafka leaves out those whose first segment says it; but should
    that one be missing, nobody else would."""
    return {log.partition: log.start_offset for log in logs if log.start_offset > 0}
