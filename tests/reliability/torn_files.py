"""Torn files: each file of a partition cut at every byte; the log opens with what is whole before the cut.

After a crash (nothing known to be flushed) a cut inside a batch ends the log there. A cut between two batches
cannot be told from a gap that compaction left, so later segments stay. After a clean stop nothing is given up
but the batches that the cut itself took. Side files cost no record, whatever is left of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import NamedTuple

from ottla.names import TopicPartition
from ottla.storage import layout, losses
from ottla.testing.disk import SimulatedDisk
from ottla.testing.history import Image
from tests.reliability.model import Written, check_log, read_all
from tests.reliability.scenarios import (
    LOG_DIR,
    Case,
    SimulatedRuntime,
    Writer,
    open_manager,
    small_partition,
    with_file,
)

PARTITION = TopicPartition("topic", 0)
_INDEXES = (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX)


class Stopped(NamedTuple):
    """A log directory at rest, and the batches of each segment of its one partition, by base offset."""

    how: str
    image: Image
    segments: dict[int, list[Written]]
    now_ms: int

    @property
    def batches(self) -> list[Written]:
        return [written for batches in self.segments.values() for written in batches]


def stopped(how: str, seed: int) -> Stopped:
    runtime = SimulatedRuntime(seed)
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    manager = open_manager(disk, runtime)
    writer = small_partition(manager, runtime, seed, PARTITION)
    bases = manager.logs[PARTITION].segments.bases
    if how == "clean":
        manager.checkpoint()
        manager.close()
    else:
        manager.abandon()
    ends = [*bases[1:], 1 << 62]
    segments = {
        base: [written for written in writer.batches if base <= written.first < end]
        for base, end in zip(bases, ends, strict=True)
    }
    return Stopped(how, disk.image(), segments, runtime.now_ms())


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """Every position of every file, or a `share` of them and those at the borders of batches."""
    rng = Random(f"torn {seed}")
    for how in ("clean", "killed"):
        state = stopped(how, seed)
        for path, file in sorted(state.image.walk()):
            if file is None or path.endswith(layout.LOCK):
                continue
            is_log = path.endswith(layout.LOG)
            borders = _borders(file.data) if is_log else set()
            for cut in range(len(file.data)):
                if cut in borders or rng.random() < share:
                    name = f"{how} {path.removeprefix(LOG_DIR + '/')} {cut}"
                    yield Case(f"{how}, {_kind(path)}", name, partial(_check, state, path, cut, seed))


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[20:] if name[:20].isdigit() else name


def _borders(data: bytes) -> set[int]:
    """Just before, at and after each batch's end."""
    borders, at = {0, 1}, 0
    while at < len(data):
        at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
        borders |= {at - 1, at, at + 1}
    return borders


def _expected(state: Stopped, path: str, cut: int) -> list[Written]:
    parsed = layout.parse_segment_file(path.rpartition("/")[2])
    if parsed is None or parsed.suffix != layout.LOG:
        return state.batches
    whole: list[Written] = []
    torn = False
    for base, batches in state.segments.items():
        if base != parsed.base_offset:
            if not torn or state.how == "clean":
                whole += batches
            continue
        end = 0
        for written in batches:
            if end + len(written.data) > cut:
                break
            end += len(written.data)
            whole.append(written)
        torn = True  # a cut at a batch's border too leaves a gap before the next segment
    return whole


def _bytes_of(image: Image, path: str) -> bytes:
    data = image.contents()[path]
    assert data is not None, path
    return data


def _check(state: Stopped, path: str, cut: int, seed: int) -> None:
    expected = _expected(state, path, cut)
    data = _bytes_of(state.image, path)[:cut]
    runtime = SimulatedRuntime(seed, state.now_ms)
    disk = SimulatedDisk(with_file(state.image, path, data), runtime.now_ms)
    manager = open_manager(disk, runtime)
    log = manager.logs[PARTITION]
    is_prefix = expected == state.batches[: len(expected)]
    if is_prefix and (state.how == "killed" or not path.endswith(_INDEXES)):
        check_log(log, expected)
    assert read_all(log) == expected
    assert read_all(log, max_bytes=1) == expected
    if expected == state.batches:
        assert not log.losses
    elif state.how == "clean":
        assert losses.count_offsets(log.losses) == sum(
            batch.last - batch.first + 1 for batch in state.batches if batch not in expected
        )

    writer = Writer(Random(cut), runtime)
    writer.leader_epoch = 5
    expected = [*expected, writer.append(log, writer.plain())]
    manager.close()
    manager = open_manager(disk, runtime)
    assert read_all(manager.logs[PARTITION]) == expected
    manager.close()
