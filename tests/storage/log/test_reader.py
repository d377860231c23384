"""Reading a log: by offset and isolation, by time, and the aborted transactions that a reader must skip."""

from __future__ import annotations

import errno

import pytest

from ottla.errors import OffsetOutOfRangeError, StorageError
from ottla.records.compression.codec import Codec
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation, TimestampOffset
from ottla.testing.runtime import START_MS
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.storage.world import World, append, batch, end_transaction, records_in

SIZE = len(batch())


def found(
    log: Log,
    offset: int,
    max_bytes: int = 1 << 20,
    isolation: Isolation = Isolation.LOG_END,
    *,
    one: bool = True,
) -> list[int]:
    """Offsets of the whole batches in one read."""
    read = log_reader.read(log, offset, max_bytes, isolation=isolation, min_one_batch=one)
    data = read.slice.read() if read.slice else b""
    whole, at = 0, 0
    while at + 12 <= len(data):
        at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
        whole = at if at <= len(data) else whole
    return [record.offset for record in records_in(data[:whole])]


def test_every_offset_can_be_read_over_many_segments(any_world: World) -> None:
    log = any_world.load(internal_segment_bytes=5 * SIZE, index_interval_bytes=0)
    for _ in range(23):
        append(log)
    assert len(log.segments) == 5
    for offset in range(23):
        assert found(log, offset) == list(range(offset, min(offset // 5 * 5 + 5, 23)))
    assert found(log, 23) == []


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("offset", [-1, 4, 21, 1000])
def test_offsets_outside_the_log_are_out_of_range(world: World, isolation: Isolation, offset: int) -> None:
    log = world.load()
    append(log, 20)
    log.raise_high_watermark(10)
    log.raise_start_offset(5)
    with pytest.raises(OffsetOutOfRangeError) as refused:
        log_reader.read(log, offset, 100, isolation=isolation)
    assert refused.value.code == 1


def test_the_end_of_the_log_is_in_range_and_empty(world: World) -> None:
    log = world.load()
    assert found(log, 0) == []
    append(log, 3)
    assert found(log, 3) == []


def test_consumers_see_up_to_the_high_watermark(any_world: World) -> None:
    log = any_world.load(internal_segment_bytes=4 * SIZE, index_interval_bytes=0)
    for _ in range(10):
        append(log)
    for high_watermark in range(11):
        log.raise_high_watermark(high_watermark)
        seen: list[int] = []
        while len(seen) < high_watermark:
            seen += found(log, len(seen), isolation=Isolation.HIGH_WATERMARK)
        assert seen == list(range(high_watermark))
        assert found(log, high_watermark, isolation=Isolation.HIGH_WATERMARK) == []


def test_a_high_watermark_inside_a_batch_hides_the_batch(world: World) -> None:
    log = world.load()
    append(log, 5)
    append(log, 5)
    log.raise_high_watermark(7)
    assert found(log, 0, isolation=Isolation.HIGH_WATERMARK) == [0, 1, 2, 3, 4]
    assert found(log, 5, isolation=Isolation.HIGH_WATERMARK) == []


def test_a_read_between_high_watermark_and_end_is_empty_not_an_error(world: World) -> None:
    log = world.load()
    append(log, 3)
    append(log, 3)
    log.raise_high_watermark(3)
    assert found(log, 5, isolation=Isolation.HIGH_WATERMARK) == []


def test_a_read_says_all_offsets_of_the_log(world: World) -> None:
    log = world.load()
    append(log, 9)
    log.raise_high_watermark(6)
    log.raise_start_offset(2)
    read = log_reader.read(log, 3, 100)
    assert (read.start_offset, read.high_watermark, read.last_stable_offset) == (2, 6, 6)


def test_the_first_batch_comes_whole_whatever_the_limit(any_world: World) -> None:
    log = any_world.load()
    append(log, 3)
    append(log, 3)
    assert found(log, 0, 1) == [0, 1, 2]
    assert found(log, 4, 1) == [3, 4, 5]
    assert found(log, 0, 1, one=False) == []
    read = log_reader.read(log, 0, 10, isolation=Isolation.LOG_END, min_one_batch=False)
    assert read.slice is not None
    assert read.slice.size == 10


def test_gaps_between_batches_and_segments_are_skipped(any_world: World) -> None:
    log = any_world.load()
    log.append_as_follower(batch(2, base_offset=0, leader_epoch=0) + batch(2, base_offset=10, leader_epoch=0))
    log.roll()
    log.append_as_follower(batch(2, base_offset=20, leader_epoch=0))
    for offset in range(22):
        first = next(o for o in (0, 1, 10, 11, 20, 21) if o >= offset)
        assert first in found(log, offset)
        assert min(found(log, offset)) == first - first % 10
    log.raise_high_watermark(15)
    assert found(log, 12, isolation=Isolation.HIGH_WATERMARK) == []
    assert found(log, 5, isolation=Isolation.HIGH_WATERMARK) == [10, 11]


def test_a_log_start_inside_a_batch_gives_the_whole_batch(world: World) -> None:
    log = world.load()
    append(log, 10)
    log.raise_high_watermark(10)
    log.raise_start_offset(5)
    assert found(log, 5) == list(range(10))


def test_an_error_of_the_disk_takes_the_directory_offline(world: World) -> None:
    log = world.load()
    append(log, 3)
    log.close()
    point = Point("read", "*.log", "ottla.storage.log.locating._read")
    world.fs = world.dir.fs = FaultyFileSystem(world.fs, Fault(point, error=errno.EIO))
    log = world.load(clean=True)
    with pytest.raises(StorageError):
        log_reader.read(log, 0, 100, isolation=Isolation.LOG_END)
    assert world.dir.offline


# -- read_committed


def begin(log: Log, producer_id: int, sequence: int = 0, count: int = 1) -> int:
    return append(
        log, count, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
    ).first_offset


def committed(log: Log, offset: int, max_bytes: int = 1 << 20) -> tuple[list[int], list[tuple[int, int]]]:
    """Offsets up to the last stable one, and (producer, first offset) of aborted transactions."""
    read = log_reader.read(log, offset, max_bytes, isolation=Isolation.COMMITTED)
    return found(log, offset, max_bytes, Isolation.COMMITTED), [
        (t.producer_id, t.first_offset) for t in read.aborted
    ]


def test_read_committed_ends_at_the_first_open_transaction(any_world: World) -> None:
    log = any_world.load()
    append(log, 2)
    begin(log, 1)
    append(log)
    log.raise_high_watermark(4)
    assert committed(log, 0) == ([0, 1], [])
    assert committed(log, 2) == ([], [])
    end_transaction(log, 1, commit=True)
    log.raise_high_watermark(5)
    assert committed(log, 0) == ([0, 1, 2, 3, 4], [])


def test_aborted_transactions_are_listed_for_read_committed_only(any_world: World) -> None:
    log = any_world.load()
    begin(log, 1)
    begin(log, 2)
    end_transaction(log, 1)
    end_transaction(log, 2, commit=True)
    append(log)
    log.raise_high_watermark(5)
    assert committed(log, 0) == ([0, 1, 2, 3, 4], [(1, 0)])
    assert committed(log, 2)[1] == [(1, 0)]  # its marker lies in the range
    assert committed(log, 3)[1] == []
    assert log_reader.read(log, 0, 1 << 20).aborted == []


def test_a_transaction_begun_in_an_earlier_segment_is_found_in_its_markers_segment(any_world: World) -> None:
    log = any_world.load(internal_segment_bytes=4 * SIZE)
    begin(log, 1)
    for _ in range(10):
        append(log)
    end_transaction(log, 1)
    append(log)
    assert len(log.segments) > 2
    assert log.segments.first.txn_index.entries == []
    log.raise_high_watermark(log.end_offset)
    for offset in range(12):
        assert committed(log, offset)[1] == [(1, 0)]
    assert committed(log, 12)[1] == []
    log.abandon()
    again = any_world.load(internal_segment_bytes=4 * SIZE)
    again.raise_high_watermark(again.end_offset)
    assert committed(again, 0)[1] == [(1, 0)]
    again.close()
    assert log_reader.aborted_in(any_world.load(clean=True), 5, 13) == [(1, 0, 11, 12)]


def test_a_small_read_lists_only_what_overlaps_it(world: World) -> None:
    log = world.load(index_interval_bytes=0)
    for producer_id in range(1, 6):
        begin(log, producer_id)
        end_transaction(log, producer_id)
    append(log)
    log.raise_high_watermark(log.end_offset)
    assert committed(log, 0)[1] == [(producer_id, 2 * producer_id - 2) for producer_id in range(1, 6)]
    assert committed(log, 0, 2 * SIZE)[1] == [(1, 0)]


# -- by time


def test_the_first_record_at_or_after_a_time(any_world: World) -> None:
    log = any_world.load(internal_segment_bytes=600, index_interval_bytes=0)
    for number in range(20):
        append(log, 2, timestamp=START_MS + 10 * number, epoch=number // 10)
    assert len(log.segments) > 3
    for number in range(20):
        at = START_MS + 10 * number
        epoch = number // 10
        assert log_reader.find_timestamp(log, at) == TimestampOffset(at, 2 * number, epoch)
        assert log_reader.find_timestamp(log, at + 1) == TimestampOffset(at + 1, 2 * number + 1, epoch)
        if number < 19:
            assert log_reader.find_timestamp(log, at + 2) == TimestampOffset(
                at + 10, 2 * number + 2, (number + 1) // 10
            )
    assert log_reader.find_timestamp(log, START_MS + 192) is None
    assert log_reader.find_timestamp(log, 0) == TimestampOffset(START_MS, 0, 0)


@pytest.mark.parametrize("interval", [0, 150, 4096])
def test_times_out_of_order_give_the_earliest_offset(any_world: World, interval: int) -> None:
    times = [50, 20, 90, 10, 90, 30, 95, 5, 95, 60]
    log = any_world.load(index_interval_bytes=interval, internal_segment_bytes=4 * SIZE)
    for time in times:
        append(log, timestamp=START_MS + time)
    for asked in range(100):
        expected = next(((START_MS + t, o, 0) for o, t in enumerate(times) if t >= asked), None)
        assert log_reader.find_timestamp(log, START_MS + asked) == expected
    assert log_reader.max_timestamp(log) == (START_MS + 95, 6, 0)
    log.close()
    again = any_world.load(clean=True)
    assert log_reader.find_timestamp(again, START_MS + 91) == (START_MS + 95, 6, 0)
    assert log_reader.max_timestamp(again) == (START_MS + 95, 6, 0)


def test_records_below_the_log_start_are_not_found(world: World) -> None:
    log = world.load()
    append(log, 10)
    log.raise_high_watermark(10)
    log.raise_start_offset(4)
    assert log_reader.find_timestamp(log, START_MS) == TimestampOffset(START_MS + 4, 4, 0)


def test_an_empty_log_has_no_times(world: World) -> None:
    log = world.load()
    assert log_reader.find_timestamp(log, 0) is None
    assert log_reader.max_timestamp(log) is None


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_times_are_found_inside_compressed_batches(world: World, codec: Codec) -> None:
    log = world.load()
    append(log, 50, codec=codec)
    assert log_reader.find_timestamp(log, START_MS + 17) == TimestampOffset(START_MS + 17, 17, 0)


def test_under_log_append_time_all_records_have_the_brokers_time(world: World) -> None:
    log = world.load(message_timestamp_type="LogAppendTime")
    world.runtime.advance(100)
    append(log, 5, timestamp=START_MS - 50)
    assert log_reader.find_timestamp(log, START_MS) == TimestampOffset(START_MS + 100, 0, 0)
    assert log_reader.find_timestamp(log, START_MS + 101) is None
