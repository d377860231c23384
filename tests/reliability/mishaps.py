"""Mishaps of a disk or a careless hand, then `ottla log repair`: what was healthy is still there, and it is all done.

A data directory at rest, with all codecs, transactions and several epochs and segments, meets one to three mishaps:
pages of zeros, changed bits, files cut, deleted, copied, renamed, exchanged, or not readable for this user. A repair
follows. Every batch that is whole in some log afterwards must be in the log, or, where a file under another name had it
too, at least in what was set aside. The repair says that all is well if and only if `verify` says so, and a second one
changes nothing.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache, partial
from random import Random
from typing import NamedTuple

from ottla.cli.log import repair as log_repair
from ottla.config import LogConfig
from ottla.logtools.findings import Finding
from ottla.logtools.listing import list_partition, resolve
from ottla.logtools.offline import compact
from ottla.logtools.verify.data_dir import verify
from ottla.logtools.walk import Damage, walk
from ottla.names import TopicPartition
from ottla.records import kernel
from ottla.records.builder import build_batch
from ottla.records.compression.codec import Codec
from ottla.storage import checkpoint, layout, losses
from ottla.storage.layout import segment_file
from ottla.storage.log.validation import Origin
from ottla.testing.disk import SimulatedDisk, SimulatedFile
from ottla.testing.history import Image
from ottla.testing.runtime import SimulatedRuntime
from tests.reliability.model import Written
from tests.reliability.scenarios import LOG_DIR, TOPIC_ID, Case, Writer, open_manager

PARTITION = TopicPartition("topic", 0)
DIRECTORY = f"{LOG_DIR}/{PARTITION}"
_COUNT = 2000
_BESIDE = (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX)
# What a repair cannot bring back, and what nobody can decide: two files with equal right, and a batch with a wrong
# epoch when the checkpoint of epochs is gone.
_MAY_BE_LEFT = {"lost-records", "overlapping-segments", "leader-epoch"}


class World(NamedTuple):
    """A data directory at rest, and the batches of its one partition."""

    image: Image
    batches: list[Written]
    recovery_point: int  # all below it was on disk for certain


class OwnedDisk(SimulatedDisk):
    """A disk some of whose files belong to somebody else."""

    def __init__(self, image: Image) -> None:
        super().__init__(image)
        self.denied: set[str] = set()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> SimulatedFile:
        self._check_owner(path)
        return super().open(path, write=write, create=create)

    def read_bytes(self, path: str) -> bytes:
        self._check_owner(path)
        return super().read_bytes(path)

    def _check_owner(self, path: str) -> None:
        if path in self.denied:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)


@cache
def world(how: str) -> World:
    """Ten segments, some of them small; stopped cleanly, killed, or stopped and compacted."""
    runtime = SimulatedRuntime(3)
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    manager = open_manager(disk, runtime)
    log = manager.get_or_create(PARTITION, TOPIC_ID)
    writer = Writer(Random("mishaps"), runtime, keyed=how == "compacted")
    for number, codec in enumerate([*Codec] * 5):
        writer.append(log, build_batch(writer.records(3), codec=codec))
        if number in (4, 9, 10, 15, 20):
            log.roll()
        if number == 10:
            continue
        writer.append(log, writer.from_producer(7))
        if how != "compacted":  # an open transaction would keep the cleaner away
            writer.append(log, writer.from_producer(100 + number % 3, transactional=True))
        if number % 2 and how != "compacted":
            ended = writer.open_transactions()[0]
            writer.append(log, writer.marker(ended, is_abort=number % 4 == 1), Origin.COORDINATOR)
        if number == 12:
            writer.leader_epoch = 3
        runtime.advance(1000)
    log.raise_high_watermark(log.end_offset)
    manager.checkpoint()
    if how == "killed":
        manager.abandon()
    else:
        manager.close()
    if how == "compacted":
        config = LogConfig(cleanup_policy=frozenset({"compact"}), retention_ms=-1, index_interval_bytes=150)
        compact(disk, list_partition(disk, DIRECTORY), runtime, config)
        writer.batches = [Written(data) for data in in_the_log(disk)]
        writer.batches.sort(key=lambda batch: batch.first)
    points = checkpoint.read_offsets(disk, f"{LOG_DIR}/{layout.RECOVERY_POINTS}")
    return World(disk.image(), writer.batches, points[PARTITION])


class Story:
    """One directory, what happens to it, and whether it can still be told what was where."""

    def __init__(self, how: str, rng: Random) -> None:
        self.disk = OwnedDisk(world(how).image)
        self.batches, self.recovery_point = world(how).batches, world(how).recovery_point
        self.told: list[str] = []
        self._rng = rng
        self._kinds: set[str] = set()

    @property
    def is_plain(self) -> bool:
        """Names were changed or bytes were, not both: then everything that is whole has one place."""
        return len(self._kinds) <= 1

    def happen(self) -> None:
        mishap: Callable[[], str | None] = self._rng.choice(
            [
                *[self._zero, self._bits, self._copy, self._rename, self._swap] * 2,
                self._cut,
                self._delete,
                self._own,
            ]
        )
        told = mishap()
        if told is not None:
            self.told.append(told)

    # -- what happens to bytes

    def _zero(self) -> str | None:
        path = self._any_file()
        size = self.disk.size(path)
        if size == 0:
            return None
        start = self._rng.randrange(size)
        length = self._rng.choice([1, 16, 100, 512, 4096])
        end = min(size, start + length) if self._rng.random() < 0.9 else size
        start = start if end < size or self._rng.random() < 0.8 else 0
        self._write(path, bytes(end - start), start)
        return f"zero {path} {start}..{end}"

    def _bits(self) -> str | None:
        path = self._any_file()
        size = self.disk.size(path)
        if size == 0:
            return None
        at = self._rng.randrange(size)
        old = self.disk.read_bytes(path)[at]
        self._write(path, bytes([old ^ self._rng.randrange(1, 256)]), at)
        return f"bits {path} at {at}"

    def _write(self, path: str, data: bytes, position: int) -> None:
        self._kinds.add("bytes")
        file = self.disk.open(path, write=True)
        file.pwrite(data, position)
        file.close()

    def _cut(self) -> str:
        path = self._any_file()
        size = self._rng.randrange(self.disk.size(path) + 1)
        self._kinds.add("bytes")
        file = self.disk.open(path, write=True)
        file.truncate(size)
        file.close()
        return f"cut {path} to {size}"

    def _delete(self) -> str:
        path = self._any_file()
        self._kinds.add("bytes")
        self.disk.unlink(path)
        return f"delete {path}"

    # -- what happens to names

    def _copy(self) -> str | None:
        source, target = self._log(), self._name()
        if source is None or source == target:
            return None
        suffixes = self._suffixes()
        if self.disk.exists(self.path(target, layout.LOG)):
            self._kinds.add("bytes")
        self._kinds.add("names")
        for suffix in suffixes:
            if self.disk.exists(self.path(source, suffix)):
                data = SimulatedDisk.read_bytes(self.disk, self.path(source, suffix))
                file = self.disk.open(self.path(target, suffix), create=True)
                file.truncate(0)
                file.pwrite(data, 0)
                file.close()
        return f"copy {source} to {target} with {suffixes}"

    def _rename(self) -> str | None:
        source, target = self._log(), self._name()
        if source is None or source == target:
            return None
        suffixes = self._suffixes()
        if self.disk.exists(self.path(target, layout.LOG)):
            self._kinds.add("bytes")
        self._kinds.add("names")
        for suffix in suffixes:
            if self.disk.exists(self.path(source, suffix)):
                self.disk.rename(self.path(source, suffix), self.path(target, suffix))
        return f"rename {source} to {target} with {suffixes}"

    def _swap(self) -> str | None:
        one, other = self._log(), self._log()
        if one is None or other is None or one == other:
            return None
        suffixes = self._suffixes()
        self._kinds.add("names")
        for suffix in suffixes:
            paths = self.path(one, suffix), self.path(other, suffix)
            if all(map(self.disk.exists, paths)):
                self.disk.rename(paths[0], f"{DIRECTORY}/between")
                self.disk.rename(paths[1], paths[0])
                self.disk.rename(f"{DIRECTORY}/between", paths[1])
        return f"swap {one} and {other} with {suffixes}"

    def _own(self) -> str:
        path = self._any_file()
        self.disk.denied.add(path)
        return f"own {path}"

    def _any_file(self) -> str:
        names = sorted(name for name in self.disk.list_dir(DIRECTORY) if name != layout.PARTITION_METADATA)
        logs = [name for name in names if name.endswith(layout.LOG)]
        paths = [f"{DIRECTORY}/{name}" for name in [*names, *logs, *logs, *logs]]
        return self._rng.choice([path for path in paths if path not in self.disk.denied])

    def _log(self) -> int | None:
        files = (layout.parse_segment_file(name) for name in self.disk.list_dir(DIRECTORY))
        bases = sorted(file.base_offset for file in files if file and file.suffix == layout.LOG)
        readable = [base for base in bases if self.path(base, layout.LOG) not in self.disk.denied]
        return self._rng.choice(readable) if readable else None

    def _name(self) -> int:
        """Another name: mostly near, sometimes far, now and then one that is taken."""
        end = self.batches[-1].last + 1
        return self._rng.choice(
            [self._rng.randrange(end), self._rng.randrange(end), end, end + 7, 99_999, self._log() or 5]
        )

    def _suffixes(self) -> tuple[str, ...]:
        return (layout.LOG, *(_BESIDE if self._rng.random() < 0.5 else ()))

    @staticmethod
    def path(base_offset: int, suffix: str) -> str:
        return f"{DIRECTORY}/{segment_file(base_offset, suffix)}"

    # -- what is left

    def whole_batches(self) -> list[Written]:
        """Batches that are, byte for byte, in some log file."""
        names = [name for name in self.disk.list_dir(DIRECTORY) if name.endswith(layout.LOG)]
        logs = [SimulatedDisk.read_bytes(self.disk, f"{DIRECTORY}/{name}") for name in names]
        return [batch for batch in self.batches if any(batch.data in data for data in logs)]


def run(how: str, rng: Random) -> None:
    story = Story(how, rng)
    for _ in range(rng.randint(1, 3)):
        story.happen()
    whole = story.whole_batches()
    disk = story.disk
    if disk.denied:
        refuse(story)
        disk.denied.clear()
    is_well = repair(disk)
    defects = [finding for finding in check(disk) if finding.level == "defect"]
    assert is_well == (not defects), f"{story.told}: repair says {is_well}, verify {defects}"
    codes = {finding.code for finding in defects}
    assert codes <= _MAY_BE_LEFT or "overlapping-segments" in codes, f"{story.told}: left are {defects}"
    held, aside = in_the_log(disk), set_aside(disk)
    for batch in whole:
        place = f"{story.told}: batch {batch.first}..{batch.last}"
        assert batch.data in held or not story.is_plain, f"{place} was whole and is not in the log"
        assert batch.data in held or any(batch.data in data for data in aside), f"{place} is lost"
    # In a compacted log what is missing cannot be told from what was cleaned out.
    if how != "compacted" and "overlapping-segments" not in codes:
        check_record(story, held)
    before = contents(disk)
    assert repair(disk) == is_well, f"{story.told}: a second repair says something else"
    assert contents(disk) == before, f"{story.told}: a second repair changes something"


def refuse(story: Story) -> None:
    """While a file cannot be read nothing is changed, and that is said. An index without a log counts for nothing."""
    disk = story.disk
    names = {path: layout.parse_segment_file(path.rpartition("/")[2]) for path in disk.denied}
    if any(
        file is None
        or file.suffix == layout.SNAPSHOT
        or disk.exists(Story.path(file.base_offset, layout.LOG))
        for file in names.values()
    ):
        before = contents(disk)
        assert not repair(disk), f"{story.told}: all is well, with {disk.denied} not readable"
        assert contents(disk) == before, f"{story.told}: changed while a file was not readable"


def check_record(story: Story, held: set[bytes]) -> None:
    """What is missing of what was on disk is on record, and nothing that is there."""
    there = {offset for batch in held for offset in offsets(Written(batch))}
    record = losses.read(story.disk, DIRECTORY).open
    lost = {offset for loss in record for offset in range(loss.first_offset, loss.end_offset)}
    assert not lost & there, f"{story.told}: on record, and yet there: {sorted(lost & there)}"
    # Nothing else says where it began.
    knows_start = not any(layout.LEADER_EPOCHS in told for told in story.told)
    gone = set(range(0 if knows_start else min(there, default=0), story.recovery_point)) - there
    assert gone <= lost, f"{story.told}: gone, and not on record: {sorted(gone - lost)}"


def offsets(batch: Written) -> range:
    return range(batch.first, batch.last + 1)


def repair(disk: OwnedDisk) -> bool:
    with redirect_stdout(io.StringIO()):
        target = resolve(disk, LOG_DIR)
        return log_repair.run(disk, target, write=True, skip_corrupt=True, as_json=False)


def check(disk: OwnedDisk) -> list[Finding]:
    return list(verify(disk, resolve(disk, LOG_DIR)))


def contents(disk: OwnedDisk) -> dict[str, bytes]:
    found = {}
    for directory in (LOG_DIR, DIRECTORY):
        for name in disk.list_dir(directory):
            if not disk.is_dir(f"{directory}/{name}"):
                found[f"{directory}/{name}"] = SimulatedDisk.read_bytes(disk, f"{directory}/{name}")
    return found


def in_the_log(disk: SimulatedDisk) -> set[bytes]:
    """The good batches of all segments that a broker loads."""
    held = set()
    for segment in list_partition(disk, DIRECTORY).segments:
        file = disk.open(segment.path(layout.LOG))
        for found in walk(file, file.size()):
            if not isinstance(found, Damage):
                for at in range(0, found.count * kernel.ROW, kernel.ROW):
                    position, size = found.rows[at + kernel.POSITION], found.rows[at + kernel.SIZE]
                    held.add(file.pread(size, position))
        file.close()
    return held


def set_aside(disk: OwnedDisk) -> list[bytes]:
    names = [name for name in disk.list_dir(DIRECTORY) if name.endswith(layout.QUARANTINE)]
    return [disk.read_bytes(f"{DIRECTORY}/{name}") for name in names]


def cases(seed: int, count: int = _COUNT) -> Iterator[Case]:
    for number in range(count):
        how = ("clean", "killed", "compacted")[number % 3]
        yield Case(how, f"{how} {number}", partial(run, how, Random(f"{seed} {number}")))
