"""Repair and trim on a disk without a free block: they work where they can, and harm nothing where they cannot."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from functools import cache
from random import Random

import pytest

from ottla.cli.log import repair as log_repair
from ottla.config import LogConfig
from ottla.logtools.listing import list_partition, resolve
from ottla.logtools.offline import measure, trim
from ottla.logtools.verify.data_dir import verify
from ottla.logtools.writing import NoSpaceError
from ottla.records.builder import NewRecord, build_batch
from ottla.storage import layout, losses
from ottla.testing.disk import SimulatedDisk
from ottla.testing.history import Image
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.full_disk import FullDisk
from tests.reliability.mishaps import DIRECTORY, PARTITION, in_the_log, world
from tests.reliability.model import Written
from tests.reliability.scenarios import LOG_DIR, TOPIC_ID, Writer, open_manager

ASIDE = "/elsewhere"
BASES = [0, 25, 32, 56, 67, 77, 102, 110, 147, 172]


@cache
def large_batches() -> tuple[Image, list[Written]]:
    """A log with batches of several blocks each, after a clean stop."""
    runtime = SimulatedRuntime(3)
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    config = LogConfig(index_interval_bytes=4096, segment_index_bytes=240)
    manager = open_manager(disk, runtime, {PARTITION.topic: config})
    log = manager.get_or_create(PARTITION, TOPIC_ID)
    writer = Writer(Random("large"), runtime)
    for number in range(14):
        value = Random(number).randbytes(9000)
        writer.append(log, build_batch([NewRecord(runtime.now_ms(), None, value, [])]))
        if number in (4, 9):
            log.roll()
    log.raise_high_watermark(log.end_offset)
    manager.close()
    return disk.image(), writer.batches


def path(base: int, suffix: str = layout.LOG) -> str:
    return f"{DIRECTORY}/{layout.segment_file(base, suffix)}"


def full_disk() -> FullDisk:
    disk = FullDisk(world("clean").image)
    disk.make_dir(ASIDE)
    return disk


def damage(disk: FullDisk, base: int, position: int) -> None:
    file = disk.open(path(base), write=True)
    file.pwrite(bytes([file.pread(1, position)[0] ^ 1]), position)
    file.close()


def contents(disk: FullDisk) -> dict[str, bytes]:
    return {
        name: file.data
        for name, file in disk.image().walk()
        if file is not None and not name.endswith(".lock")
    }


def repair(disk: FullDisk, aside: str | None = None) -> bool:
    with redirect_stdout(io.StringIO()):
        target = resolve(disk, LOG_DIR)
        return log_repair.run(disk, target, write=True, skip_corrupt=True, as_json=False, aside=aside)


def defects(disk: FullDisk) -> list[str]:
    return [found.code for found in verify(disk, resolve(disk, LOG_DIR)) if found.level == "defect"]


def test_names_are_put_right_without_a_free_block() -> None:
    disk = full_disk()
    before = contents(disk)
    disk.rename(path(56), path(99_999))
    assert repair(disk)
    assert contents(disk) == before


@pytest.mark.parametrize("position", [70, 1300])
def test_without_room_for_a_copy_the_log_stays_as_it_was_and_the_error_says_what_is_needed(
    position: int,
) -> None:
    disk = full_disk()
    damage(disk, 110, position)
    before = contents(disk)
    with pytest.raises(NoSpaceError, match=r"needs about \d+ bytes.*0 are free.*--quarantine-dir"):
        repair(disk)
    after = contents(disk)
    assert {name: after[name] for name in before} == before
    assert not any(after[name].rstrip(b"\0") for name in set(after) - set(before))


@pytest.mark.parametrize("number", [0, 6, 13])
def test_another_disk_keeps_what_is_taken_out_and_the_repair_needs_no_free_block(number: int) -> None:
    image, batches = large_batches()
    disk = FullDisk(image)
    disk.make_dir(ASIDE)
    bad = batches[number]
    base = max(base for base in list_partition(disk, DIRECTORY).bases if base <= bad.first)
    damage(disk, base, disk.read_bytes(path(base)).index(bad.data) + 100)
    assert not repair(disk, ASIDE)  # what is lost is on record
    assert defects(disk) == ["lost-records"]
    assert in_the_log(disk) == {batch.data for batch in batches} - {bad.data}
    [loss] = losses.read(disk, DIRECTORY).open
    assert (loss.first_offset, loss.end_offset) == (bad.first, bad.last + 1)
    assert loss.kept_in == f"{ASIDE}/topic-0.{base:020d}.quarantine"
    assert len(disk.read_bytes(loss.kept_in)) == len(bad.data)
    losses.acknowledge(disk, DIRECTORY, 1)
    assert repair(disk, ASIDE)


def test_a_repair_that_was_stopped_while_it_wrote_over_a_log_is_finished_by_the_next() -> None:
    class Stopping(FullDisk):
        stop = False

        def unlink(self, path: str) -> None:
            if self.stop and path.endswith(".rewritten"):
                file = self.open(f"{DIRECTORY}/{layout.segment_file(110, layout.LOG)}", write=True)
                file.truncate(100)
                raise KeyboardInterrupt
            super().unlink(path)

    disk = Stopping(world("clean").image)
    disk.make_dir(ASIDE)
    damage(disk, 110, 70)
    left = in_the_log(disk)
    disk.stop = True
    with pytest.raises(KeyboardInterrupt):
        repair(disk, ASIDE)
    disk.stop = False
    repair(disk, ASIDE)
    assert in_the_log(disk) == left
    assert defects(disk) == ["lost-records"]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (60, None, (60, 181)),
        (None, 150, (0, 152)),
        (40, 120, (40, 123)),
        (None, 178, (0, 179)),
    ],
)
def test_trim_needs_no_free_block(before: int | None, after: int | None, kept: tuple[int, int]) -> None:
    disk = full_disk()
    partition = list_partition(disk, DIRECTORY)
    trim(disk, partition, SimulatedRuntime(), before=before, after=after)
    held = measure(disk, partition)
    assert (held.start_offset, held.end_offset) == kept
    assert defects(disk) == []


def test_trim_without_anything_to_free_says_so_and_changes_nothing() -> None:
    disk = full_disk()
    before = contents(disk)
    with pytest.raises(NoSpaceError, match="free some"):
        trim(disk, list_partition(disk, DIRECTORY), SimulatedRuntime(), before=3, after=None)
    after = contents(disk)
    assert {name: after[name].rstrip(b"\0") for name in before} == {
        name: data.rstrip(b"\0") for name, data in before.items()
    }
    assert defects(disk) == []
