"""Faults: each distinct operation on the disk fails once with EIO and once with ENOSPC, in the life of two log dirs.

No flush is acknowledged after a sync that failed; the directory of the failed operation goes offline (or cannot be
opened) and the other one goes on; no bare OSError reaches the caller. A restart on the same disk, the power cut or
not, finds everything that was acknowledged.

ENOSPC where something is written, made or made longer in a running log is not the end of its directory: what did not
fit is refused, and a little later the directory takes records again.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random

from ottla.config import LogConfig
from ottla.errors import BrokerError, DiskFullError, StorageError
from ottla.names import TopicPartition
from ottla.records.builder import build_batch
from ottla.storage import upkeep
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager
from ottla.testing.crash import random_crash
from ottla.testing.disk import SimulatedDisk
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.reliability.model import Written, read_all
from tests.reliability.scenarios import SMALL, Case, SimulatedRuntime, Writer, open_manager
from tests.storage import steps

DIRS = ("/one", "/two")
PARTITIONS = (TopicPartition("plain", 0), TopicPartition("compacted", 0), TopicPartition("plain", 1))
COMPACTED = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    internal_segment_bytes=SMALL.internal_segment_bytes,
    index_interval_bytes=SMALL.index_interval_bytes,
    segment_index_bytes=SMALL.segment_index_bytes,
    min_cleanable_dirty_ratio=0.01,
)
_ERRORS = (errno.EIO, errno.ENOSPC)


class Life:
    """What happens to the two directories, and what was promised meanwhile."""

    def __init__(self, disk: SimulatedDisk, seed: int, fault: Fault | None = None) -> None:
        self.fs = FaultyFileSystem(disk, fault)
        self.runtime = SimulatedRuntime(seed, queued=True)
        self._rng = Random(f"faults {seed}")
        self.writers = {
            partition: Writer(self._rng, self.runtime, keyed=partition.topic == "compacted")
            for partition in PARTITIONS
        }
        self.attempted: dict[TopicPartition, list[bytearray]] = {partition: [] for partition in PARTITIONS}
        self.promised = dict.fromkeys(PARTITIONS, 0)
        self.homes: dict[TopicPartition, str] = {}
        self.manager: LogManager | None = None
        self.refused = False

    def run(self) -> None:
        """Open, write, roll, flush, retain, compact, truncate, delete, checkpoint, stop."""
        try:
            self.manager = manager = open_manager(self.fs, self.runtime, {"compacted": COMPACTED}, DIRS)
        except StorageError:
            self.refused = True
            return
        for number in range(12):
            for partition in PARTITIONS:
                self._try(partial(self._append, manager, partition, number))
            self.runtime.advance(1000)
            self.runtime.run_pending()
        truncate = partial(self._truncate, manager, PARTITIONS[-1])
        clean = partial(upkeep.clean_dirtiest, manager)
        retain = partial(steps.apply_retention, manager)
        regular = partial(upkeep.run_once, manager, self.runtime)
        for step in (manager.checkpoint, clean, truncate, retain, regular):
            self._try(step)
            self.runtime.run_pending()
        doomed = TopicPartition("doomed", 0)
        self.runtime.advance(2000)  # one that was full has had time to find that it is not
        for partition in PARTITIONS[:-1]:  # the last one has been cut
            self._try(partial(self._append, manager, partition, 0))
        self.runtime.run_pending()
        self._try(lambda: manager.get_or_create(doomed).flush())
        if manager.get(doomed) is not None:
            self._try(lambda: steps.delete(manager, doomed))
        self.runtime.advance(10_000)
        self._try(retain)
        self.runtime.run_pending()
        self._try(manager.close)

    def _try(self, step: Callable[[], object]) -> None:
        with suppress(BrokerError):  # that is how a caller is told; a bare OSError would end the case
            step()

    def _append(self, manager: LogManager, partition: TopicPartition, number: int) -> None:
        log = manager.get_or_create(partition)
        self.homes[partition] = log.dir.path
        writer = self.writers[partition]
        data = build_batch(writer.records(3))
        # One that was refused may be there all the same, and must be whole.
        self.attempted[partition].append(data)
        try:
            writer.append(log, data)
        except DiskFullError:
            self.attempted[partition].pop()  # of this one there is nothing
            raise
        end_offset = log.end_offset
        log.raise_high_watermark(end_offset)
        log.when_flushed(end_offset, partial(self._flushed, log, partition, end_offset))
        if number % 4 == 3:
            log.roll()

    def _truncate(self, manager: LogManager, partition: TopicPartition) -> None:
        """Cut the last two batches, and the roll between them and the others."""
        kept = self.writers[partition].batches[:-2]
        if kept and manager.get(partition) is not None:
            end_offset = kept[-1].last + 1
            promised = self.promised[partition]
            self.promised[partition] = min(promised, end_offset)
            try:
                steps.truncate(manager, partition, end_offset)
            except DiskFullError:
                self.promised[partition] = promised  # nothing was cut
                raise
            self.writers[partition].batches = kept

    def _flushed(self, log: Log, partition: TopicPartition, offset: int, error: BaseException | None) -> None:
        assert error is None or isinstance(error, BrokerError), repr(error)
        if error is None:
            assert not log.dir.offline, "acknowledged on a directory that is offline"
            self.promised[partition] = max(self.promised[partition], offset)


def points(seed: int) -> list[tuple[Point, int]]:
    """Every distinct operation of a life without faults, and how often it happens."""
    life = Life(SimulatedDisk(), seed)
    life.run()
    assert min(life.promised.values()) > 0
    return sorted(life.fs.seen.items())


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """Each time of each operation, with each error; or the first time of each, and a `share` of the others."""
    rng = Random(f"fault cases {seed}")
    for point, times in points(seed):
        for nth in range(times):
            for error in _ERRORS:
                if nth == 0 or rng.random() < share:
                    fault = Fault(point, nth, error, written_bytes=7 * (nth % 2))
                    name = f"{point.kind} {point.target} {point.caller} {nth} {errno.errorcode[error]}"
                    yield Case(point.kind, name, partial(_check, seed, fault))


def _check(seed: int, fault: Fault) -> None:
    disk = SimulatedDisk()
    history = disk.record()
    life = Life(disk, seed, fault)
    life.run()
    assert life.fs.fired, fault
    if life.manager is not None:
        online = {log_dir.path for log_dir in life.manager.online_dirs}
        at_fault = f"/{(life.fs.failed_path or '').split('/')[1]}"  # or "/" itself, while one of them is made
        if at_fault in online:
            assert fault.error == errno.ENOSPC, "the directory at fault is online"
            assert len(online) == len(DIRS), "the wrong directory went offline"
        else:
            assert len(online) == len(DIRS) - 1, "not one directory went offline"
            assert not _may_be_undone(fault), "a full disk took its directory offline"
        for partition, home in life.homes.items():
            if home in online:
                assert life.promised[partition] == life.writers[partition].batches[-1].last + 1, (
                    "the other one stood still"
                )
        life.manager.abandon()
    for image in (disk.image(), random_crash(history, Random(f"cut {seed}"))):
        _check_restart(life, SimulatedDisk(image))


def _may_be_undone(fault: Fault) -> bool:
    """Whether the disk was full in the middle of an append, a roll, a cleaning, or a checkpoint: not of a start, nor
    of a truncation."""
    point = fault.point
    return (
        fault.error == errno.ENOSPC
        and point.kind in ("pwrite", "create")
        and point.target not in ("meta.properties.tmp", ".lock")
        and not point.caller.endswith(".keep_first")
    )


def _check_restart(life: Life, disk: SimulatedDisk) -> None:
    """Without the fault, everything promised is there."""
    manager = open_manager(disk, SimulatedRuntime(0, life.runtime.now_ms()), {"compacted": COMPACTED}, DIRS)
    assert len(manager.online_dirs) == len(DIRS)
    for partition, promised in life.promised.items():
        log = manager.get(partition)
        if log is None:
            assert promised == 0, f"{partition} is gone"
            continue
        assert log.end_offset >= promised, (partition, log.end_offset, promised)
        if partition.topic != "compacted":
            attempted = [Written(bytes(data)) for data in life.attempted[partition]]
            assert read_all(log) == attempted[: len(read_all(log))]
    manager.close()
