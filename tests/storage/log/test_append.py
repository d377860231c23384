"""Appending to a log as leader and as follower: offsets, epochs, producers, transactions, failures."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from ottla.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogDirOfflineError,
    OutOfOrderSequenceError,
    StorageError,
    TransactionCoordinatorFencedError,
    UnexpectedAppendOffsetError,
)
from ottla.records.batch import parse_header
from ottla.records.builder import build_batch
from ottla.storage.log.log import AppendInfo
from ottla.storage.log.validation import Origin
from ottla.testing.runtime import START_MS
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.world import World, append, batch, end_transaction, marker, offsets, read_all

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


def test_batches_get_offsets_one_after_another(any_world: World) -> None:
    log = any_world.load()
    assert append(log, 3) == AppendInfo(0, 2, START_MS + 2, -1, len(batch(3)))
    assert append(log, 2).first_offset == 3
    assert log.end_offset == 5
    assert [(record.offset, record.value) for record in read_all(log)] == [(n, b"value") for n in range(5)]
    assert log.size_bytes == len(batch(3)) + len(batch(2))


def test_the_batch_on_disk_has_its_offset_and_epoch_and_the_rest_as_sent(world: World) -> None:
    log = world.load()
    append(log, 3, epoch=4)
    sent = batch(2)
    log.append_as_leader(sent, 5)
    on_disk = world.read(f"{0:020d}.log")[len(batch(3)) :]
    header = parse_header(on_disk)
    assert (header.base_offset, header.leader_epoch) == (3, 5)
    assert on_disk[16:] == sent[16:]


def test_a_writable_buffer_is_patched_where_it_lies(world: World) -> None:
    log = world.load()
    append(log, 3)
    sent = bytearray(batch(2))
    log.append_as_leader(memoryview(sent), 5)
    assert parse_header(sent).base_offset == 3


def test_an_epoch_is_noted_where_it_begins(world: World) -> None:
    log = world.load()
    for epoch in (1, 1, 4):
        append(log, 2, epoch=epoch)
    assert log.epochs.entries == [(1, 0), (4, 4)]


# -- idempotence


def test_a_duplicate_gets_its_first_offsets_and_is_not_written_again(any_world: World) -> None:
    log = any_world.load()
    append(log)
    first = append(log, 3, base_sequence=0, **PRODUCER)
    size = log.size_bytes
    again = append(log, 3, base_sequence=0, **PRODUCER)
    time_ms = first.max_timestamp  # is told as the append time too, as Kafka does
    assert again == AppendInfo(first.first_offset, first.last_offset, time_ms, time_ms, 0, True)
    assert (log.end_offset, log.size_bytes) == (4, size)


def test_only_the_last_five_batches_are_known(world: World) -> None:
    log = world.load()
    for sequence in range(6):
        append(log, base_sequence=sequence, **PRODUCER)
    assert [append(log, base_sequence=n, **PRODUCER).first_offset for n in range(1, 6)] == [1, 2, 3, 4, 5]
    with pytest.raises(OutOfOrderSequenceError) as refused:
        append(log, base_sequence=0, **PRODUCER)
    assert refused.value.code == 45


def test_a_duplicate_under_log_append_time_gets_its_first_time(world: World) -> None:
    log = world.load(message_timestamp_type="LogAppendTime")
    append(log, base_sequence=0, **PRODUCER)
    world.runtime.advance(500)
    assert append(log, base_sequence=0, **PRODUCER).log_append_time == START_MS


def test_gaps_and_old_epochs_are_refused_and_change_nothing(world: World) -> None:
    log = world.load()
    append(log, 2, base_sequence=0, producer_id=7, producer_epoch=3)
    with pytest.raises(OutOfOrderSequenceError):
        append(log, base_sequence=3, producer_id=7, producer_epoch=3)
    with pytest.raises(InvalidProducerEpochError) as refused:
        append(log, base_sequence=0, producer_id=7, producer_epoch=2)
    assert refused.value.code == 47
    assert log.end_offset == 2
    assert append(log, base_sequence=2, producer_id=7, producer_epoch=3).first_offset == 2


def test_sequences_wrap(world: World) -> None:
    log = world.load()
    append(log, 3, base_sequence=2**31 - 3, **PRODUCER)
    assert append(log, base_sequence=0, **PRODUCER).first_offset == 3
    assert append(log, 3, base_sequence=2**31 - 3, **PRODUCER).is_duplicate


def test_a_reloaded_log_knows_the_last_batches_of_a_producer(any_world: World) -> None:
    log = any_world.load()
    for sequence in range(3):
        append(log, base_sequence=sequence, **PRODUCER)
    log.close()
    log = any_world.load(clean=True)
    assert append(log, base_sequence=2, **PRODUCER).first_offset == 2
    assert append(log, base_sequence=1, **PRODUCER).first_offset == 1
    assert append(log, base_sequence=3, **PRODUCER).first_offset == 3


def test_a_killed_log_finds_the_last_five_batches_again(any_world: World) -> None:
    log = any_world.load()
    for sequence in range(9):
        append(log, base_sequence=sequence, **PRODUCER)
    log.abandon()
    log = any_world.load()
    assert append(log, base_sequence=8, **PRODUCER).is_duplicate


def test_an_expired_producer_may_begin_anew(world: World) -> None:
    log = world.load()
    append(log, base_sequence=0, **PRODUCER)
    log.producers.remove_expired(START_MS + 86_400_000)
    assert append(log, base_sequence=50, **PRODUCER).first_offset == 1


def test_a_producer_that_expired_while_the_broker_was_down_is_forgotten(world: World) -> None:
    log = world.load()
    append(log, base_sequence=0, **PRODUCER)
    log.close()
    world.runtime.advance(86_400_000)
    assert world.load(clean=True).producers.producers == {}


# -- transactions


def test_an_abort_is_indexed_and_a_commit_is_not(any_world: World) -> None:
    log = any_world.load()
    append(log, 2, base_sequence=0, transactional=True, **PRODUCER)
    append(log, 1)
    end_transaction(log, 7)
    append(log, 2, base_sequence=2, transactional=True, **PRODUCER)
    end_transaction(log, 7, commit=True)
    assert log.segments.active.txn_index.entries == [(7, 0, 3, 4)]
    assert log.first_unstable_offset == 0
    log.raise_high_watermark(7)
    assert log.last_stable_offset == 7


def test_a_coordinators_batch_of_an_old_epoch_is_refused(world: World) -> None:
    log = world.load()
    append(log, origin=Origin.COORDINATOR, transactional=True, producer_id=7, producer_epoch=4)
    with pytest.raises(InvalidProducerEpochError):
        append(log, origin=Origin.COORDINATOR, transactional=True, producer_id=7, producer_epoch=3)
    assert (
        append(
            log, origin=Origin.COORDINATOR, transactional=True, producer_id=7, producer_epoch=4
        ).first_offset
        == 1
    )


def test_a_coordinators_batch_has_no_sequence_to_keep(world: World) -> None:
    log = world.load()
    append(log, base_sequence=5, transactional=True, **PRODUCER)
    append(log, origin=Origin.COORDINATOR, transactional=True, **PRODUCER)
    assert append(log, base_sequence=6, transactional=True, **PRODUCER).first_offset == 2


def test_markers_of_zombies_are_refused(world: World) -> None:
    log = world.load()
    append(log, base_sequence=0, transactional=True, producer_id=7, producer_epoch=2)
    end_transaction(log, 7, 2, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError) as fenced:
        end_transaction(log, 7, 2, coordinator_epoch=4)
    assert fenced.value.code == 52
    with pytest.raises(InvalidProducerEpochError):
        end_transaction(log, 7, 1, coordinator_epoch=5)
    assert log.end_offset == 2


def test_a_plain_batch_of_a_producer_in_a_transaction_is_refused(world: World) -> None:
    log = world.load()
    append(log, base_sequence=0, transactional=True, **PRODUCER)
    with pytest.raises(InvalidTxnStateError) as refused:
        append(log, base_sequence=1, **PRODUCER)
    assert refused.value.code == 48


def test_the_last_stable_offset_waits_for_the_marker_to_be_replicated(world: World) -> None:
    log = world.load()
    append(log)
    append(log, base_sequence=0, transactional=True, **PRODUCER)
    append(log)
    log.raise_high_watermark(3)
    assert log.last_stable_offset == 1
    end_transaction(log, 7, commit=True)
    assert log.last_stable_offset == 1
    log.raise_high_watermark(4)
    assert log.last_stable_offset == 4


def test_a_failed_write_of_an_abort_takes_the_directory_offline(world: World) -> None:
    log = world.load()
    append(log, base_sequence=0, transactional=True, **PRODUCER)
    log.abandon()
    inner = world.fs
    point = Point("pwrite", "*.txnindex", "ottla.storage.indexes.txn_index.write")
    world.fs = world.dir.fs = FaultyFileSystem(inner, Fault(point))
    log = world.load()
    with pytest.raises(StorageError):
        end_transaction(log, 7)
    assert world.dir.offline
    log.abandon()
    log = World(inner, world.root, world.runtime).load()
    assert log.segments.active.txn_index.entries == [(7, 0, 1, 2)]


@pytest.mark.parametrize("control", [True, False])
def test_an_empty_batch_of_a_cleaner_still_tells_the_producers_sequence(world: World, control: bool) -> None:
    log = world.load()
    empty = bytes(
        build_batch(
            [],
            base_offset=0,
            last_offset_delta=2,
            log_append_time=START_MS,
            base_sequence=5,
            control=control,
            transactional=control,
            **PRODUCER,
        )
    )
    log.append_as_follower(empty)
    assert log.end_offset == 3
    assert (7 in log.producers.producers) == (not control)  # without its marker a control batch says nothing
    if not control:
        assert log.producers.producers[7].last_sequence == 7
    log.abandon()
    again = world.load()
    assert (again.end_offset, set(again.producers.producers)) == (3, set(log.producers.producers))


# -- followers


def test_a_follower_keeps_offsets_epochs_and_producers(any_world: World) -> None:
    log = any_world.load(index_interval_bytes=0)
    fetched = (
        batch(2, base_offset=5, leader_epoch=1, base_sequence=3, **PRODUCER)
        + batch(1, base_offset=9, leader_epoch=1)
        + batch(2, base_offset=20, leader_epoch=4, base_sequence=50, **PRODUCER)
    )
    info = log.append_as_follower(fetched)
    assert info == AppendInfo(5, 21, START_MS + 1, -1, len(fetched))
    assert log.end_offset == 22
    assert log.epochs.entries == [(1, 5), (4, 20)]
    assert log.producers.producers[7].last_sequence == 51
    assert offsets(log) == [5, 6, 9, 20, 21]
    assert log.segments.active.offset_index.entries == 2  # considered at each batch, not at each append


def test_a_follower_writes_the_same_bytes_as_its_leader(any_world: World) -> None:
    leader = any_world.load(index_interval_bytes=100)
    append(leader, 3, epoch=2)
    append(leader, 2, base_sequence=0, transactional=True, **PRODUCER, epoch=2)
    append(leader, 2, timestamp=START_MS + 99, epoch=3)
    end_transaction(leader, 7)
    other = World(any_world.fs, f"{any_world.root}/follower", any_world.runtime)
    follower = other.load(index_interval_bytes=100)
    follower.append_as_follower(any_world.read(f"{0:020d}.log"))
    leader.close()
    follower.close()
    assert other.names() == any_world.names()
    for name in any_world.names():
        assert other.read(name) == any_world.read(name), name


def test_a_cut_batch_at_the_end_is_left_for_the_next_fetch(world: World) -> None:
    log = world.load()
    first, second = batch(2, base_offset=0, leader_epoch=0), batch(2, base_offset=2, leader_epoch=0)
    info = log.append_as_follower(first + second[:-1])
    assert info is not None
    assert info.size_bytes == len(first)
    assert log.end_offset == 2
    assert log.append_as_follower(second[:-1]) is None
    assert log.append_as_follower(b"") is None
    assert log.append_as_follower(second) is not None


@pytest.mark.parametrize(
    "fetched",
    [
        batch(2, base_offset=3),
        batch(2, base_offset=9) + batch(2, base_offset=10),
        batch(2, base_offset=9) + batch(2, base_offset=5),
    ],
    ids=["before the end", "overlap", "falling"],
)
def test_offsets_that_do_not_grow_are_refused_and_nothing_is_written(world: World, fetched: bytes) -> None:
    log = world.load()
    append(log, 4)
    size = log.size_bytes
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(fetched)
    assert (log.end_offset, log.size_bytes) == (4, size)


@pytest.mark.parametrize("at", [17, 30, 61, 70])
def test_a_corrupt_fetched_batch_is_never_appended(world: World, at: int) -> None:
    log = world.load()
    good, bad = batch(base_offset=0), bytearray(batch(base_offset=1))
    bad[at] ^= 1
    with pytest.raises(CorruptRecordError):
        log.append_as_follower(good + bytes(bad))
    assert log.end_offset == 0


def test_a_followers_markers_end_transactions(world: World) -> None:
    log = world.load()
    log.append_as_follower(batch(2, base_offset=0, base_sequence=0, transactional=True, **PRODUCER))
    assert log.first_unstable_offset == 0
    log.append_as_follower(marker(7, base_offset=2))
    assert log.segments.active.txn_index.entries == [(7, 0, 2, 3)]
    log.raise_high_watermark(3)
    assert log.first_unstable_offset is None


# -- failures


@pytest.mark.parametrize("written", [0, 1, 60])
def test_a_failed_write_takes_the_directory_offline_and_nothing_of_it_is_kept(
    world: World, written: int
) -> None:
    log = world.load()
    append(log, 2)
    log.flush()
    log.abandon()
    inner = world.fs
    point = Point("pwrite", "*.log", "ottla.storage.log.segment._write")
    world.fs = world.dir.fs = FaultyFileSystem(inner, Fault(point, 0, errno.EIO, written))
    log = world.load()
    with pytest.raises(StorageError) as failed:
        append(log, 2, base_sequence=0, **PRODUCER)
    assert failed.value.code == 56
    assert world.dir.offline
    assert log.end_offset == 2
    assert log.producers.producers == {}
    with pytest.raises(LogDirOfflineError):
        append(log)
    with pytest.raises(LogDirOfflineError):
        log.append_as_follower(batch(base_offset=2))
    with pytest.raises(LogDirOfflineError):
        read_all(log)
    again = World(inner, world.root, world.runtime)
    assert offsets(again.load()) == [0, 1]


def test_a_failed_write_of_an_epoch_takes_the_directory_offline(world: World) -> None:
    point = Point("rename", "leader-epoch-checkpoint.tmp", "ottla.storage.checkpoint.put_in_place")
    world.fs = world.dir.fs = FaultyFileSystem(world.fs, Fault(point))
    log = world.load()
    with pytest.raises(StorageError):
        append(log, epoch=3)
    assert world.dir.offline
    assert log.end_offset == 0
