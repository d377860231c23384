"""What lies in the log directories of this broker, and how much room there is."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.errors import StorageError
from ottla.names import TopicPartition
from ottla.replica.moves import Moves
from ottla.replica.results import LogDirInfo, ReplicaSize
from ottla.runtime import LoopRuntime
from ottla.storage.log_dir import LogDir
from ottla.storage.log_manager import LogManager

Described = Callable[[list[LogDirInfo]], None]


class LogDirs:
    """The answer to DescribeLogDirs."""

    def __init__(self, runtime: LoopRuntime, logs: LogManager, moves: Moves) -> None:
        self._runtime = runtime
        self._logs = logs
        self._moves = moves

    def describe(self, wanted: Collection[TopicPartition] | None, done: Described) -> None:
        """Every directory, with the logs of these partitions in it; of all, if `wanted` is None."""
        online = self._logs.online_dirs
        replicas = [self._replicas(log_dir, wanted) for log_dir in online]

        def measure() -> list[tuple[int, int] | None]:
            return [_space(log_dir) for log_dir in online]

        def answer(spaces: list[tuple[int, int] | None] | None, error: BaseException | None) -> None:
            found = [
                LogDirInfo(log_dir.path, StorageError.code)
                if space is None
                else LogDirInfo(log_dir.path, 0, *space, logs)
                for log_dir, space, logs in zip(online, spaces or [None] * len(online), replicas, strict=True)
            ]
            there = {log_dir.path for log_dir in online}
            offline = [path for path in self._logs.configured_dirs if path not in there]
            done([*found, *(LogDirInfo(path, StorageError.code) for path in offline)])

        self._runtime.run_blocking(measure, answer)

    def _replicas(self, log_dir: LogDir, wanted: Collection[TopicPartition] | None) -> list[ReplicaSize]:
        found = [
            ReplicaSize(key, log.size_bytes)
            for key, log in self._logs.logs.items()
            if log.dir is log_dir and (wanted is None or key in wanted)
        ]
        for copy in self._moves.futures:
            current = self._logs.get(copy.partition)
            if copy.target is log_dir and current and (wanted is None or copy.partition in wanted):
                lag = max(0, current.end_offset - copy.future.end_offset)
                found.append(ReplicaSize(copy.partition, copy.future.size_bytes, lag, is_future=True))
        return found


def _space(log_dir: LogDir) -> tuple[int, int] | None:
    try:
        return log_dir.fs.space(log_dir.path)
    except OSError as error:
        log_dir.fail(error, "asking for its size")
        return None
