"""Random histories of a compacted log against a plain model."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records.compression.codec import Codec
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.cleaning.compaction_world import CompactedLog
from tests.storage.world import World

Step = Callable[[CompactedLog], None]

KEYS = st.sampled_from(["", "a", "b", "c", "dd", "eeeeeeee", "ffffffffffffffff", "g" * 40])
VALUES = st.one_of(st.none(), st.text("xyz", max_size=30))
IDEMPOTENT = [1, 2]
TRANSACTIONAL = [3, 4]


def _append(records: list[tuple[str | None, str | None]], producer_id: int, codec: Codec, roll: bool) -> Step:
    def step(compacted: CompactedLog) -> None:
        compacted.append(
            *records, producer_id=producer_id, codec=codec, transactional=producer_id in TRANSACTIONAL
        )
        if roll:
            compacted.roll()

    return step


def _end(producer_id: int, commit: bool) -> Step:
    def step(compacted: CompactedLog) -> None:
        if producer_id in compacted.open:
            compacted.end(producer_id, commit=commit)

    return step


def _advance(ms: int) -> Step:
    return lambda compacted: compacted.world.runtime.advance(ms)


def _reopen(clean: bool, forget_snapshots: bool) -> Step:
    def step(compacted: CompactedLog) -> None:
        known = compacted.producers()
        compacted.reopen(clean=clean, forget_snapshots=forget_snapshots)
        assert compacted.producers() == known
        compacted.check()

    return step


def _clean(compacted: CompactedLog) -> None:
    known = compacted.producers()
    cleaned_to = compacted.clean()
    if cleaned_to is not None:
        assert [record.offset for record in compacted.records()] == compacted.expect_after(cleaned_to)
        assert compacted.producers() == known
    compacted.check()


def _clean_in_parts(slots: int) -> Step:
    """With a map for a few keys; what is left is checked by what a reader makes of it."""

    def step(compacted: CompactedLog) -> None:
        while compacted.clean(map_bytes=24 * slots) is not None:
            compacted.check()

    return step


APPENDS = st.builds(
    _append,
    st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5),
    st.sampled_from([-1, -1, *IDEMPOTENT, *TRANSACTIONAL, *TRANSACTIONAL]),
    st.sampled_from(Codec),
    st.booleans(),
)
OTHERS = st.one_of(
    st.builds(_end, st.sampled_from(TRANSACTIONAL), st.booleans()),
    st.builds(_end, st.sampled_from(TRANSACTIONAL), st.booleans()),
    st.builds(_advance, st.sampled_from([1, 400, 1000])),
    st.builds(_reopen, st.booleans(), st.booleans()),
)


def _world() -> World:
    runtime = SimulatedRuntime()
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    disk.make_dir("/data")
    return World(disk, "/data", runtime)


@settings(max_examples=60)
@given(st.lists(st.one_of(APPENDS, APPENDS, OTHERS, st.just(_clean)), min_size=5, max_size=60))
def test_a_compacted_log_holds_the_last_value_of_each_key_at_its_offset(steps: list[Step]) -> None:
    compacted = CompactedLog(_world())
    for step in [*steps, CompactedLog.roll, _clean]:
        step(compacted)


@settings(max_examples=30)
@given(
    st.lists(st.one_of(APPENDS, OTHERS), min_size=5, max_size=60),
    st.integers(min_value=9, max_value=16),
)
def test_cleaning_in_parts_leaves_the_same_values(steps: list[Step], slots: int) -> None:
    compacted = CompactedLog(_world())
    for step in [*steps, CompactedLog.roll, _clean_in_parts(slots)]:
        step(compacted)
