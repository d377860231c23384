"""Lookups of offsets far from every index entry, and in files that are not what they were."""

from __future__ import annotations

import pytest

from ottla.storage.fs import ColdPagesError
from ottla.storage.log.segment import Segment
from ottla.testing.runtime import START_MS
from tests.storage.log.test_segment import BASE, config, make, put
from tests.storage.world import World


def far_segment(world: World) -> Segment:
    """Two thousand small batches, and no index entry but the first."""
    segment = make(world, index_interval_bytes=1 << 30)
    for offset in range(BASE, BASE + 6000, 3):
        put(segment, offset, count=2, size=200)  # the third offset of each is missing, as after compaction
    return segment


def test_a_lookup_that_must_not_take_long_leaves_a_long_way_to_a_thread(world: World) -> None:
    segment = far_segment(world)
    for offset in (BASE + 5001, BASE + 5002, BASE + 5003, BASE + 6500):
        with pytest.raises(ColdPagesError) as far:
            segment.locate(offset, cached_only=True)
        far.value.warm()
        assert segment.locate(offset, cached_only=True) == segment.locate(offset)
        segment.truncate_to(BASE + 5999, START_MS)  # what threads have found is not believed any more


def test_what_a_thread_has_found_helps_later_lookups_and_none_before_it(world: World) -> None:
    segment = far_segment(world)
    for offset in range(BASE + 2000, BASE + 6000, 17):
        try:
            found = segment.locate(offset, cached_only=True)
        except ColdPagesError as far:
            far.warm()
            found = segment.locate(offset, cached_only=True)
        assert found == segment.locate(offset)
    assert segment.locate(BASE, cached_only=True) == segment.locate(BASE)
    fresh = Segment(world.fs, world.path, BASE, config())
    for offset in range(BASE, BASE + 6000, 101):
        assert segment.locate(offset) == fresh.locate(offset)


def test_what_a_thread_finds_in_a_segment_that_was_cut_meanwhile_is_forgotten(world: World) -> None:
    segment = far_segment(world)
    with pytest.raises(ColdPagesError) as far:
        segment.locate(BASE + 5001, cached_only=True)
    segment.truncate_to(BASE + 10, START_MS)
    far.value.warm()
    for offset in range(BASE + 9, BASE + 6000, 3):
        put(segment, offset, size=300)
    with pytest.raises(ColdPagesError) as again:
        segment.locate(BASE + 5001, cached_only=True)
    again.value.warm()
    assert segment.locate(BASE + 5001, cached_only=True) == segment.locate(BASE + 5001)


def test_a_log_file_that_something_else_has_cut_is_an_error_and_not_an_end(world: World) -> None:
    segment = far_segment(world)
    sound = segment.read(BASE, 1 << 20, segment.size, min_one_batch=True)
    assert sound is not None
    segment.file.truncate(500)
    with pytest.raises(OSError, match="something else has cut it"):
        segment.locate(BASE + 5001)
    with pytest.raises(OSError, match=f"{segment.size} bytes were written and 500 are left"):
        sound[1].read()
