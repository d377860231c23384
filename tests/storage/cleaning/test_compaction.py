"""What a cleaner keeps and what it drops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ottla.errors import CompactionAbortedError, CorruptRecordError, DecompressionLimitError
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.legacy import conversion as legacy
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from ottla.storage import layout
from ottla.storage.cleaning import cleaned_segments, compaction
from ottla.storage.fs import RealFileSystem
from ottla.storage.log import truncation
from ottla.storage.log.truncation import no_point_on_disk
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.storage.cleaning.compaction_world import MAP_BYTES, CompactedLog
from tests.storage.world import World

CODECS = list(Codec)


@pytest.fixture
def compacted(world: World) -> CompactedLog:
    return CompactedLog(world)


# -- records


@pytest.mark.parametrize("codec", CODECS)
def test_the_newest_value_of_each_key_stays_at_its_offset(compacted: CompactedLog, codec: Codec) -> None:
    compacted.append(("a", "1"), ("b", "1"), ("a", "2"), codec=codec)
    compacted.append(("b", "2"), ("c", "1"), codec=codec)
    compacted.append(("a", "3"), codec=codec)
    compacted.roll()
    assert compacted.clean() == 6
    assert compacted.pairs() == [(3, "b", "2"), (4, "c", "1"), (5, "a", "3")]
    assert {header.codec for header in compacted.headers()} == {codec}
    compacted.check()


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_loses_records_keeps_its_offsets_and_its_producer(
    compacted: CompactedLog, codec: Codec
) -> None:
    compacted.append(("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), producer_id=7, codec=codec)
    compacted.append(("c", "2"), producer_id=7)
    compacted.roll()
    before = compacted.headers()[0]
    compacted.clean()
    after = compacted.headers()[0]
    changed = {name for name, old, new in zip(before._fields, before, after, strict=True) if old != new}
    assert changed == {"length", "crc", "count"}
    assert after.count == 2


def test_the_largest_timestamp_is_that_of_the_records_that_stay(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"), ("b", "1"), ("c", "1"))
    compacted.append(("c", "2"))
    compacted.roll()
    compacted.clean()
    assert [header.max_timestamp for header in compacted.headers()] == [START_MS + 1, START_MS]


def test_under_log_append_time_a_batch_keeps_its_time(world: World) -> None:
    compacted = CompactedLog(world, message_timestamp_type="LogAppendTime")
    compacted.append(("a", "1"), ("b", None))
    world.runtime.advance(5)
    compacted.append(("a", "2"))
    compacted.roll()
    compacted.clean()
    assert [(r.offset, r.timestamp) for r in compacted.records()] == [(1, START_MS), (2, START_MS + 5)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_loses_nothing_is_copied_byte_for_byte(compacted: CompactedLog, codec: Codec) -> None:
    compacted.append(("a", "1"), ("b", "1"), ("c", "1"), codec=codec)
    compacted.roll()
    before = compacted.world.read("00000000000000000000.log")
    compacted.clean()
    assert compacted.world.read("00000000000000000000.log") == before


def test_records_without_a_key_are_dropped(compacted: CompactedLog) -> None:
    compacted.log.config = compacted.world.load(cleanup_policy=frozenset({"delete"})).config
    compacted.append((None, "1"), ("a", "1"), (None, None))
    compacted.roll()
    compacted.log.config = CompactedLog(compacted.world).log.config
    compacted.clean()
    assert compacted.pairs() == [(1, "a", "1")]


def test_an_empty_key_is_a_key(compacted: CompactedLog) -> None:
    compacted.append(("", "1"), ("", "2"))
    compacted.roll()
    compacted.clean()
    assert compacted.pairs() == [(1, "", "2")]


# -- tombstones


@pytest.mark.parametrize("codec", CODECS)
def test_a_tombstone_stays_for_its_retention_after_it_was_first_cleaned(
    compacted: CompactedLog, codec: Codec
) -> None:
    compacted.append(("a", "1"), ("b", "1"), codec=codec)
    compacted.append(("a", None), ("c", "1"), codec=codec)
    compacted.roll()
    compacted.world.runtime.advance(50_000)  # its own age does not count
    compacted.clean()
    assert compacted.pairs() == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    first, marked = compacted.headers()
    assert not first.has_delete_horizon
    assert marked.has_delete_horizon
    assert marked.base_timestamp == START_MS + 50_000 + 1000
    assert marked.max_timestamp == START_MS + 1

    compacted.world.runtime.advance(999)
    compacted.append(("d", "1"))
    compacted.roll()
    compacted.clean()
    assert (2, "a", None) in compacted.pairs()
    assert compacted.headers()[1] == marked  # the horizon does not move

    compacted.world.runtime.advance(1)
    compacted.append(("e", "1"))
    compacted.roll()
    compacted.clean()
    assert compacted.pairs() == [(1, "b", "1"), (3, "c", "1"), (4, "d", "1"), (5, "e", "1")]
    compacted.check()


def test_a_tombstone_that_is_superseded_goes_at_once(compacted: CompactedLog) -> None:
    compacted.append(("a", None))
    compacted.append(("a", "1"))
    compacted.roll()
    compacted.clean()
    assert compacted.pairs() == [(1, "a", "1")]
    assert not any(header.has_delete_horizon for header in compacted.headers())


# -- transactions


def test_records_of_an_aborted_transaction_go_and_supersede_nothing(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("a", "void"), ("b", "void"), producer_id=7, transactional=True)
    compacted.end(7, commit=False)
    compacted.append(("c", "1"))
    compacted.roll()
    compacted.clean()
    assert compacted.pairs() == [(0, "a", "1"), (4, "c", "1")]
    compacted.check()


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_goes_only_after_its_data_and_its_retention(compacted: CompactedLog, commit: bool) -> None:
    compacted.append(("a", "1"), producer_id=7, transactional=True)
    at = compacted.end(7, commit=commit)
    compacted.append(("a", "2"), producer_id=7, transactional=True)  # so that the first batch may go
    compacted.end(7, commit=True)
    compacted.roll()
    compacted.clean()  # drops the data, so the marker was still needed
    assert [m.base_offset for m in compacted.markers()] == [at, 3]
    assert not compacted.markers()[0].has_delete_horizon
    assert len(compacted.log.segments.first.txn_index.entries) == (0 if commit else 1)

    for key, left in (("b", [at, 3]), ("c", [at, 3]), ("d", [3])):
        compacted.append((key, "1"))
        compacted.roll()
        compacted.clean()
        assert [m.base_offset for m in compacted.markers()] == left
        assert compacted.markers()[0].has_delete_horizon == (len(left) == 2)
        assert compacted.log.segments.first.txn_index.entries == []
        compacted.world.runtime.advance(500)
    compacted.check()


def test_a_transaction_may_reach_over_segments(compacted: CompactedLog) -> None:
    compacted.append(("a", "void"), producer_id=7, transactional=True)
    compacted.append(("b", "good"), producer_id=8, transactional=True)
    compacted.roll()
    compacted.append(("b", "void"), producer_id=7, transactional=True)
    compacted.roll()
    compacted.end(8, commit=True)
    compacted.end(7, commit=False)  # lies in the active segment, which is not cleaned
    compacted.clean()
    assert compacted.pairs() == [(1, "b", "good")]
    compacted.check()


def test_nothing_from_the_first_open_transaction_on_is_cleaned(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    compacted.append(("a", "3"), producer_id=7, transactional=True)
    compacted.roll()
    compacted.append(("a", "4"))
    compacted.roll()
    assert compacted.clean() == 2
    assert compacted.pairs() == [(1, "a", "2"), (2, "a", "3"), (3, "a", "4")]
    compacted.end(7, commit=False)
    compacted.roll()
    assert compacted.clean() == 5
    assert compacted.pairs() == [(3, "a", "4")]


def test_a_segment_that_holds_an_open_transaction_is_left_alone(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.append(("a", "3"), producer_id=7, transactional=True)
    compacted.roll()
    assert compacted.clean() is None
    assert [offset for offset, _, _ in compacted.pairs()] == [0, 1, 2]


def test_an_aborted_transaction_says_nothing_about_the_next_one(compacted: CompactedLog) -> None:
    compacted.append(("a", "void"), producer_id=7, transactional=True)
    compacted.end(7, commit=False)
    compacted.roll()
    compacted.clean()  # the transaction index still names it
    compacted.append(("b", "1"), producer_id=7, transactional=True)
    compacted.append(("b", "2"), producer_id=7, transactional=True)
    compacted.end(7, commit=True)
    compacted.roll()
    compacted.clean()
    assert compacted.pairs() == [(3, "b", "2")]


def test_a_marker_is_judged_by_the_data_of_its_own_transaction(compacted: CompactedLog) -> None:
    compacted.append(("stays", "1"), producer_id=7, transactional=True)
    compacted.end(7, commit=True)
    compacted.append(("goes", "1"), producer_id=7, transactional=True)
    compacted.end(7, commit=True)
    compacted.append(("goes", "2"), producer_id=7)
    for key in ("x", "y"):
        compacted.append((key, "1"))
        compacted.roll()
        compacted.clean()
    assert [(m.base_offset, m.has_delete_horizon) for m in compacted.markers()] == [(1, False), (3, True)]


def test_nothing_from_the_high_watermark_on_is_cleaned(compacted: CompactedLog) -> None:
    log = compacted.log
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    for value in ("3", "4"):
        log.append_as_leader(_plain("a", value), 0)
    compacted.roll()
    assert log.high_watermark == 2
    assert compacted.clean() == 2
    assert [header.base_offset for header in compacted.headers()] == [1, 2, 3]


# -- what producers leave


def test_the_last_sequence_of_a_producer_is_known_when_its_records_are_gone(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"), ("b", "1"), producer_id=7)
    compacted.append(("a", "2"), ("b", "2"), producer_id=7)
    compacted.append(("a", "3"), ("b", "3"))
    compacted.roll()
    known = compacted.producers()
    compacted.clean()
    empty, last = compacted.headers()
    assert (empty.base_offset, empty.last_offset, empty.count) == (2, 3, 0)
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (7, 0, 2)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, START_MS + 1)
    assert last.base_offset == 4
    compacted.reopen(forget_snapshots=True)
    assert compacted.producers() == known
    compacted.append(("c", "1"), producer_id=7)  # goes on where it was
    compacted.append(("d", "1"), producer_id=7)  # only now the empty batch may go
    compacted.roll()
    compacted.clean()
    assert all(header.count for header in compacted.headers())


def test_a_marker_stays_while_only_it_has_a_producers_epoch(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"), producer_id=7, transactional=True)
    compacted.open[7].epoch = 1  # the coordinator fences the producer by a marker of the next epoch
    fence = compacted.end(7, commit=False)
    for key in ("b", "c", "d"):
        compacted.append((key, "1"))
        compacted.roll()
        compacted.clean()
        compacted.world.runtime.advance(1000)
    kept = compacted.markers()[0]
    assert (kept.base_offset, kept.producer_epoch, kept.count) == (fence, 1, 1)
    known = compacted.producers()
    compacted.reopen(forget_snapshots=True)
    assert compacted.producers()[7][:2] == known[7][:2] == (1, -1)


def test_the_last_batch_of_what_is_cleaned_stays_if_only_empty(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("b", "void"), ("b", "void"), producer_id=7, transactional=True)
    compacted.roll()
    compacted.end(7, commit=False)
    compacted.append(("c", "1"), producer_id=7)
    compacted.clean()
    assert [(h.base_offset, h.last_offset, h.count) for h in compacted.headers()[:2]] == [
        (0, 0, 1),
        (1, 2, 0),
    ]


# -- which part, and when


def test_a_log_is_due_when_more_than_the_given_share_is_dirty(world: World) -> None:
    compacted = CompactedLog(world, min_cleanable_dirty_ratio=0.5)
    compacted.append(("a", "1"))
    compacted.roll()
    assert compacted.clean() == 1
    assert compacted.clean() is None
    compacted.append(("b", "1"))
    compacted.roll()
    assert _state(compacted).dirty_ratio == 0.5
    assert compacted.clean() is None
    compacted.append(("c", "1"))
    compacted.roll()
    assert compacted.clean() == 3


def test_a_log_that_is_not_compacted_is_never_due(world: World) -> None:
    compacted = CompactedLog(world, cleanup_policy=frozenset({"delete"}))
    compacted.append(("a", "1"))
    compacted.roll()
    assert compacted.clean() is None


def test_a_dirty_segment_is_due_when_the_largest_lag_is_over(world: World) -> None:
    compacted = CompactedLog(world, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=10_000)
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    world.runtime.advance(10_000)
    assert compacted.clean() is None
    world.runtime.advance(1)
    assert compacted.clean() == 2
    world.runtime.advance(100_000)
    assert compacted.clean() is None  # nothing is dirty


def test_segments_younger_than_the_smallest_lag_are_left_alone(world: World) -> None:
    compacted = CompactedLog(world, min_compaction_lag_ms=1000)
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    world.runtime.advance(500)
    compacted.append(("a", "3"))
    compacted.append(("a", "4"))
    compacted.roll()
    assert compacted.clean() is None
    world.runtime.advance(501)
    assert compacted.clean() == 2
    assert [offset for offset, _, _ in compacted.pairs()] == [1, 2, 3]
    world.runtime.advance(500)
    assert compacted.clean() == 4
    assert [offset for offset, _, _ in compacted.pairs()] == [3]


@pytest.mark.parametrize("checkpoint", [0, 99])
def test_a_checkpoint_outside_of_the_log_means_that_all_is_dirty(
    compacted: CompactedLog, checkpoint: int
) -> None:
    for value in ("1", "2", "3"):
        compacted.append(("a", value))
        compacted.roll()
    compacted.log.raise_start_offset(1)
    compacted.checkpoint = checkpoint
    assert _state(compacted).first_dirty_offset == 1
    compacted.clean()
    assert [offset for offset, _, _ in compacted.pairs()] == [2]


def test_the_dirtiest_log_comes_first(compacted: CompactedLog) -> None:
    for key in ("a", "b", "c"):
        compacted.append((key, "1"))
        compacted.roll()
    plans = [
        compaction.plan(compacted.log, offset, compacted.now_ms, compacted.world.runtime)
        for offset in (2, 0, 3, 1)
    ]
    assert plans[2] is None
    chosen = compaction.dirtiest(plans)
    assert chosen is plans[1]
    assert compaction.dirtiest([None]) is None


# -- segments


def test_small_segments_become_one_again(compacted: CompactedLog) -> None:
    for number in range(12):
        compacted.append((f"key{number}", "v" * 20))
        compacted.roll()
    sizes = [segment.size for segment in compacted.log.segments]
    compacted.clean()
    after = [segment.size for segment in compacted.log.segments]
    assert sum(after) == sum(sizes)
    assert len(after) == 3  # 12 segments of about a sixth of 600 bytes, and the active one
    assert max(after) <= 600
    compacted.check()
    assert compacted.world.names(layout.SNAPSHOT) == [
        layout.segment_file(segment.base_offset, layout.SNAPSHOT)
        for segment in compacted.log.segments
        if segment.base_offset
    ]


def test_a_gap_at_the_end_of_a_segment_counts_as_cleaned(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.log.roll(10)
    compacted.log.append_as_follower(_plain("b", "1", base_offset=10))
    compacted.log.raise_high_watermark(11)
    assert compacted.clean() == 10
    assert compacted.clean() is None


def test_a_group_is_bounded_by_its_indexes(world: World) -> None:
    compacted = CompactedLog(
        world, internal_segment_bytes=10_000, segment_index_bytes=24, index_interval_bytes=0
    )
    for number in range(8):
        compacted.append((f"key{number}", "v"))
        compacted.append((f"more{number}", "v"))
        compacted.roll()
    assert {segment.offset_index.size_bytes for segment in list(compacted.log.segments)[:-1]} == {8}
    compacted.clean()
    # Time indexes of 12 bytes each: two segments to a group.
    assert [segment.base_offset for segment in compacted.log.segments] == [0, 4, 8, 12, 16]


def test_a_group_spans_no_more_offsets_than_a_segment_can(compacted: CompactedLog) -> None:
    far = 2**31
    for base in (0, 1, far, far + 1):
        data = _plain(f"key{base}", "1", base_offset=base)
        compacted.log.append_as_follower(data)
        compacted.log.raise_high_watermark(base + 1)
        compacted.roll()
    compacted.clean()
    assert [segment.base_offset for segment in compacted.log.segments] == [0, 2, far + 2]


def test_segments_that_lose_everything_leave_one_empty_segment(compacted: CompactedLog) -> None:
    for value in ("1", "2", "3"):
        compacted.append(("a", value))
        compacted.roll()
    compacted.append(("a", "4"), ("b", "v" * 500))
    compacted.roll()
    compacted.clean()
    assert [(s.base_offset, s.size > 0) for s in compacted.log.segments][:2] == [(0, False), (3, True)]
    compacted.check()
    for clean in (True, False):
        compacted.reopen(clean=clean)
        assert compacted.log.start_offset == 0
        compacted.check()


def test_new_segments_are_split_where_positions_would_not_fit(
    compacted: CompactedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaned_segments, "_MAX_SEGMENT_BYTES", 250)
    monkeypatch.setattr(cleaned_segments, "BUFFER_BYTES", 100)
    for number in range(5):
        compacted.append((f"key{number}", "v" * 10))
    compacted.roll()
    compacted.clean()
    assert [segment.base_offset for segment in compacted.log.segments] == [0, 3, 5]
    compacted.check()


def test_old_files_are_deleted_after_the_delay(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    reader = compacted.log.segments.first.file
    compacted.clean()
    assert "00000000000000000000.log.deleted" in compacted.world.names()
    assert len(reader.pread(1000, 0)) > 100  # a read under way is not disturbed
    compacted.world.runtime.advance(60_000)
    compacted.log.delete_due_files()
    assert not compacted.world.names(layout.DELETED)
    compacted.check()


# -- the map


def test_a_map_that_is_too_small_takes_several_rounds(compacted: CompactedLog) -> None:
    for round_number in range(3):
        for key in range(40):
            compacted.append((f"key{key}", f"{round_number}"))
    compacted.roll()
    ends = []
    before = list(compacted.log.segments)
    while (cleaned_to := compacted.clean(map_bytes=24 * 16, load_factor=0.75)) is not None:
        ends.append(cleaned_to)
        after = list(compacted.log.segments)
        assert [s for s in after if s.base_offset >= cleaned_to] == [
            s for s in before if s.base_offset >= cleaned_to
        ]
        before = after
        compacted.check()
    assert ends == sorted(set(ends))
    assert len(ends) > 3
    assert ends[-1] == compacted.log.segments.active.base_offset


def test_a_batch_with_more_keys_than_the_map_has_slots_is_an_error_that_says_what_to_do(
    compacted: CompactedLog,
) -> None:
    compacted.append(*((f"key{key}", "1") for key in range(20)))
    compacted.roll()
    with pytest.raises(CompactionAbortedError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        compacted.clean(map_bytes=24 * 16)
    assert len(compacted.pairs()) == 20


def test_the_map_grows_up_to_its_limit(world: World) -> None:
    compacted = CompactedLog(world, internal_segment_bytes=16 << 20, max_message_bytes=16 << 20)
    keys = [(f"key{key}", "1") for key in range(8_000)]
    for part in range(0, len(keys), 1000):
        compacted.append(*keys[part : part + 1000])
    compacted.append(("key0", "2"))
    compacted.roll()
    assert compacted.clean(map_bytes=24 << 20) == 8_001
    assert [offset for offset, _, _ in compacted.pairs()] == list(range(1, 8_001))


# -- old formats, limits


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_that_stay_become_v2_batches(compacted: CompactedLog, magic: int, codec: Codec) -> None:
    compacted.append(("x", "1"), ("y", "1"), ("z", "1"), ("w", "1"))
    compacted.roll()
    old = [
        LegacyRecord(0, START_MS if magic else -1, legacy.CREATE_TIME, b"a", b"1"),
        LegacyRecord(1, START_MS if magic else -1, legacy.CREATE_TIME, b"a", b"2"),
        LegacyRecord(2, START_MS if magic else -1, legacy.CREATE_TIME, b"b", None),
        LegacyRecord(3, START_MS if magic else -1, legacy.CREATE_TIME, None, b"lost"),
    ]
    _replace_log(compacted, build_message_set(old, magic, codec))
    compacted.clean()
    assert compacted.pairs() == [(1, "a", "2"), (2, "b", None)]
    assert {header.codec for header in compacted.headers()} == {codec}
    assert {record.timestamp for record in compacted.records()} == {START_MS if magic else -1}
    assert any(header.has_delete_horizon for header in compacted.headers())
    assert compacted.headers()[-1].last_offset == 3
    compacted.world.runtime.advance(1000)
    compacted.append(("b", "3"))
    compacted.roll()
    compacted.clean()
    assert compacted.pairs() == [(1, "a", "2"), (4, "b", "3")]


def test_a_batch_that_unpacks_to_more_than_allowed_stops_the_cleaning(world: World) -> None:
    compacted = CompactedLog(world, internal_segment_bytes=1 << 20)
    compacted.append(("a", "1" * 50_000), codec=Codec.GZIP)
    compacted.append(("a", "2"))
    compacted.roll()
    compacted.log.config = CompactedLog(world, decompression_max_bytes=40_000).log.config
    with pytest.raises(DecompressionLimitError):
        compacted.clean()
    assert len(compacted.pairs()) == 2


# -- what goes wrong


def test_a_damaged_batch_stops_the_cleaning_and_changes_nothing(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("b", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    name = "00000000000000000000.log"
    damaged = bytearray(compacted.world.read(name))
    damaged[-3] ^= 1
    _replace_log(compacted, bytes(damaged))
    with pytest.raises(CorruptRecordError, match=rf"{name}.*checksum"):
        compacted.clean()
    assert compacted.world.read(name) == bytes(damaged)
    assert not compacted.world.names(layout.CLEANED)


def test_a_cleaning_can_be_called_off(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    asked: list[int] = []
    plan = _plan(compacted)

    def is_the_second_time() -> bool:
        asked.append(1)
        return len(asked) > 1

    cleaner = plan.cleaner(MAP_BYTES, 0.9, is_the_second_time)
    with pytest.raises(CompactionAbortedError):
        cleaner.next_group()  # in the second pass: it is asked once in each
    assert not compacted.world.names(layout.CLEANED)
    compacted.check()


def test_a_log_that_was_deleted_meanwhile_is_no_failure_of_the_disk(compacted: CompactedLog) -> None:
    compacted.append(("a", "1"))
    compacted.append(("a", "2"))
    compacted.roll()
    cleaner = _plan(compacted).cleaner(MAP_BYTES, 0.9, lambda: True)
    compacted.world.fs.rename(compacted.world.path, f"{compacted.world.root}/gone")
    with pytest.raises(CompactionAbortedError):
        cleaner.next_group()


@pytest.mark.parametrize("change", ["truncated", "retained"])
def test_the_result_of_a_cleaning_is_thrown_away_if_the_log_has_changed(
    compacted: CompactedLog, change: str
) -> None:
    for value in ("1", "2", "3"):
        compacted.append(("a", value))
        compacted.roll()
    plan = _plan(compacted)
    group = plan.cleaner(MAP_BYTES, 0.9).next_group()
    assert group is not None
    if change == "truncated":
        truncation.truncate_to(compacted.log, 2, no_point_on_disk)
    else:
        compacted.log.remove_segments([compacted.log.segments.first])
    left = compacted.pairs()
    with pytest.raises(CompactionAbortedError):
        compaction.install(compacted.log, plan, group)
    assert compacted.pairs() == left
    assert not compacted.world.names(layout.CLEANED)


def test_appends_and_rolls_go_on_while_a_log_is_cleaned(compacted: CompactedLog) -> None:
    for value in ("1", "2"):
        compacted.append(("a", value))
        compacted.roll()
    plan = _plan(compacted)
    cleaner = plan.cleaner(MAP_BYTES, 0.9)
    groups = []
    while (group := cleaner.next_group()) is not None:
        groups.append(group)
        compacted.append(("b", "1"))
        compacted.roll()
    for group in groups:
        compaction.install(compacted.log, plan, group)
    assert compacted.pairs() == [(1, "a", "2"), *((2 + i, "b", "1") for i in range(len(groups)))]
    compacted.check()


def test_a_cleaner_runs_on_another_thread_while_the_log_is_appended_to(tmp_path: Path) -> None:
    runtime = SimulatedRuntime()
    compacted = CompactedLog(World(RealFileSystem(), str(tmp_path), runtime))
    for number in range(200):
        compacted.append((f"key{number % 7}", "v"), (f"other{number % 3}", None))
    compacted.roll()
    plan = _plan(compacted)
    cleaner = plan.cleaner(MAP_BYTES, 0.9)
    with ThreadPoolExecutor(1) as threads:
        while True:
            step = threads.submit(cleaner.next_group)
            compacted.append(("key0", "new"))
            if (group := step.result()) is None:
                break
            compaction.install(compacted.log, plan, group)
    compacted.checkpoint = cleaner.cleaned_to
    assert cleaner.cleaned_to == plan.source.end_offset
    compacted.check()
    assert len([offset for offset, _, _ in compacted.pairs() if offset < 400]) == 10


def _state(compacted: CompactedLog) -> compaction.Cleanable:
    return compaction.cleanable(compacted.log, compacted.checkpoint, compacted.now_ms)


def _plan(compacted: CompactedLog) -> compaction.Plan:
    plan = compaction.plan(compacted.log, compacted.checkpoint, compacted.now_ms, compacted.world.runtime)
    assert plan is not None
    return plan


def _plain(key: str, value: str, **fields: Any) -> bytearray:
    return build_batch([NewRecord(START_MS, key.encode(), value.encode())], **fields)


def _replace_log(compacted: CompactedLog, data: bytes) -> None:
    """Put other bytes into the first segment."""
    compacted.world.write("00000000000000000000.log", data)
    segment = compacted.log.segments.first
    segment.release_all()
    segment.size = len(data)
