"""Micro-batches over files: limits, restarts, new and lost partitions. Time is given, and no Spark is needed."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from ottla.names import TopicPartition
from ottla.spark.options import read_options
from ottla.spark.read import plan
from ottla.spark.read.loss import DataLostError
from ottla.spark.read.stream import Position, StreamPlan
from ottla.spark.read.stream_reader import StreamReader
from ottla.storage.checkpoint import write_offsets, write_topic_id
from ottla.storage.layout import INDEX, LOG, segment_file
from tests.spark.making import FS, append_batches


class Query:
    """A streaming query without Spark: plans, reads, and keeps its position as JSON."""

    def __init__(self, root: Path, position: str | None = None, **more: str) -> None:
        given = {"path": str(root), "startingOffsets": "earliest", **more}
        self.options = read_options(given, is_stream=True)
        self.now_ms = 0
        self.plan = StreamPlan(self.options, now_ms=lambda: self.now_ms)
        self.position = position or json.dumps(self.plan.initial().to_json())

    def batch(self) -> list[tuple[str, int]]:
        """(partition, offset) of what the next micro-batch reads."""
        start = Position.from_json(json.loads(self.position))
        end = self.plan.next(start)
        rows = [
            (str(split.partition), offset)
            for split in self.plan.splits(start, end)
            for found in plan.read_split(self.options, split)
            for offset in found["offset"].to_pylist()
        ]
        self.position = json.dumps(end.to_json())
        return rows


def _rows(partition: str, *offsets: int) -> list[tuple[str, int]]:
    return [(partition, offset) for offset in range(*offsets)]


def test_each_batch_goes_on_where_the_last_one_ended_also_after_a_restart(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 30)
    query = Query(tmp_path)
    assert query.batch() == _rows("t-0", 30)
    assert query.batch() == []
    append_batches(tmp_path / "t-0", 30, 20)
    assert Query(tmp_path, query.position).batch() == _rows("t-0", 30, 50)


def test_a_limit_on_offsets_is_shared_between_partitions(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 90)
    append_batches(tmp_path / "t-1", 0, 30)
    query = Query(tmp_path, maxOffsetsPerTrigger="40")
    sizes = [[len([row for row in query.batch() if row[0] == name]) for name in ("t-0",)] for _ in range(4)]
    assert sizes == [[30], [30], [30], [0]]


def test_a_limit_on_bytes_takes_about_so_many(tmp_path: Path) -> None:
    log = append_batches(tmp_path / "t-0", 0, 1000)
    log.index(interval=100)
    size = (tmp_path / "t-0" / segment_file(0, LOG)).stat().st_size
    query = Query(tmp_path, maxBytesPerTrigger=str(size // 4))
    counts = []
    while rows := query.batch():
        counts.append(len(rows))
    assert sum(counts) == 1000
    assert 4 <= len(counts) <= 6


def test_few_offsets_wait_but_not_longer_than_the_delay(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 10)
    query = Query(tmp_path, minOffsetsPerTrigger="20", maxTriggerDelay="30s")
    assert query.batch() == []
    query.now_ms = 29_999
    assert query.batch() == []
    query.now_ms = 30_000
    assert query.batch() == _rows("t-0", 10)
    append_batches(tmp_path / "t-0", 10, 20)
    assert query.batch() == _rows("t-0", 10, 30)


def test_available_now_ends_with_what_was_there_and_does_not_wait(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 30)
    query = Query(tmp_path, maxOffsetsPerTrigger="20", minOffsetsPerTrigger="25", maxTriggerDelay="1h")
    query.plan.stop_at_the_end_of_now()
    append_batches(tmp_path / "t-0", 30, 20)
    assert [len(query.batch()) for _ in range(3)] == [20, 10, 0]


def test_new_partitions_and_topics_are_read_from_their_beginning(tmp_path: Path) -> None:
    append_batches(tmp_path / "a-0", 0, 10)
    query = Query(tmp_path, subscribePattern="[ab]")
    assert query.batch() == _rows("a-0", 10)
    append_batches(tmp_path / "a-1", 0, 10)
    append_batches(tmp_path / "b-0", 0, 10)
    append_batches(tmp_path / "c-0", 0, 10)
    assert query.batch() == []  # they enter the position
    assert query.batch() == _rows("a-1", 10) + _rows("b-0", 10)


def _make_anew(directory: Path, topic_id: int, count: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    append_batches(directory, 0, count)
    write_topic_id(FS, str(directory / "partition.metadata"), uuid.UUID(int=topic_id))


def test_a_topic_made_anew_is_told_from_one_that_was_cut(tmp_path: Path) -> None:
    _make_anew(tmp_path / "t-0", 1, 30)
    query = Query(tmp_path)
    query.batch()
    _make_anew(tmp_path / "t-0", 2, 50)
    with pytest.raises(DataLostError, match=r"t-0: the topic was deleted and made anew; .* offset 30 on"):
        query.batch()
    loose = Query(tmp_path, query.position, failOnDataLoss="false")
    with pytest.warns(RuntimeWarning, match="made anew"):
        assert loose.batch() == []
    assert loose.batch() == _rows("t-0", 50)
    _make_anew(tmp_path / "t-0", 2, 20)
    with pytest.raises(DataLostError, match="ends at 20, before offset 50"):
        Query(tmp_path, loose.position).batch()


def test_expired_offsets_are_reported_exactly(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 30)
    append_batches(tmp_path / "t-0", 30, 30, new_segment=True)
    position = json.dumps(Position({TopicPartition("t", 0): 10}).to_json())
    (tmp_path / "t-0" / segment_file(0, LOG)).unlink()
    with pytest.raises(DataLostError, match="t-0: offsets 10 to 29 are gone"):
        Query(tmp_path, position).batch()
    with pytest.warns(RuntimeWarning, match="offsets 10 to 29 are gone"):
        assert Query(tmp_path, position, failOnDataLoss="false").batch() == _rows("t-0", 30, 60)


def test_a_partition_that_is_gone_is_reported(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 10)
    append_batches(tmp_path / "t-1", 0, 10)
    query = Query(tmp_path)
    query.batch()
    shutil.rmtree(tmp_path / "t-1")
    with pytest.raises(
        DataLostError, match="t-1 is not there any more; what it had from offset 10 on is lost"
    ):
        query.batch()


def test_a_position_is_json_in_the_connectors_shape() -> None:
    position = Position({TopicPartition("t", 0): 3}, {"t": "id"})
    value: Any = position.to_json()
    assert value == {"t": {"0": 3}, "topic ids": {"t": "id"}}
    assert Position.from_json(value) == position


def test_a_batch_that_is_planned_again_is_divided_as_before_whatever_the_index_has(tmp_path: Path) -> None:
    log = append_batches(tmp_path / "t-0", 0, 1000)
    append_batches(tmp_path / "t-1", 0, 10)
    log.index(interval=100)
    index = tmp_path / "t-0" / segment_file(0, INDEX)
    given = {"path": str(tmp_path), "startingOffsets": "earliest", "targetBytesPerPartition": "2000"}
    options = read_options(given, is_stream=True)

    def divided(start: Any, end: Any) -> list[tuple[int, int]]:
        splits = [partition.value for partition in StreamReader(options).partitions(start, end)]
        return [(split.start, split.end) for split in splits]

    reader = StreamReader(options)
    start = json.loads(json.dumps(reader.initialOffset()))
    end = json.loads(json.dumps(reader.latestOffset(start)))
    before = divided(start, end)
    assert len(before) > 5
    assert before[-1] == (0, 10)
    whole = index.read_bytes()
    for size in (0, 8 * 3, len(whole) // 2 // 8 * 8):
        index.write_bytes(whole[:size])
        assert divided(start, end) == before
        assert StreamReader(options).latestOffset(end) == end  # nothing is new, word for word
    # What is gone by then leaves its tasks with less, or nothing, and their numbers as they were.
    loose = {**given, "failOnDataLoss": "false"}
    write_offsets(FS, str(tmp_path / "log-start-offset-checkpoint"), {TopicPartition("t", 0): 500})
    (tmp_path / "meta.properties").write_text("version=1\n")
    options = read_options(loose, is_stream=True)
    with pytest.warns(RuntimeWarning, match="offsets 0 to 499 are gone"):
        splits = [partition.value for partition in StreamReader(options).partitions(start, end)]
    assert [split.end for split in splits] == [end for _, end in before]
    rows = [
        offset
        for split in splits
        for found in plan.read_split(options, split)
        for offset in found["offset"].to_pylist()
    ]
    assert rows == [*range(500, 1000), *range(10)]


def test_a_checkpoint_of_before_cuts_were_kept_is_planned_anew(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 30)
    reader = StreamReader(read_options({"path": str(tmp_path)}, is_stream=True))
    (partition,) = reader.partitions({"t": {"0": 10}}, {"t": {"0": 30}})
    assert (partition.value.start, partition.value.end) == (10, 30)
