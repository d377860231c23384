"""Makes this broker's partitions what the cluster's image says: makes, changes and deletes them.

Files are made and removed on other threads; until its log is there, a partition answers that it does not lead.

One request may ask for thousands of partitions. So what an image asks for is a row of small steps, of which each turn
of the loop takes a few; the next image waits until the one before is through. Logs are made and removed as many at a
time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import NamedTuple

from ottla.cluster.image import ClusterImage, PartitionInfo, TopicInfo
from ottla.config import LogConfig
from ottla.config.values import LONG_MAX
from ottla.errors import DiskFullError
from ottla.metrics import Metrics
from ottla.names import TopicPartition
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.moves import Moves
from ottla.replica.partition import Partition
from ottla.replica.waits import Purgatories
from ottla.replica.watermarks import Watermarks
from ottla.runtime import LoopRuntime
from ottla.storage import layout
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.log_manager import LogManager
from ottla.turns import Turns

_logger = logging.getLogger(__name__)

_NAMED = 20  # partitions that a line names
_TRY_AGAIN_MS = 5_000  # to make a log for which there was no room
_AT_ONCE = 50  # steps in a turn of the loop, each for a partition: about 2 ms
_LOGS_IN_A_STEP = 200  # of what is only looked at


class _Made(NamedTuple):
    """What became of a log that was to be made."""

    partition: Partition
    log: Log | None
    error: BaseException | None


class Assignments:
    """Follows the image."""

    def __init__(
        self,
        runtime: LoopRuntime,
        logs: LogManager,
        hosted: Hosted,
        purgatories: Purgatories,
        lanes: Lanes,
        watermarks: Watermarks,
        moves: Moves,
        node_id: int,
        metrics: Metrics,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._hosted = hosted
        self._purgatories = purgatories
        self._lanes = lanes
        self._watermarks = watermarks
        self._moves = moves
        self._node_id = node_id
        self._metrics = metrics
        self._config_of = config_of
        self.shortest_flush_ms = LONG_MAX  # of all topics that were ever seen
        self._under_way = 0
        self._waiting: list[Callable[[], None]] = []
        self._plans: deque[Iterator[None]] = deque()  # the steps of what is to be done, one after the other
        self._turns = Turns(runtime, self._take_steps, 0)
        self._to_make: dict[LogDir, list[tuple[Partition, Callable[[], Log]]]] = {}
        self._changed_dirs: set[LogDir] = set()  # their checkpoints name logs that are gone
        self.offline: set[TopicPartition] = set()  # those whose log could not be made, or found
        self._unfound: list[TopicPartition] = []  # at the start, while a log directory is offline
        # Partitions whose old files are being renamed, and what is to follow: a new log of the same name.
        self._being_removed: dict[TopicPartition, list[Callable[[], None]]] = {}

    def apply(self, old: ClusterImage | None, new: ClusterImage) -> None:
        """Begin all that the new image asks for; `when_ready` tells when it is done. `old` is None at the start."""
        self._hosted.image = new
        self._begin(self._follow(old, new))

    def _follow(self, old: ClusterImage | None, new: ClusterImage) -> Iterator[None]:
        if old is None:
            yield from self._remove(self._strays(new), layout.STRAY_DIR)
        for topic in old.topics.values() if old is not None else ():
            now = new.topics.get(topic.name)
            if now is None or now.topic_id != topic.topic_id:
                self._metrics.forget_topic(topic.name)
                yield from self._drop(topic.name, range(len(topic.partitions)))
        for topic in new.topics.values():
            known = old.topics.get(topic.name) if old else None
            if known is not topic or (old and old.broker_configs is not new.broker_configs):
                yield from self._update_topic(topic, is_start=old is None)
        if old is None and self._unfound:
            _logger.error(
                "%d partitions are offline, their logs may lie in %s: %s%s",
                len(self._unfound), ", ".join(self._logs.failed_dirs),
                ", ".join(map(str, self._unfound[:_NAMED])), ", ..." if len(self._unfound) > _NAMED else "",
            )  # fmt: skip

    # -- a few steps in each turn of the loop

    def _begin(self, plan: Iterator[None]) -> None:
        self._under_way += 1
        self._plans.append(plan)
        if len(self._plans) == 1:
            self._turns.take()

    def _take_steps(self) -> Iterator[None]:
        while self._plans:
            steps = 0
            while self._plans and steps < _AT_ONCE:
                steps += 1
                is_over = True
                try:
                    is_over = next(self._plans[0], True) is True
                finally:
                    if is_over:
                        self._plans.popleft()
                        self._step_done()
            self._make_logs()
            if self._plans:
                yield

    def when_ready(self, ready: Callable[[], None]) -> None:
        """Call when no partition is being made or deleted any more; now, if none is."""
        if self._under_way:
            self._waiting.append(ready)
        else:
            ready()

    # -- what is there

    def _update_topic(self, topic: TopicInfo, *, is_start: bool) -> Iterator[None]:
        """Take in a topic as it is now."""
        config = self._config_of(topic.name)
        self.shortest_flush_ms = min(self.shortest_flush_ms, config.flush_ms)
        self._logs.configure(topic.name, config, ())
        others = []
        for number, info in enumerate(topic.partitions):
            key = TopicPartition(topic.name, number)
            if self._node_id not in info.replicas:
                others.append(number)
                continue
            self._logs.configure(topic.name, config, (number,))
            partition = self._hosted.partitions.get(key)
            if partition is None:
                self._add_partition(key, topic, info, is_start)
            else:
                partition.take_role(info)
                if partition.log is not None:
                    self._lanes.set_durable(partition, config.waits_for_flush)
                self._watermarks.update(partition)
                self._purgatories.role_changed(partition)
            yield
        yield from self._drop(topic.name, others)

    def _add_partition(
        self, key: TopicPartition, topic: TopicInfo, info: PartitionInfo, is_start: bool
    ) -> None:
        partition = Partition(key, topic.topic_id, self._node_id, self._metrics.topic(topic.name))
        self._hosted.partitions[key] = partition
        partition.take_role(info)
        log = self._logs.get(key)
        if log is not None and key not in self._being_removed:
            self._attach(partition, log)
        elif is_start and self._logs.failed_dirs:
            # Its log may lie in a directory that could not be opened: an empty one elsewhere would hide it.
            self._set_offline(partition, True)
            self._unfound.append(key)
        else:
            self._under_way += 1
            self._after_removal(key, partial(self._make_log, partition))

    def _after_removal(self, key: TopicPartition, then: Callable[[], None]) -> None:
        if key in self._being_removed:
            self._being_removed[key].append(then)
        else:
            then()

    def _make_log(self, partition: Partition) -> None:
        """Plan a log; `_make_logs` has it made."""
        try:
            make = self._logs.plan_new(
                partition.key, partition.topic_id, partition.leader_epoch if partition.is_leader else None
            )
        except Exception as error:  # noqa: BLE001 - told below, with what the thread may find
            self._made([_Made(partition, None, error)], None)
            return
        log_dir = self._logs.home_of(partition.key)
        self._to_make.setdefault(log_dir, []).append((partition, make))

    def _make_logs(self) -> None:
        """Those of one directory together, so that another that hangs keeps nobody else."""
        planned, self._to_make = self._to_make, {}
        for wanted in planned.values():
            self._runtime.run_blocking(partial(_make_all, wanted), self._made)

    def _made(self, made: list[_Made] | None, error: BaseException | None) -> None:
        assert made is not None, error  # each has its own error
        late = []
        for partition, log, failure in made:
            if log is None:
                self._not_made(partition, failure)
                continue
            self._set_offline(partition, False)
            self._logs.add(log)
            if self._hosted.partitions.get(partition.key) is partition:
                self._attach(partition, log)
            else:  # deleted while it was being made
                late.append(log)
        if late:
            self._begin(self._remove(late, layout.DELETE_DIR))
        self._step_done(len(made))

    def _not_made(self, partition: Partition, error: BaseException | None) -> None:
        if isinstance(error, DiskFullError):
            if not partition.is_offline:
                _logger.error("no log for %s, until there is room: %s", partition.key, error)
            self._runtime.call_later(_TRY_AGAIN_MS, partial(self._try_again, partition))
        else:
            _logger.error("the log of %s could not be made", partition.key, exc_info=error)
        self._set_offline(partition, True)

    def _set_offline(self, partition: Partition, is_offline: bool) -> None:
        partition.is_offline = is_offline
        if is_offline and self._hosted.partitions.get(partition.key) is partition:
            self.offline.add(partition.key)
        else:
            self.offline.discard(partition.key)

    def _try_again(self, partition: Partition) -> None:
        if self._hosted.partitions.get(partition.key) is partition:
            self._under_way += 1
            self._make_log(partition)
            self._make_logs()

    def _attach(self, partition: Partition, log: Log) -> None:
        partition.attach(log, self._logs.handles, self._lanes.of(log.dir).handles)
        self._watermarks.update(partition)
        self._lanes.set_durable(partition, log.config.waits_for_flush)
        self._purgatories.role_changed(partition)
        self._moves.resume(partition)

    # -- what is gone

    def _drop(self, topic: str, numbers: Iterable[int]) -> Iterator[None]:
        """Forget partitions, and delete the logs that they have here."""
        gone: list[TopicPartition] = []
        for number in numbers:
            key = TopicPartition(topic, number)
            if self._drop_partition(key):
                gone.append(key)
            if len(gone) == _AT_ONCE:
                yield from self._give_up(gone)
                gone = []
            yield
        yield from self._give_up(gone)

    def _drop_partition(self, key: TopicPartition) -> bool:
        """Forget a partition; whether there is a log of it."""
        partition = self._hosted.partitions.pop(key, None)
        if partition is None:
            return False
        self.offline.discard(key)
        log = partition.detach()
        self._purgatories.role_changed(partition)
        return log is not None

    def _give_up(self, keys: list[TopicPartition]) -> Iterator[None]:
        """Delete the logs of these partitions; of one that is just being moved, when that is over."""
        ready = []
        for key in keys:
            self._being_removed[key] = []
            log = self._logs.get(key)
            if self._moves.give_up(key, partial(self._give_up_later, key)) and log is not None:
                ready.append(log)
            else:
                self._under_way += 1
        return self._remove(ready, layout.DELETE_DIR)

    def _give_up_later(self, key: TopicPartition) -> None:
        log = self._logs.get(key)
        assert log is not None
        self._begin(self._remove([log], layout.DELETE_DIR))
        self._step_done()

    def _strays(self, image: ClusterImage) -> list[Log]:
        """Logs that the cluster does not know, or knows under another id: made anew while this broker was away."""
        return [log for log in self._logs.logs.values() if self._is_stray(log, image)]

    def _is_stray(self, log: Log, image: ClusterImage) -> bool:
        topic = image.topics.get(log.partition.topic)
        info = image.partition(*log.partition)
        return (
            topic is None
            or info is None
            or self._node_id not in info.replicas
            or (log.topic_id is not None and log.topic_id != topic.topic_id)
        )

    def _remove(self, logs: list[Log], mark: str) -> Iterator[None]:
        """Rename the directories on their lanes, then write each log directory's checkpoints without them."""
        by_dir: dict[LogDir, list[TopicPartition]] = {}
        for log in logs:
            by_dir.setdefault(log.dir, []).append(log.partition)
            self._being_removed.setdefault(log.partition, [])
        for log_dir, keys in by_dir.items():
            for first in range(0, len(keys), _AT_ONCE):
                some = keys[first : first + _AT_ONCE]
                self._under_way += 1
                self._lanes.of(log_dir).run(self._logs.plan_removal(some, mark), partial(self._removed, some))
                yield from repeat(None, len(some))
        if by_dir and not self._changed_dirs:
            self._begin(self._checkpoint())
        self._changed_dirs.update(by_dir)

    def _removed(self, keys: list[TopicPartition], _: None, error: BaseException | None) -> None:
        if error is not None:
            _logger.error("the files of %s could not be removed", keys[0], exc_info=error)
        for key in keys:
            for then in self._being_removed.pop(key):
                then()
        self._make_logs()
        self._step_done()

    def _checkpoint(self) -> Iterator[None]:
        """Write what is left. A lane keeps the order: it has renamed the directories before."""
        dirs, self._changed_dirs = self._changed_dirs, set()
        for log_dir in dirs:
            for name in layout.OFFSET_CHECKPOINTS:
                write = self._logs.plan_checkpoint(log_dir, (name,))
                if write is not None:
                    self._under_way += 1
                    self._lanes.of(log_dir).run(write, self._written)
                # It goes through all logs: with many, that is a turn of its own.
                yield from repeat(None, len(self._hosted.partitions) // _LOGS_IN_A_STEP)

    def _written(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            _logger.error("a checkpoint could not be written", exc_info=error)
        self._step_done()

    def _step_done(self, steps: int = 1) -> None:
        self._under_way -= steps
        if not self._under_way:
            waiting, self._waiting = self._waiting, []
            for ready in waiting:
                ready()


def _make_all(wanted: list[tuple[Partition, Callable[[], Log]]]) -> list[_Made]:
    made = []
    for partition, make in wanted:
        try:
            made.append(_Made(partition, make(), None))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told for this log
            made.append(_Made(partition, None, error))
    return made
