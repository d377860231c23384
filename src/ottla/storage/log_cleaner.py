"""Runs compaction in the background: the dirtiest log first, at most log.cleaner.threads at a time.

The passes over a log run on another thread; its owner puts each group of cleaned segments in place. A log that cannot
be cleaned (a corrupt batch, say) is noted and left alone from then on; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.config import BrokerConfig
from ottla.errors import BrokerError, CompactionAbortedError
from ottla.runtime import Runtime
from ottla.storage import compaction
from ottla.storage.cleaner import CleanedGroup, Cleaner
from ottla.storage.compaction import Plan
from ottla.storage.layout import TopicPartition
from ottla.storage.log import Log

Cleaned = Callable[[Log, int], None]  # a log and its new first dirty offset


class LogCleaner:
    """Knows which logs are being cleaned, and which cannot be."""

    def __init__(self, runtime: Runtime, config: BrokerConfig) -> None:
        self._runtime = runtime
        self._config = config
        self._under_way: set[TopicPartition] = set()
        self.uncleanable: dict[TopicPartition, BaseException] = {}

    def start(self, logs: Iterable[tuple[Log, int | None]], done: Cleaned) -> Log | None:
        """Begin with the log that needs it most; None when none does, or as many as allowed are under way.

        Each log comes with what cleaner-offset-checkpoint says of it.
        """
        threads = self._config.log_cleaner_threads
        if not self._config.log_cleaner_enable or len(self._under_way) >= threads:
            return None
        now_ms = self._runtime.now_ms()
        plans = {
            log: compaction.plan(log, checkpoint, now_ms, self._runtime)
            for log, checkpoint in logs
            if log.partition not in self._under_way and log.partition not in self.uncleanable
        }
        plan = compaction.dirtiest(plans.values())
        if plan is None:
            return None
        log = next(log for log, candidate in plans.items() if candidate is plan)
        self._under_way.add(log.partition)
        cleaner = plan.cleaner(
            self._config.log_cleaner_dedupe_buffer_size // threads,
            self._config.log_cleaner_io_buffer_load_factor,
            lambda: self._is_void(log, plan),
        )
        self._go_on(log, plan, cleaner, done)
        return log

    def forget(self, partition: TopicPartition) -> None:
        """The log is going away: what is being made of it is thrown away."""
        self._under_way.discard(partition)
        self.uncleanable.pop(partition, None)

    def _is_void(self, log: Log, plan: Plan) -> bool:
        return log.partition not in self._under_way or log.dir.offline or log.flusher.cuts != plan.cuts

    def _go_on(self, log: Log, plan: Plan, cleaner: Cleaner, done: Cleaned) -> None:
        self._runtime.run_blocking(
            cleaner.next_group, lambda group, error: self._made(log, plan, cleaner, done, group, error)
        )

    def _made(
        self,
        log: Log,
        plan: Plan,
        cleaner: Cleaner,
        done: Cleaned,
        group: CleanedGroup | None,
        error: BaseException | None,
    ) -> None:
        try:
            if error is not None:
                raise error
            if self._is_void(log, plan):
                raise CompactionAbortedError(f"{log.partition} is not to be cleaned any more")
            if group is not None:
                compaction.install(log, plan, group)
                self._go_on(log, plan, cleaner, done)
                return
            done(log, cleaner.cleaned_to)
        except CompactionAbortedError:
            for segment in group.new if group else []:
                segment.delete()
        except OSError as failure:
            log.dir.fail(failure, f"compacting {log.partition}")
        except BrokerError as failure:
            self.uncleanable[log.partition] = failure
        self._under_way.discard(log.partition)
