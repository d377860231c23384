"""Runs compaction in the background: the dirtiest log first, at most log.cleaner.threads at a time.

The passes over a log run on another thread; its owner puts each group of cleaned segments in place. A log that cannot
be cleaned (a corrupt batch, say) is noted and left alone from then on; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.config import BrokerConfig
from ottla.errors import BrokerError, CompactionAbortedError
from ottla.names import TopicPartition
from ottla.runtime import Done, Runtime
from ottla.storage.cleaning import compaction
from ottla.storage.cleaning.cleaner import CleanedGroup, Cleaner
from ottla.storage.cleaning.compaction import Plan
from ottla.storage.cleaning.throttle import Throttle
from ottla.storage.log.log import Log

Cleaned = Callable[[Log, int], None]  # a log and its new first dirty offset
OnOwner = Callable[[Log, Callable[[], None], Done[None]], None]


class LogCleaner:
    """Knows which logs are being cleaned, and which cannot be."""

    def __init__(self, runtime: Runtime, config: BrokerConfig) -> None:
        self._runtime = runtime
        self._config = config
        self._under_way: set[TopicPartition] = set()
        self.uncleanable: dict[TopicPartition, BaseException] = {}
        # Replaced where logs may belong to another thread than the caller's.
        self.run_on_owner: OnOwner = at_once

    def configure(self, config: BrokerConfig) -> None:
        """The broker's settings have changed; a cleaning under way goes on as it began."""
        self._config = config

    @property
    def may_start(self) -> bool:
        """Whether there is a thread for one more cleaning."""
        return self._config.log_cleaner_enable and len(self._under_way) < self._config.log_cleaner_threads

    def plan(self, log: Log, checkpoint: int | None) -> Plan | None:
        """What there is to clean in a log, if anything; for its owner to ask."""
        if log.partition in self._under_way or log.partition in self.uncleanable:
            return None
        return compaction.plan(log, checkpoint, self._runtime.now_ms(), self._runtime)

    def begin(self, log: Log, plan: Plan, done: Cleaned) -> None:
        """Clean a log as planned; `done` comes only if all went well."""
        self._under_way.add(log.partition)

        def should_stop() -> bool:
            return self._is_void(log, plan)

        config, threads = self._config, max(1, self._config.log_cleaner_threads)
        rate = config.log_cleaner_io_max_bytes_per_second / threads
        cleaner = plan.cleaner(
            config.log_cleaner_dedupe_buffer_size // threads,
            config.log_cleaner_io_buffer_load_factor,
            should_stop,
            Throttle(self._runtime, rate, should_stop).took,
        )
        _Cleaning(self, log, plan, cleaner, done).go_on()

    def forget(self, partition: TopicPartition) -> None:
        """The log is going away: what is being made of it is thrown away."""
        self._under_way.discard(partition)
        self.uncleanable.pop(partition, None)

    def stop(self) -> None:
        """Call off everything that is under way."""
        self._under_way.clear()

    def _is_void(self, log: Log, plan: Plan) -> bool:
        return log.partition not in self._under_way or log.dir.offline or log.flusher.cuts != plan.cuts


class _Cleaning:
    """One cleaning: a group of segments is made on another thread, then put in place by the log's owner, and so on."""

    def __init__(
        self, all_of_them: LogCleaner, log: Log, plan: Plan, cleaner: Cleaner, done: Cleaned
    ) -> None:
        self._all = all_of_them
        self._log = log
        self._plan = plan
        self._cleaner = cleaner
        self._done = done

    def go_on(self) -> None:
        self._all._runtime.run_long(self._cleaner.next_group, self._made)

    def _made(self, group: CleanedGroup | None, error: BaseException | None) -> None:
        if error is not None:
            self._failed(error)
        elif group is None:
            self._end()
            self._done(self._log, self._cleaner.cleaned_to)
        else:
            self._all.run_on_owner(self._log, lambda: self._install(group), self._installed)

    def _install(self, group: CleanedGroup) -> None:
        if self._all._is_void(self._log, self._plan):
            for segment in group.new:
                segment.delete()
            raise CompactionAbortedError(f"{self._log.partition} is not to be cleaned any more")
        compaction.install(self._log, self._plan, group)

    def _installed(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._failed(error)
        else:
            self.go_on()

    def _failed(self, error: BaseException) -> None:
        self._end()
        if isinstance(error, OSError):
            compaction.refuse(self._log, error)
        elif isinstance(error, BrokerError) and not isinstance(error, CompactionAbortedError):
            self._all.uncleanable[self._log.partition] = error
        elif not isinstance(error, BrokerError):
            raise error

    def _end(self) -> None:
        self._all._under_way.discard(self._log.partition)


def at_once(log: Log, work: Callable[[], None], done: Done[None]) -> None:
    """Do what is to be done to a log here and now."""
    try:
        work()
    except (BrokerError, OSError) as error:
        done(None, error)
    else:
        done(None, None)
