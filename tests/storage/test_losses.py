"""The record of losses: it survives power cuts, damage and being written twice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage import losses
from ottla.storage.losses import Loss
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from tests.storage.world import World

LOG = "00000000000000000100.log"
LOSS = Loss(losses.START, LOG, 100, 160, "zeros", 4096, 512, 3, "00000000000000000100.quarantine", 5_000)
COUNTS = st.integers(0, 2**63 - 1)


@st.composite
def a_loss(draw: st.DrawFn) -> Loss:
    first, end = sorted((draw(COUNTS), draw(COUNTS)))
    maybe = st.none() | COUNTS
    return Loss(
        draw(st.sampled_from([losses.START, losses.RECOVERY, losses.REPAIR])),
        draw(st.text()), first, end, draw(st.text()), draw(maybe), draw(maybe), draw(maybe),
        draw(st.none() | st.text()), draw(COUNTS), draw(maybe),
    )  # fmt: skip


def test_nothing_is_on_record_where_there_is_no_file(any_world: World) -> None:
    assert losses.read(any_world.fs, any_world.root) == losses.Record([], [])


def test_a_loss_is_told_with_file_position_bytes_batches_offsets_and_reason() -> None:
    assert LOSS.describe() == (
        "60 offsets (100 to 159) missing in 00000000000000000100.log at position 4096 (512 bytes, 3 whole batches): "
        "zeros; the bytes are kept in 00000000000000000100.quarantine"
    )
    assert replace(
        LOSS, end_offset=101, position=None, size_bytes=None, batches=1, kept_in=None
    ).describe() == ("1 offset (100) missing in 00000000000000000100.log (1 whole batch): zeros")


def test_the_same_loss_is_noted_once_until_it_is_acknowledged(any_world: World) -> None:
    fs, root = any_world.fs, any_world.root
    assert losses.note(fs, root, [LOSS, LOSS]) == [LOSS]
    assert losses.note(fs, root, [replace(LOSS, found_ms=9_000, reason="other words")]) == []
    assert losses.acknowledge(fs, root, 7_000) == [LOSS]
    assert not losses.read(fs, root).open
    assert losses.note(fs, root, [LOSS]) == [LOSS]  # the end of a log can be lost again
    assert losses.read(fs, root).losses == [replace(LOSS, acknowledged_ms=7_000), LOSS]


def test_acknowledging_leaves_earlier_acknowledgements_as_they_are(any_world: World) -> None:
    fs, root = any_world.fs, any_world.root
    later = replace(LOSS, first_offset=200, end_offset=300)
    losses.note(fs, root, [LOSS])
    losses.acknowledge(fs, root, 1)
    losses.note(fs, root, [later])
    assert losses.acknowledge(fs, root, 2) == [later]
    assert [loss.acknowledged_ms for loss in losses.read(fs, root).losses] == [1, 2]
    assert losses.acknowledge(fs, root, 3) == []


@given(st.lists(a_loss(), max_size=4))
@settings(max_examples=50, deadline=None)
def test_every_loss_is_read_as_it_was_written(written: list[Loss]) -> None:
    disk = SimulatedDisk()
    disk.make_dir("/p")
    noted = losses.note(disk, "/p", written)
    assert losses.read(disk, "/p") == losses.Record(noted, [])


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_damage_costs_the_damaged_lines_and_is_seen(data: st.DataObject) -> None:
    disk = SimulatedDisk()
    disk.make_dir("/p")
    written = [replace(LOSS, first_offset=number, end_offset=200) for number in range(3)]
    losses.note(disk, "/p", written)
    raw = bytearray(disk.read_bytes(f"/p/{losses.FILE}"))
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        del raw[at:]
    else:
        raw[at:] = bytes(len(raw) - at)
    _overwrite(disk, bytes(raw))
    record = losses.read(disk, "/p")
    rest = bytes(raw).rpartition(b"}\n")[2]
    assert record.losses == written[: bytes(raw).count(b"}\n") + rest.endswith(b"}")]
    assert len(record.unreadable) == bool(rest and not rest.endswith(b"}"))

    # What could not be read stays where it is until somebody has acknowledged it.
    losses.note(disk, "/p", [replace(LOSS, first_offset=150)])
    assert losses.read(disk, "/p").unreadable == record.unreadable
    losses.acknowledge(disk, "/p", 1)
    assert not losses.read(disk, "/p").unreadable


def test_a_power_cut_leaves_the_old_record_or_the_new_one() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/p")
    losses.note(disk, "/p", [LOSS])
    history = disk.record()
    later = replace(LOSS, first_offset=120)
    losses.note(disk, "/p", [later])
    seen = {len(losses.read(state.disk(), "/p").losses) for state in crash_states(history, seed=1)}
    assert seen == {1, 2}
    done = crash_states(history, seed=1, points=[len(history.operations)])
    assert all(losses.read(state.disk(), "/p").losses == [LOSS, later] for state in done)


def test_what_is_on_record_leaves_the_rest_of_a_range() -> None:
    known = [replace(LOSS, first_offset=10, end_offset=20), replace(LOSS, first_offset=30, end_offset=40)]
    assert losses.uncovered(0, 50, known) == [(0, 10), (20, 30), (40, 50)]
    assert losses.uncovered(12, 18, known) == []
    assert losses.uncovered(15, 35, known) == [(20, 30)]
    assert losses.uncovered(40, 40, known) == []
    assert losses.uncovered(5, 6, []) == [(5, 6)]


def _overwrite(disk: SimulatedDisk, data: bytes) -> None:
    file = disk.open(f"/p/{losses.FILE}", write=True)
    file.truncate(0)
    file.pwrite(data, 0)
    file.close()
