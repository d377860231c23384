"""Moves partitions between the log directories of this broker, while they are written to and read from.

The copy is fed as a follower would be, a megabyte at a time. Once it has caught up, the partition is paused: what
comes for it waits a moment, the rest is copied, the directories change names (see storage/relocation.py), and what has
waited goes to the new log.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Mapping
from functools import partial

from ottla.errors import (
    BrokerError,
    InvalidTopicError,
    LogDirNotFoundError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    ReplicaNotAvailableError,
    StorageError,
    UnknownTopicOrPartitionError,
)
from ottla.names import TopicPartition
from ottla.replica.fetches import Fetches
from ottla.replica.hosted import Hosted
from ottla.replica.lanes import Lanes
from ottla.replica.partition import Partition
from ottla.replica.results import FetchEntry, FetchParams, FetchResult
from ottla.storage import relocation, upkeep
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log_dir import LogDir
from ottla.storage.log_manager import LogManager
from ottla.storage.relocation import Relocation

_logger = logging.getLogger(__name__)

_FUTURE_REPLICA = -3  # who fetches: neither a consumer nor another broker
_COPY_BYTES = 1 << 20


class Moves:
    """The moves that are under way."""

    def __init__(self, logs: LogManager, hosted: Hosted, lanes: Lanes, fetches: Fetches) -> None:
        self.logs = logs
        self.lanes = lanes
        self.fetches = fetches
        self._hosted = hosted
        self._moves: dict[TopicPartition, _Move] = {}
        self._stopped = False

    def alter(self, targets: Mapping[TopicPartition, str]) -> dict[TopicPartition, int]:
        """Begin to move logs to these directories; an error code for each, 0 if it is on its way or there already."""
        codes = {}
        for key, path in targets.items():
            try:
                self._begin(key, path)
                codes[key] = 0
            except BrokerError as error:
                codes[key] = error.code
        return codes

    def _begin(self, key: TopicPartition, path: str) -> None:
        if not relocation.has_room_for_name(key):
            raise InvalidTopicError(f"the name of {key} is too long to be moved")
        target = self._find_dir(path)
        self.logs.prefer(key, target)
        try:
            partition = self._hosted.find(key)
        except (NotLeaderOrFollowerError, UnknownTopicOrPartitionError) as error:
            raise ReplicaNotAvailableError(str(error)) from None
        log = partition.log
        if partition.is_offline or (log is not None and log.dir.offline):
            raise StorageError(f"{key} is offline")
        if log is None:
            raise ReplicaNotAvailableError(f"{key} has no log here yet")
        under_way = self._moves.get(key)
        if under_way is not None and under_way.target is target:
            return
        if under_way is not None:
            under_way.stop()
        if log.dir is not target:
            self.start(partition, target)

    def _find_dir(self, path: str) -> LogDir:
        wanted = posixpath.normpath(path)
        found = [log_dir for log_dir in self.logs.online_dirs if posixpath.normpath(log_dir.path) == wanted]
        if found:
            return found[0]
        if wanted in map(posixpath.normpath, self.logs.configured_dirs):
            raise StorageError(f"{path} is offline")
        raise LogDirNotFoundError(f"{path} is not a log directory of this broker")

    def start(self, partition: Partition, target: LogDir) -> None:
        move = _Move(self, partition, self.logs.plan_move(partition.key, target))
        self._moves[partition.key] = move
        move.start()

    def resume(self, partition: Partition) -> None:
        """A move that was under way when the broker last stopped begins anew."""
        target = self.logs.unfinished_moves.pop(partition.key, None)
        if target is not None and partition.log is not None and partition.log.dir is not target:
            self.start(partition, target)

    def give_up(self, key: TopicPartition, then: Callable[[], None]) -> bool:
        """The partition is going away. False if its log is just being replaced: then `then` comes after that."""
        move = self._moves.get(key)
        if move is None:
            return True
        is_free = not move.is_swapping
        if not is_free:
            move.then.append(then)
        move.stop()
        return is_free

    def stop(self, done: Callable[[], None]) -> None:
        """Begin no new step, the next start begins these moves anew; `done` when no log is just being replaced."""
        self._stopped = True
        swapping = [move for move in self._moves.values() if move.is_swapping]
        left = len(swapping) + 1

        def one_is_over() -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        for move in swapping:
            move.then.append(one_is_over)
        one_is_over()

    @property
    def futures(self) -> list[Relocation]:
        return [move.relocation for move in self._moves.values() if move.relocation.has_begun]

    @property
    def are_stopped(self) -> bool:
        return self._stopped

    def ended(self, move: _Move) -> None:
        if self._moves.get(move.partition.key) is move:
            del self._moves[move.partition.key]


class _Move:
    """One partition on its way. Each step calls the next."""

    def __init__(self, moves: Moves, partition: Partition, copy: Relocation) -> None:
        self._moves = moves
        self.partition = partition
        self.relocation = copy
        self.is_swapping = False
        self.then: list[Callable[[], None]] = []  # what waits for the end of the swap
        self._is_called_off = False
        self._log_start = 0  # when the copy was begun; it may lie inside of the first batch

    @property
    def target(self) -> LogDir:
        return self.relocation.target

    def start(self) -> None:
        """Find where the copy begins, and make its directory."""
        self._log_start = self.partition.log.start_offset if self.partition.log is not None else 0
        self._moves.lanes.on(self.partition, relocation.first_batch_offset, self._begin)

    def _begin(self, start_offset: int | None, error: BaseException | None) -> None:
        if self._has_ended(error) or start_offset is None:
            return
        make = partial(self.relocation.begin, start_offset, self.partition.topic_id)
        self._on_target(make, lambda _, error: self._go_on(error))

    def _on_target(
        self, work: Callable[[], None], done: Callable[[None, BaseException | None], None]
    ) -> None:
        self._moves.lanes.of(self.target).run(work, done)

    def stop(self) -> None:
        """Call it off with the next step, unless it is past that."""
        self._is_called_off = True
        if not self.is_swapping:
            self._moves.ended(self)

    def _has_ended(self, error: BaseException | None) -> bool:
        log = self.partition.log
        if error is None and not self._is_called_off and log is not None and not log.dir.offline:
            return self._moves.are_stopped  # its directory is thrown away at the next start
        if error is not None:
            _logger.error("moving %s to %s failed", self.partition.key, self.target.path, exc_info=error)
        self._moves.ended(self)
        self._on_target(partial(self.relocation.discard, upkeep.remove_dir), _nothing)
        return True

    # -- copying

    def _go_on(self, error: BaseException | None = None) -> None:
        if self._has_ended(error):
            return
        log, future = self.partition.log, self.relocation.future
        assert log is not None
        if future.end_offset < log.start_offset != self._log_start:
            self.start()  # retention was faster than the copy
        elif future.end_offset >= log.end_offset:
            self._note_start(log)
        else:
            offset = max(future.end_offset, log.start_offset)
            params = FetchParams(replica_id=_FUTURE_REPLICA, isolation=Isolation.LOG_END)
            entry = FetchEntry(self.partition.key, None, offset, _COPY_BYTES)
            self._moves.fetches.fetch(params, [entry], self._fetched)

    def _fetched(self, results: list[FetchResult]) -> None:
        (result,) = results
        if self._has_ended(None):
            return
        if result.error_code == OffsetOutOfRangeError.code:
            self._go_on()
            return
        if result.error_code:
            self._go_on(StorageError(f"{self.partition.key} cannot be read: error {result.error_code}"))
            return
        records = result.records if isinstance(result.records, bytes) else b"".join(result.records or ())
        self._on_target(partial(self.relocation.append, records), lambda _, error: self._go_on(error))

    # -- the swap

    def _note_start(self, log: Log) -> None:
        """From here on the partition waits for the swap. Its log start must be known where it goes to."""
        self.is_swapping = True
        self._moves.logs.cleaner.forget(self.partition.key)
        self._moves.lanes.pause(self.partition)
        # What was queued before may still change the log: it is done once this comes round.
        self._moves.lanes.of(log.dir).run(_no_work, lambda _, error: self._write_start(log))

    def _write_start(self, log: Log) -> None:
        write = self._moves.logs.plan_start_checkpoint(log, self.target)
        self._on_target(write, lambda _, error: self._swap(log, error))

    def _swap(self, log: Log, error: BaseException | None) -> None:
        if error is not None or self.target.offline or log.dir.offline:
            self._swapped(log, "", None, error or StorageError("a log directory is offline"))
            return
        old_path = self._moves.logs.doomed_path(log)
        self._moves.lanes.of(log.dir).run(
            partial(self.relocation.finish, log, old_path), partial(self._swapped, log, old_path)
        )

    def _swapped(self, old: Log, old_path: str, new: Log | None, error: BaseException | None) -> None:
        lanes, logs = self._moves.lanes, self._moves.logs
        if new is not None:
            self.partition.replace_log(new, lanes.of(new.dir).handles)
            for log_dir, work in logs.moved(old, old_path, new):
                lanes.of(log_dir).run(work, _nothing)
            self._moves.ended(self)
        else:
            self._is_called_off = True
            self._has_ended(error)
        self.is_swapping = False
        lanes.resume(self.partition)
        for then in self.then:
            then()


def _no_work() -> None: ...


def _nothing(_: None, error: BaseException | None) -> None:
    if error is not None:
        _logger.error("after a move: %s", error, exc_info=error)
