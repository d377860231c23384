"""A random story of a log directory on a recorded disk, and what was promised at each moment of it.

The promises are marks in the disk's history: `power_loss.py` cuts the power at every point and holds the log
directory to the last mark before. What a log may hold is a list of batches (a version); it holds a stretch of
one of the versions that are allowed at the time, with nothing missing inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from ottla.config import LogConfig
from ottla.names import TopicPartition
from ottla.storage.cleaning import compaction
from ottla.storage.log.log import Log
from ottla.storage.log.validation import Origin
from ottla.testing.disk import SimulatedDisk
from tests.reliability.model import Written, read_all, split
from tests.reliability.scenarios import SMALL, SimulatedRuntime, Writer, open_manager
from tests.storage import steps

LAZY = replace(SMALL, retention_bytes=3000)  # flushed when somebody asks
EAGER = replace(SMALL, retention_bytes=3000, flush_messages=1)  # every append asks
COMPACT = replace(SMALL, cleanup_policy=frozenset({"compact"}), delete_retention_ms=1000)
TOPICS: dict[str, LogConfig] = {"lazy": LAZY, "eager": EAGER, "compact": COMPACT}
_MAP_BYTES = 1 << 20


class Promise(NamedTuple):
    """What holds for one log when the power goes now."""

    partition: TopicPartition
    versions: tuple[int, ...]  # numbers of the versions that it may hold
    flushed: int  # nothing before this offset is missing
    lowest_start: int
    highest_start: int
    may_be_gone: bool = False
    may_be_there: bool = True

    @property
    def may_have_gaps(self) -> bool:
        """In a compacted log nobody can tell what a cleaner left out from what a cut lost, if it was not flushed."""
        return TOPICS[self.partition.topic].compact


@dataclass
class Tracked:
    """A log of the story: its writer keeps the current version."""

    promise: Promise
    writer: Writer


class Story:
    """Does random things to a few logs; `history`, `versions` and `chapters` tell what happened."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"story {seed}")
        self.runtime = SimulatedRuntime(seed, queued=True)
        self.disk = SimulatedDisk(now_ms=self.runtime.now_ms)
        self.versions: list[list[Written]] = []
        self.chapters: list[tuple[int, str]] = []  # (number of the first operation, action)
        self.tracked: dict[TopicPartition, Tracked] = {}
        self._gone: list[Promise] = []
        self.actions: dict[str, tuple[int, Callable[[Tracked], None]]] = {
            "append": (12, self._append), "flush": (3, self._flush), "background sync": (5, self._sync),
            "roll": (2, self._roll), "checkpoint": (3, self._checkpoint), "truncate": (2, self._truncate),
            "truncate fully": (1, self._start_anew), "delete records": (1, self._delete_records),
            "retention": (2, self._retention), "delete partition": (1, self._delete),
            "clean stop": (1, self._stop), "kill": (1, self._kill), "compact": (3, self._compact),
        }  # fmt: skip
        self.history = self.disk.record()
        self.manager = open_manager(self.disk, self.runtime, TOPICS)
        self._begin("create")
        for topic in TOPICS:
            self._create(topic)

    def run(self, actions: int) -> None:
        names = list(self.actions)
        weights = [weight for weight, _ in self.actions.values()]
        for name in self.rng.choices(names, weights, k=actions):
            self.act(name)

    def act(self, name: str) -> None:
        self._begin(name)
        self.runtime.advance(self.rng.randrange(500))
        self.actions[name][1](self.rng.choice(list(self.tracked.values())))

    def _begin(self, action: str) -> None:
        self.chapters.append((len(self.history.operations), action))

    def _mark(self) -> None:
        promises = [tracked.promise for tracked in self.tracked.values()]
        self.history.mark(tuple(sorted([*promises, *self._gone])))

    def promise(self, tracked: Tracked, **changes: object) -> None:
        tracked.promise = tracked.promise._replace(**changes)  # type: ignore[arg-type]
        self._mark()

    def log_of(self, tracked: Tracked) -> Log:
        return self.manager.logs[tracked.promise.partition]

    def _create(self, topic: str) -> None:
        number = sum(1 for p in [*self.tracked, *(g.partition for g in self._gone)] if p.topic == topic)
        partition = TopicPartition(topic, number)
        writer = Writer(self.rng, self.runtime, keyed=TOPICS[topic].compact)
        promise = Promise(partition, (len(self.versions),), 0, 0, 0, may_be_gone=True)
        self.versions.append(writer.batches)
        tracked = self.tracked[partition] = Tracked(promise, writer)
        self._mark()
        self.manager.get_or_create(partition)
        self.promise(tracked, may_be_gone=False)

    # -- the actions

    def _append(self, tracked: Tracked) -> None:
        log, writer, rng = self.log_of(tracked), tracked.writer, self.rng
        if rng.random() < 0.15:
            writer.leader_epoch += 1
        for _ in range(rng.randint(1, 3)):
            kind, in_transaction = rng.randrange(5), writer.open_transactions()
            if kind == 0 and in_transaction:
                marker = writer.marker(rng.choice(in_transaction), is_abort=rng.random() < 0.5)
                writer.append(log, marker, Origin.COORDINATOR)
            elif kind == 1:
                # Where batches may be missing in the middle, the log can know more of a producer than they say.
                known = log.producers.producers.get(7) if log.config.compact else None
                writer.append(
                    log, writer.from_producer(7, base_sequence=known.last_sequence + 1 if known else None)
                )
            elif kind == 2:
                # One that is in the middle of a transaction, or one that was never seen before.
                producer_id = rng.choice([*in_transaction, 100 + len(self.history.operations)])
                writer.append(log, writer.from_producer(producer_id, transactional=True))
            elif kind == 3:
                writer.append_fetched(log, [writer.plain() for _ in range(rng.randint(1, 3))])
            else:
                writer.append(log, writer.plain())
        if log.config.flush_messages == 1 or rng.random() < 0.3:
            self._acknowledge(tracked, log)

    def _acknowledge(self, tracked: Tracked, log: Log) -> None:
        """Promise what is there now, as soon as the log says that it is flushed."""
        offset = _end(tracked.writer.batches)

        def done(error: BaseException | None) -> None:
            if error is None and offset > tracked.promise.flushed:
                self.promise(tracked, flushed=offset)

        log.when_flushed(offset, done)

    def _flush(self, tracked: Tracked) -> None:
        log = self.log_of(tracked)
        log.flush()
        self.promise(tracked, flushed=_end(tracked.writer.batches))

    def _sync(self, _: Tracked) -> None:
        self.runtime.run_pending()

    def _roll(self, tracked: Tracked) -> None:
        self.log_of(tracked).roll()

    def _checkpoint(self, _: Tracked) -> None:
        self.manager.checkpoint()
        for tracked in self.tracked.values():
            self.promise(tracked, lowest_start=tracked.promise.highest_start)

    def _new_version(self, tracked: Tracked, batches: list[Written], flushed: int) -> tuple[int, ...]:
        """Until it is done the old version is as good as the new one."""
        number = len(self.versions)
        self.versions.append(batches)
        tracked.writer.batches = batches
        self.promise(tracked, versions=(*tracked.promise.versions, number), flushed=flushed)
        return (number,)

    def _truncate(self, tracked: Tracked) -> None:
        log, old = self.log_of(tracked), tracked.writer.batches
        offset = self.rng.randint(log.start_offset, log.end_offset)
        kept = [written for written in old if written.last < offset]
        # A batch is cut whole or not at all.
        end = min([offset, *(written.first for written in old[len(kept) :])])
        new = self._new_version(tracked, kept, min(tracked.promise.flushed, _end(kept)))
        self.promise(tracked, lowest_start=min(tracked.promise.lowest_start, end))
        steps.truncate(self.manager, tracked.promise.partition, offset)
        self.promise(tracked, versions=new, highest_start=log.start_offset)

    def _start_anew(self, tracked: Tracked) -> None:
        log = self.log_of(tracked)
        offset = self.rng.randint(0, log.end_offset + 5)
        new = self._new_version(tracked, [], 0)
        lowest = min(tracked.promise.lowest_start, offset)
        self.promise(tracked, lowest_start=lowest, highest_start=max(tracked.promise.highest_start, offset))
        steps.truncate_fully(self.manager, tracked.promise.partition, offset)
        self.promise(tracked, versions=new, lowest_start=offset, highest_start=offset)

    def _delete_records(self, tracked: Tracked) -> None:
        log = self.log_of(tracked)
        log.raise_high_watermark(log.end_offset)
        offset = self.rng.randint(log.start_offset, log.high_watermark)
        self.promise(tracked, highest_start=offset)
        log.raise_start_offset(offset)

    def _retention(self, _: Tracked) -> None:
        for tracked in self.tracked.values():
            log = self.log_of(tracked)
            log.raise_high_watermark(log.end_offset)
            self.promise(tracked, highest_start=log.high_watermark)
        steps.apply_retention(self.manager)
        for tracked in self.tracked.values():
            self.promise(tracked, highest_start=self.log_of(tracked).start_offset)

    def _compact(self, _: Tracked) -> None:
        tracked = next(t for t in self.tracked.values() if t.promise.partition.topic == "compact")
        log = self.log_of(tracked)
        log.raise_high_watermark(log.end_offset)
        plan = compaction.plan(log, None, self.runtime.now_ms(), self.runtime, force=True)
        if plan is None:
            return
        cleaner = plan.cleaner(_MAP_BYTES, 0.9)
        while (group := cleaner.next_group()) is not None:
            cleaned: list[Written] = []
            old = tracked.writer.batches
            new = self._new_version(tracked, cleaned, tracked.promise.flushed)
            compaction.install(log, plan, group)
            cleaned += [written for written in old if written.last < log.segments.first.base_offset]
            for segment in log.segments:
                cleaned += split(segment.file.pread(segment.size, 0))
            self.promise(tracked, versions=new)

    def _delete(self, tracked: Tracked) -> None:
        self.promise(tracked, may_be_gone=True)
        steps.delete(self.manager, tracked.promise.partition)
        self._gone.append(tracked.promise._replace(may_be_there=False))
        del self.tracked[tracked.promise.partition]
        self._mark()
        self._create(tracked.promise.partition.topic)

    def _stop(self, _: Tracked) -> None:
        if self.rng.random() < 0.5:
            self.runtime.run_pending()
        self.manager.close()
        self._reopen()

    def _kill(self, _: Tracked) -> None:
        """The process dies, the machine goes on: the page cache keeps everything."""
        self.manager.abandon()
        self._reopen()

    def _reopen(self) -> None:
        """What a clean stop or a recovery leaves is on disk."""
        self.runtime.forget_pending()
        self.manager = open_manager(self.disk, self.runtime, TOPICS)
        for tracked in self.tracked.values():
            log = self.log_of(tracked)
            assert tracked.promise.lowest_start <= log.start_offset <= tracked.promise.highest_start
            assert read_all(log) == [w for w in tracked.writer.batches if w.last >= log.start_offset]
            flushed = _end(tracked.writer.batches)
            self.promise(tracked, flushed=flushed, highest_start=log.start_offset)


def _end(batches: list[Written]) -> int:
    """Behind the last batch. A log may say more, until it is opened again, if it was cut in a gap."""
    return batches[-1].last + 1 if batches else 0
