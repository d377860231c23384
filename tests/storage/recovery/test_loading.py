"""Opening a partition directory after a clean stop, after a kill, and with damage of every kind."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from ottla.errors import OutOfOrderSequenceError, StorageError
from ottla.storage.layout import segment_file
from ottla.storage.log import producer_replay
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment
from ottla.storage.log_dir import LogDir
from ottla.storage.producers import snapshots
from ottla.testing.runtime import START_MS
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.world import World, append, batch, end_transaction, offsets, read_all

LOG = segment_file(0, ".log")
INDEX = segment_file(0, ".index")
TIME_INDEX = segment_file(0, ".timeindex")
DENSE: dict[str, Any] = {"index_interval_bytes": 0}


def written(world: World, *, close: bool = False, rolls: tuple[int, ...] = (), batches: int = 6) -> Log:
    """A log with `batches` batches of 2 records, rolled before the given ones, then stopped or killed."""
    log = world.load(**DENSE)
    for number in range(batches):
        if number in rolls:
            log.roll()
        append(
            log,
            2,
            timestamp=START_MS + 10 * number,
            producer_id=1,
            producer_epoch=0,
            base_sequence=2 * number,
        )
    if close:
        log.close()
    else:
        log.abandon()
    return log


def index_of(segment: Segment) -> list[tuple[int, int]]:
    index = segment.offset_index
    return [index.entry(slot) for slot in range(index.entries)]


def times_of(segment: Segment) -> list[tuple[int, int]]:
    index = segment.time_index
    return [index.entry(slot) for slot in range(index.entries)]


# -- clean stops


def test_a_new_directory_is_an_empty_log(any_world: World) -> None:
    log = any_world.load()
    assert (log.start_offset, log.end_offset, log.recovery_point, log.segments.bases) == (0, 0, 0, [0])
    log.close()
    assert any_world.names(".log") == [LOG]


def test_after_a_clean_stop_nothing_is_read_but_the_tail(any_world: World) -> None:
    written(any_world, close=True, rolls=(2, 4))
    log = any_world.load(clean=True, **DENSE)
    assert (log.end_offset, log.recovery_point) == (12, 12)
    assert offsets(log) == list(range(12))
    assert log.producers.producers[1].last_sequence == 11


def test_a_clean_stop_leaves_no_preallocated_index(any_world: World) -> None:
    written(any_world, close=True)
    assert len(any_world.read(INDEX)) == 5 * 8
    assert len(any_world.read(TIME_INDEX)) == 5 * 12  # the last entry is the largest timestamp already


def test_a_stopped_log_goes_on_where_it_ended(any_world: World) -> None:
    written(any_world, close=True)
    log = any_world.load(clean=True, **DENSE)
    assert append(log, 2, timestamp=START_MS + 99).first_offset == 12
    assert index_of(log.segments.active)[-1][0] == 11  # a reloaded segment counts the interval anew
    append(log)
    assert index_of(log.segments.active)[-1][0] == 14
    assert times_of(log.segments.active)[-1] == (START_MS + 100, 13)


def test_below_the_recovery_point_records_are_not_checked_again(world: World) -> None:
    written(world, rolls=(3,))
    data = bytearray(world.read(LOG))
    data[-1] ^= 1
    world.write(LOG, bytes(data))
    log = world.load(recovery_point=6, **DENSE)
    assert log.end_offset == 12
    log.abandon()
    assert (
        world.load(recovery_point=5, **DENSE).end_offset == 4
    )  # checked: cut there, and what follows dropped


# -- tails


@pytest.mark.parametrize("lost", [1, 20, 60])
def test_a_torn_tail_is_cut_at_the_last_whole_batch(any_world: World, lost: int) -> None:
    written(any_world)
    any_world.write(LOG, any_world.read(LOG)[:-lost])
    log = any_world.load(**DENSE)
    assert offsets(log) == list(range(10))
    assert any_world.fs.size(f"{any_world.path}/{LOG}") == log.size_bytes
    assert append(log, 2, producer_id=1, producer_epoch=0, base_sequence=10).first_offset == 10


@pytest.mark.parametrize("tail", [b"\0" * 5, b"\0" * 10_000, b"\xff" * 100, b"garbage" * 50, batch(2)[:40]])
def test_a_zero_or_garbage_tail_is_cut(any_world: World, tail: bytes) -> None:
    written(any_world)
    any_world.add(LOG, tail)
    log = any_world.load(**DENSE)
    assert offsets(log) == list(range(12))
    assert any_world.fs.size(f"{any_world.path}/{LOG}") == log.size_bytes
    append(log)
    assert offsets(log) == list(range(13))


def test_old_batches_behind_the_end_are_not_taken_for_new_ones(world: World) -> None:
    written(world)
    world.add(LOG, batch(2, base_offset=4))  # its offsets do not follow
    assert offsets(world.load()) == list(range(12))


@pytest.mark.parametrize("bad", range(6))
def test_a_corrupt_batch_ends_the_log_and_later_segments_go(any_world: World, bad: int) -> None:
    written(any_world, rolls=(3,))
    base = 0 if bad < 3 else 6
    name = segment_file(base, ".log")
    data = bytearray(any_world.read(name))
    size = len(data) // 3
    data[(bad % 3) * size + 70] ^= 1
    any_world.write(name, bytes(data))
    log = any_world.load(**DENSE)
    assert offsets(log) == list(range(2 * bad))
    assert log.segments.bases == ([0] if bad < 3 else [0, 6])
    assert all(offset <= log.end_offset for offset in snapshots.offsets(any_world.fs, any_world.path))
    if bad:
        assert log.producers.producers[1].last_sequence == 2 * bad - 1
    assert append(log).first_offset == 2 * bad


def test_a_preallocated_tail_is_trimmed(any_world: World) -> None:
    log = any_world.load(preallocate=True, internal_segment_bytes=100_000)
    append(log, 3)
    log.abandon()
    assert any_world.fs.size(f"{any_world.path}/{LOG}") == 100_000
    log = any_world.load(preallocate=True, internal_segment_bytes=100_000)
    assert offsets(log) == [0, 1, 2]
    append(log)
    log.close()
    assert any_world.fs.size(f"{any_world.path}/{LOG}") == log.size_bytes


def test_an_empty_active_segment_is_kept(any_world: World) -> None:
    log = written(any_world, rolls=(3,))
    again = any_world.load(**DENSE)
    again.roll()
    again.abandon()
    again = any_world.load(**DENSE)
    assert again.segments.bases == [0, 6, 12]
    assert again.end_offset == log.end_offset == 12
    again.close()
    assert any_world.load(clean=True).end_offset == 12


@pytest.mark.parametrize(("may_have_gaps", "end"), [(False, 4), (True, 12)])
def test_a_gap_before_an_unflushed_segment_is_damage_unless_it_may_be(
    world: World, may_have_gaps: bool, end: int
) -> None:
    written(world, rolls=(3,))
    world.write(LOG, world.read(LOG)[: len(batch(2)) * 2])
    assert world.load(may_have_gaps=may_have_gaps).end_offset == end


# -- indexes


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("name", [INDEX, TIME_INDEX])
@pytest.mark.parametrize("damage", ["missing", "short", "ones", "zeros", "garbage", "empty"])
def test_a_bad_index_is_rebuilt(any_world: World, clean: bool, name: str, damage: str) -> None:
    written(any_world, close=True, rolls=(3,))
    good = {kept: any_world.read(kept) for kept in (INDEX, TIME_INDEX)}
    if damage == "missing":
        any_world.fs.unlink(f"{any_world.path}/{name}")
    else:
        size = len(good[name])
        contents = {"short": good[name][:-3], "ones": b"\xff" * size, "zeros": bytes(size), "empty": b""}
        any_world.write(name, contents.get(damage, b"\x7fgarbage" * 3))
    log = any_world.load(clean=clean, recovery_point=12, **DENSE)
    assert offsets(log) == list(range(12))
    if damage == "empty":  # cannot be told from an index without entries; reads are slower, nothing else
        return
    log.close()
    assert {kept: any_world.read(kept) for kept in (INDEX, TIME_INDEX)} == good


def test_an_index_that_leads_past_the_end_is_rebuilt(any_world: World) -> None:
    written(any_world, close=True)
    any_world.write(LOG, any_world.read(LOG)[: 3 * len(batch(2))])
    log = any_world.load(clean=True, **DENSE)
    assert offsets(log) == list(range(6))
    assert append(log).first_offset == 6


def test_an_index_without_a_log_is_removed(any_world: World) -> None:
    written(any_world, close=True)
    for suffix in (".index", ".timeindex", ".txnindex"):
        any_world.write(segment_file(77, suffix), bytes(24))
    log = any_world.load(clean=True)
    assert log.segments.bases == [0]
    assert [name for name in any_world.names() if name.startswith(f"{77:020d}")] == []


def test_rebuilt_indexes_are_those_that_were_written(any_world: World) -> None:
    log = any_world.load(index_interval_bytes=150)
    for number in range(40):
        append(log, 1 + number % 3, timestamp=START_MS + (number * 37) % 100, value=b"v" * (number % 50))
        if number % 15 == 14:
            log.roll()
    log.close()
    written_files = {name: any_world.read(name) for name in any_world.names("index")}
    for name in written_files:
        any_world.fs.unlink(f"{any_world.path}/{name}")
    any_world.load(index_interval_bytes=150).close()
    assert {name: any_world.read(name) for name in any_world.names("index")} == written_files


def test_the_index_of_aborted_transactions_is_rebuilt(any_world: World) -> None:
    log = any_world.load()
    append(log, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll()
    append(log, producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 1)  # begun in the segment before
    end_transaction(log, 2, commit=True)
    append(log, producer_id=1, producer_epoch=0, base_sequence=1, transactional=True)
    log.close()
    name = segment_file(1, ".txnindex")
    good = any_world.read(name)
    assert len(good) == 34
    any_world.write(name, good[:20])
    log = any_world.load(clean=True)
    assert log.first_unstable_offset == 4
    log.abandon()
    assert any_world.read(name) == good
    any_world.fs.unlink(f"{any_world.path}/{name}")
    any_world.load().abandon()
    assert any_world.read(name) == good


# -- producer snapshots


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage"])
@pytest.mark.parametrize("clean", [True, False])
def test_producer_state_is_rebuilt_without_its_snapshots(any_world: World, damage: str, clean: bool) -> None:
    written(any_world, close=True, rolls=(2, 4))
    for name in any_world.names(".snapshot"):
        if damage == "missing":
            any_world.fs.unlink(f"{any_world.path}/{name}")
        else:
            any_world.write(
                name, {"empty": b"", "cut": any_world.read(name)[:-1]}.get(damage, b"garbage" * 9)
            )
    log = any_world.load(clean=clean)
    assert log.producers.producers[1].last_sequence == 11
    assert append(log, 2, producer_id=1, producer_epoch=0, base_sequence=10).is_duplicate


@pytest.mark.parametrize("rolls", [(), (2,), (4,), (5,)])
@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("recall_bytes", [500, 1 << 20])  # 500 are enough for four of these batches
def test_after_a_stop_batches_that_the_snapshot_does_not_have_are_found_in_the_log(
    any_world: World, rolls: tuple[int, ...], others: int, recall_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_replay, "RECALL_BYTES", recall_bytes)
    written(any_world, rolls=rolls, close=True)
    log = any_world.load(clean=True, **DENSE)
    for number in range(others):  # come first
        append(log, 2, producer_id=2, producer_epoch=0, base_sequence=2 * number)
    for number in (1, 2, 3, 4, 5, 2):
        again = append(log, 2, producer_id=1, producer_epoch=0, base_sequence=2 * number)
        assert (again.is_duplicate, again.first_offset) == (True, 2 * number)
    for sequence in (0, 3, 14):
        with pytest.raises(OutOfOrderSequenceError):
            append(log, 2, producer_id=1, producer_epoch=0, base_sequence=sequence)
    assert not append(log, 2, producer_id=1, producer_epoch=0, base_sequence=12).is_duplicate
    assert offsets(log) == list(range(14 + 2 * others))


def test_batches_of_an_earlier_epoch_are_not_looked_for(any_world: World) -> None:
    written(any_world)
    log = any_world.load(**DENSE)
    append(log, 2, producer_id=1, producer_epoch=1, base_sequence=0)
    log.close()
    log = any_world.load(clean=True, **DENSE)
    with pytest.raises(OutOfOrderSequenceError):
        append(log, 2, producer_id=1, producer_epoch=1, base_sequence=8)


@pytest.mark.parametrize("suffix", [".log", ".index"])
def test_a_disk_that_fails_while_batches_are_looked_for_goes_offline(world: World, suffix: str) -> None:
    written(world, close=True)
    faulty = FaultyFileSystem(world.fs)
    world.dir = LogDir(faulty, world.root)
    log = world.load(clean=True, **DENSE)
    before = faulty.seen.copy()
    append(log, 2, producer_id=1, producer_epoch=0, base_sequence=2)
    new = faulty.seen - before
    point = next(point for point in new if point.kind == "read" and point.target.endswith(suffix))
    log.close()
    log = world.load(clean=True, **DENSE)
    faulty.fault = Fault(point, faulty.seen[point], errno.EIO)
    with pytest.raises(StorageError):
        append(log, 2, producer_id=1, producer_epoch=0, base_sequence=2)
    assert world.dir.offline


@pytest.mark.parametrize("rolls", [(), (4,), (2, 3, 5)])
def test_after_a_kill_five_batches_of_a_producer_are_known(any_world: World, rolls: tuple[int, ...]) -> None:
    """So many may have been under way when the broker died; the client sends them all again."""
    written(any_world, rolls=rolls)
    log = any_world.load(**DENSE)
    for number in range(1, 6):
        again = append(log, 2, producer_id=1, producer_epoch=0, base_sequence=2 * number)
        assert (again.is_duplicate, again.first_offset) == (True, 2 * number)
    assert offsets(log) == list(range(12))


def test_stray_snapshots_are_removed_and_those_of_segments_kept(any_world: World) -> None:
    written(any_world, close=True, rolls=(2, 4))
    for offset in (1, 5, 11):
        any_world.write(segment_file(offset, ".snapshot"), any_world.read(segment_file(4, ".snapshot")))
    any_world.load(clean=True).abandon()
    assert snapshots.offsets(any_world.fs, any_world.path) == [4, 8, 12]


def test_a_snapshot_of_records_that_are_gone_is_never_used(any_world: World) -> None:
    written(any_world, rolls=(3,))
    last = segment_file(6, ".log")
    any_world.write(last, any_world.read(last)[:-1])
    any_world.write(segment_file(500, ".snapshot"), any_world.read(segment_file(6, ".snapshot")))
    log = any_world.load()
    assert log.end_offset == 10
    assert max(snapshots.offsets(any_world.fs, any_world.path)) <= 10


def test_expired_producers_are_not_brought_back(world: World) -> None:
    written(world)
    world.runtime.advance(90_000_000)
    assert world.load().producers.producers == {}


# -- epochs, log start


def test_epochs_beyond_the_end_are_forgotten(any_world: World) -> None:
    written(any_world)
    any_world.write("leader-epoch-checkpoint", b"0\n3\n0 0\n4 8\n9 50\n")
    log = any_world.load()
    assert log.epochs.entries == [(0, 0), (4, 8)]


def test_epochs_are_found_in_the_batches_again(any_world: World) -> None:
    log = any_world.load()
    for epoch in (0, 0, 3, 3, 7):
        append(log, 2, epoch=epoch)
    log.roll()
    append(log, 2, epoch=8)
    log.abandon()
    any_world.fs.unlink(f"{any_world.path}/leader-epoch-checkpoint")
    assert any_world.load().epochs.entries == [(0, 0), (3, 4), (7, 8), (8, 10)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_epoch_file_is_rebuilt_from_all_batches(any_world: World, clean: bool) -> None:
    log = any_world.load()
    append(log, 2, epoch=2)
    log.roll()
    append(log, 2, epoch=5)
    log.close()
    any_world.write("leader-epoch-checkpoint", b"0\n9\nnonsense")
    assert any_world.load(clean=clean, recovery_point=4).epochs.entries == [(2, 0), (5, 2)]


@pytest.mark.parametrize("start", [3, 6, 7, 12])
def test_the_log_start_of_the_checkpoint_holds(any_world: World, start: int) -> None:
    written(any_world, rolls=(3,))
    log = any_world.load(start_offset=start)
    assert log.start_offset == start
    assert offsets(log) == list(range(start, 12))
    assert all(entry[1] >= start for entry in log.epochs.entries)


def test_a_first_segment_above_the_log_start_of_the_checkpoint_wins(world: World) -> None:
    written(world, close=True, rolls=(3,))
    for suffix in (".log", ".index", ".timeindex"):
        world.fs.unlink(f"{world.path}/{segment_file(0, suffix)}")
    log = world.load(clean=True, start_offset=2)
    assert (log.start_offset, offsets(log)) == (6, list(range(6, 12)))


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_ends_below_its_start_begins_anew_there(any_world: World, clean: bool) -> None:
    written(any_world, close=True, rolls=(3,))
    log = any_world.load(clean=clean, start_offset=50)
    assert (log.start_offset, log.end_offset, log.segments.bases) == (50, 50, [50])
    assert log.epochs.entries == []
    assert log.producers.producers == {}
    assert append(log, epoch=1).first_offset == 50
    log.abandon()
    log = any_world.load(start_offset=50)
    assert offsets(log) == [50]
    assert any_world.names(".log") == [segment_file(50, ".log")]


@pytest.mark.parametrize("recovery_point", [0, 5, 12, 99])
def test_after_recovery_everything_is_flushed(any_world: World, recovery_point: int) -> None:
    written(any_world, rolls=(3,))
    assert any_world.load(recovery_point=recovery_point).recovery_point == 12


def test_partition_metadata_is_read_and_a_damaged_one_costs_only_the_id(world: World) -> None:
    written(world)
    world.write("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    topic_id = world.load().topic_id
    assert topic_id is not None
    assert topic_id.int == 1
    world.write("partition.metadata", b"nonsense")
    log = world.load()
    assert log.topic_id is None
    assert log.end_offset == 12


def test_values_survive_a_kill(any_world: World) -> None:
    log = any_world.load(internal_segment_bytes=2000)
    values = [b"%d" % number * (number % 60) for number in range(200)]
    for value in values:
        append(log, value=value)
    log.abandon()
    assert [record.value for record in read_all(any_world.load(internal_segment_bytes=2000))] == values


@pytest.mark.parametrize("kind", ["list_dir", "truncate", "sync", "create", "read"])
def test_an_error_of_the_disk_while_loading_takes_the_directory_offline(world: World, kind: str) -> None:
    written(world)
    world.add(LOG, b"torn")
    inner = world.fs
    content = {name: world.read(name) for name in world.names()}
    dry = FaultyFileSystem(inner)
    world.fs = world.dir.fs = dry
    world.load().abandon()
    points: list[Point] = [point for point in dry.seen if point.kind == kind]
    assert points
    for point in points:
        for name in world.names():
            inner.unlink(f"{world.path}/{name}")
        faulty = World(FaultyFileSystem(inner, Fault(point, 0, errno.EIO)), world.root, world.runtime)
        for name, data in content.items():
            World(inner, world.root, world.runtime).write(name, data)
        with pytest.raises(StorageError):
            faulty.load()
        assert faulty.dir.offline, point
        assert offsets(World(inner, world.root, world.runtime).load()) == list(range(12)), point
