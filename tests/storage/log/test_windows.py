"""Views of mapped log data: few maps, right bytes, and no cut under a reader's hands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import LogInUseError
from ottla.storage.fs import ColdPagesError, RealFileSystem
from ottla.storage.log import reader as log_reader
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.log_slice import warm
from ottla.storage.log.reader import Isolation
from ottla.storage.log.truncation import no_point_on_disk
from ottla.storage.log.windows import WINDOW_BYTES, WindowCache, Windows
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.disks.slow_disk import SlowFileSystem
from tests.storage.world import World, append, offsets

SIZE = 3 * WINDOW_BYTES + 1000


def views(log: Log, cache: WindowCache, offset: int = 0, *, may_open: bool = True) -> list[memoryview]:
    isolation = Isolation.LOG_END
    found = log_reader.read(
        log, offset, 1 << 20, isolation=isolation, cached_only=True, may_open=may_open
    ).slice
    assert found is not None
    return found.views(cache)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)), max_size=6), st.integers(1, 3))
def test_views_together_are_the_bytes_of_the_file(ranges: list[tuple[int, int]], capacity: int) -> None:
    disk = SimulatedDisk()
    file = disk.open("/f", create=True)
    content = bytes(range(256)) * (SIZE // 256 + 1)
    file.pwrite(content[:SIZE], 0)
    cache, windows = WindowCache(capacity), Windows()
    for position, size in ranges:
        size = min(size, SIZE - position)
        parts = windows.views(cache, file, position, size, SIZE)
        assert b"".join(parts) == content[position : position + size]
        assert len(parts) <= size // WINDOW_BYTES + 2
        assert len(windows._open) <= capacity


def test_a_log_is_not_cut_while_somebody_holds_views(any_world: World) -> None:
    log = any_world.load()
    for _ in range(3):
        append(log, value=b"a" * 100_000)
    cache = WindowCache()
    held = views(log, cache)
    for cut in (
        lambda: truncation.truncate_to(log, 1, no_point_on_disk),
        lambda: truncation.truncate_fully_and_start_at(log, 5, no_point_on_disk),
    ):
        with pytest.raises(LogInUseError):
            cut()
    assert offsets(log) == [0, 1, 2]
    del held
    assert truncation.truncate_to(log, 1, no_point_on_disk)
    append(log, value=b"b" * 100_000)
    assert b"bbb" in b"".join(views(log, cache, 1))
    assert offsets(log) == [0, 1]


def test_deletion_does_not_wait_for_views(any_world: World) -> None:
    log = any_world.load()
    append(log, value=b"a" * 100_000)
    held = views(log, WindowCache())
    log.roll()
    log.remove_segments([log.segments.first])
    log.delete_due_files(all_of_them=True)
    assert b"aaa" in b"".join(held)


def test_a_closed_segment_and_cold_pages_are_told_and_can_be_warmed(tmp_path: Path) -> None:
    fs = SlowFileSystem(RealFileSystem())
    world = World(fs, str(tmp_path), SimulatedRuntime())
    log = world.load()
    append(log, value=b"a" * 100_000)
    log.roll()
    append(log)
    cache = WindowCache()
    with pytest.raises(ColdPagesError) as closed:
        views(log, cache, may_open=False)
    closed.value.warm()
    assert views(log, cache)
    assert views(log, cache, may_open=False)
    fs.cool_down(log.segments.first.path(".log"))
    with pytest.raises(ColdPagesError) as cold:
        views(log, cache)
    cold.value.warm()
    assert views(log, cache)


def test_a_file_that_is_gone_needs_no_warming(tmp_path: Path) -> None:
    warm(RealFileSystem(), str(tmp_path / "gone"), 0, 100)
