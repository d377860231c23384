"""The regular work of a broker: retention, flush by time, checkpoints, cleaning, expiry of producers, deletion.

Each kind has its timer, set anew when its work is done. What may block goes to the lanes, one log at a time, so that
neither the loop nor the appends to other logs notice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ottla.config import BrokerConfig
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.partition import Partition
from ottla.runtime import Done, LoopRuntime, Timer
from ottla.storage import layout, upkeep
from ottla.storage.cleaning import compaction
from ottla.storage.cleaning.compaction import Plan
from ottla.storage.cleaning.log_cleaner import at_once
from ottla.storage.log import retention
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager

_logger = logging.getLogger(__name__)

_NEVER_MS = 1 << 40  # log.flush.scheduler.interval.ms is this far away by default
_SHORTEST_LOOK_MS = 100  # between two looks for logs whose flush.ms is over
_MANY_PRODUCERS = 5_000  # of a log: looking through them is for its lane
_AT_ONCE = 200  # so many logs are looked at before others get a turn of the loop

Work = Callable[[Callable[[], None]], None]  # does something and then calls what it is given


class Background:
    """Everything that nobody asks for."""

    def __init__(
        self, runtime: LoopRuntime, logs: LogManager, hosted: Hosted, lanes: Lanes, config: BrokerConfig
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._hosted = hosted
        self._lanes = lanes
        self._config = config
        self._timers: dict[str, Timer] = {}
        self._stopped = False
        self._look_every_ms = _NEVER_MS
        logs.cleaner.run_on_owner = self._on_owner

    def start(self) -> None:
        config, first_ms = self._config, self._config.log_initial_task_delay_ms
        later: list[tuple[str, int, Work]] = [
            ("retention", config.log_retention_check_interval_ms, self.apply_retention),
            ("recovery points", config.log_flush_offset_checkpoint_interval_ms, self._write_recovery_points),
            ("log starts", config.log_flush_start_offset_checkpoint_interval_ms, self._write_log_starts),
            ("producers", config.producer_id_expiration_check_interval_ms, self.expire_producers),
        ]
        self._set("cleaning", first_ms, config.log_cleaner_backoff_ms, lambda _: self.clean(self._rest))
        self.look_for_flushes(config.log_flush_scheduler_interval_ms)
        for name, interval_ms, work in later:
            self._set(name, first_ms, interval_ms, work)
        interval_ms = config.replica_high_watermark_checkpoint_interval_ms
        self._set("high watermarks", interval_ms, interval_ms, self._write_high_watermarks)

    def configure(self, config: BrokerConfig) -> None:
        """The broker's settings have changed; of those here only the cleaner's rest can change while it runs."""
        self._config = config

    def _rest(self) -> None:
        """No log needs cleaning: look again after log.cleaner.backoff.ms."""
        backoff_ms = self._config.log_cleaner_backoff_ms
        self._set("cleaning", backoff_ms, backoff_ms, lambda _: self.clean(self._rest))

    def look_for_flushes(self, flush_ms: int) -> None:
        """Look for logs to flush at least this often: there is a topic with such a flush.ms."""
        every_ms = max(flush_ms, _SHORTEST_LOOK_MS)
        if every_ms < self._look_every_ms:
            self._look_every_ms = every_ms
            self._plan_look()

    def _plan_look(self) -> None:
        planned = self._timers.pop("flush", None)
        if planned is not None:
            planned.cancel()
        self._set("flush", self._look_every_ms, self._look_every_ms, lambda _: self.flush(self._plan_look))

    def stop(self) -> None:
        """Begin nothing new. What is on a lane ends there."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._logs.cleaner.stop()

    def _set(self, name: str, delay_ms: int, interval_ms: int, work: Work) -> None:
        if interval_ms >= _NEVER_MS or self._stopped:
            return

        def again() -> None:
            self._set(name, interval_ms, interval_ms, work)

        self._timers[name] = self._runtime.call_later(delay_ms, lambda: work(again))

    # -- log by log

    def _walk(
        self, step: Callable[[Partition, Log, Callable[[], None]], bool], then: Callable[[], None]
    ) -> None:
        """Take one log after the other. A step that returns False has gone to a lane, and goes on from there."""
        todo = iter(
            [partition for partition in self._hosted.partitions.values() if partition.log is not None]
        )

        def go_on() -> None:
            for _ in range(_AT_ONCE):
                partition = next(todo, None)
                if partition is None or self._stopped:
                    then()
                    return
                log = partition.log
                if log is not None and not log.dir.offline and not step(partition, log, go_on):
                    return
            self._runtime.call_soon(go_on)

        go_on()

    def _on_lane(
        self, partition: Partition, work: Callable[[Log], object], go_on: Callable[[], None], doing: str
    ) -> None:
        def done(_: object, error: BaseException | None) -> None:
            if error is not None:
                _logger.error("%s of %s failed", doing, partition.key, exc_info=error)
            go_on()

        self._lanes.on(partition, work, done)

    def apply_retention(self, then: Callable[[], None]) -> None:
        """Take out old segments, and remove what was taken out before and has waited long enough."""

        def step(partition: Partition, log: Log, go_on: Callable[[], None]) -> bool:
            # Of most logs there is only the segment that is written to: nothing has to be opened to look at it.
            now_ms = self._runtime.now_ms()
            is_simple = not partition.is_lent and len(log.segments) == 1 and not log.has_deletions
            if is_simple and not retention.due_segments(log, now_ms):
                return True
            self._on_lane(partition, lambda log: upkeep.retain(log, now_ms), go_on, "retention")
            return False

        self._walk(step, lambda: self._remove_doomed(then))

    def _remove_doomed(self, then: Callable[[], None]) -> None:
        doomed = self._logs.take_doomed()
        left = len(doomed) + 1

        def one_is_gone(_: None, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            if not left:
                then()

        for log_dir, path in doomed:
            self._lanes.of(log_dir).run(partial(upkeep.remove_dir, log_dir, path), one_is_gone)
        one_is_gone(None, None)

    def flush(self, then: Callable[[], None]) -> None:
        """Begin a flush of every log whose flush.ms is over; one that is lent is flushed by its lane."""
        now_ms = self._runtime.monotonic_ms()

        def step(partition: Partition, log: Log, go_on: Callable[[], None]) -> bool:
            if not upkeep.flush_is_due(log, now_ms):
                return True
            if not partition.is_lent:
                log.flusher.request()
                return True
            self._on_lane(partition, lambda log: log.flush(), go_on, "flush by time")
            return False

        self._walk(step, then)

    def expire_producers(self, then: Callable[[], None]) -> None:
        now_ms = self._runtime.now_ms()

        def step(partition: Partition, log: Log, go_on: Callable[[], None]) -> bool:
            if not partition.is_lent and len(log.producers.producers) < _MANY_PRODUCERS:
                log.producers.remove_expired(now_ms)
                return True
            self._on_lane(
                partition, lambda log: log.producers.remove_expired(now_ms), go_on, "expiry of producers"
            )
            return False

        self._walk(step, then)

    # -- checkpoints

    def _write_recovery_points(self, then: Callable[[], None]) -> None:
        self._checkpoint((layout.RECOVERY_POINTS,), then)

    def _write_log_starts(self, then: Callable[[], None]) -> None:
        self._checkpoint((layout.LOG_START_OFFSETS,), then)

    def _write_high_watermarks(self, then: Callable[[], None]) -> None:
        self._checkpoint((layout.HIGH_WATERMARKS,), then)

    def _checkpoint(self, names: tuple[str, ...], then: Callable[[], None]) -> None:
        for log_dir in self._logs.online_dirs:
            write = self._logs.plan_checkpoint(log_dir, names)
            if write is not None:
                self._lanes.of(log_dir).run(write, _log_failure)
        then()

    # -- cleaning

    def clean(self, then: Callable[[], None]) -> None:
        """Compact the log that needs it most; the next one at once, until none does."""
        cleaner = self._logs.cleaner
        plans: list[tuple[Log, Plan]] = []

        def step(partition: Partition, log: Log, go_on: Callable[[], None]) -> bool:
            if not log.config.compact:
                return True

            def planned(plan: Plan | None, error: BaseException | None) -> None:
                if plan is not None and partition.log is log:
                    plans.append((log, plan))
                go_on()

            cleaned_to = self._logs.cleaned_to(log)
            self._lanes.on(partition, lambda log: cleaner.plan(log, cleaned_to), planned)
            return False

        def choose() -> None:
            best = compaction.dirtiest(plan for _, plan in plans)
            if best is not None and cleaner.may_start and not self._stopped:
                log = next(log for log, plan in plans if plan is best)
                cleaner.begin(log, best, self._cleaned)
            then()

        if cleaner.may_start:
            self._walk(step, choose)
        else:
            then()

    def _cleaned(self, log: Log, first_dirty_offset: int) -> None:
        if self._logs.get(log.partition) is log and not log.dir.offline:
            write = self._logs.note_cleaned(log, first_dirty_offset)
            self._lanes.of(log.dir).run(write, _log_failure)
        if not self._stopped:
            self._runtime.call_soon(lambda: self.clean(_nothing))

    def _on_owner(self, log: Log, work: Callable[[], None], done: Done[None]) -> None:
        partition = self._hosted.partitions.get(log.partition)
        if partition is None or partition.log is not log:
            at_once(log, work, done)  # it is void by now, and says so
        else:
            self._lanes.on(partition, lambda _: work(), done)


def _nothing() -> None: ...


def _log_failure(_: None, error: BaseException | None) -> None:
    if error is not None:
        _logger.error("a checkpoint could not be written", exc_info=error)
