"""Directories that a broker writes to, deletes from and compacts while they are read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.errors import UnknownTopicOrPartitionError
from ottla.names import TopicPartition
from ottla.spark.read import plan
from ottla.spark.read.loss import DataLostError
from ottla.spark.transport.base import Block
from ottla.spark.transport.files import FileTransport, is_held
from ottla.spark.transport.log_files import LogFiles
from ottla.storage.checkpoint import write_offsets
from ottla.storage.layout import LOG, segment_file
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.making import FS, append_batches, options_for, read_all

_TP = TopicPartition("t", 0)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A data directory whose lock another process has."""
    (tmp_path / "meta.properties").write_text("version=1\n")
    code = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print(1,flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield tmp_path
        holder.kill()


def test_a_held_directory_is_read_up_to_its_high_watermark(held: Path) -> None:
    append_batches(held / "t-0", 0, 50)
    append_batches(held / "u-0", 0, 50)
    write_offsets(FS, str(held / "replication-offset-checkpoint"), {_TP: 37})
    assert is_held(FS, str(held))
    rows = read_all(options_for(held))
    assert [(row["topic"], row["offset"]) for row in rows] == [("t", offset) for offset in range(37)]


def test_half_a_batch_behind_the_high_watermark_is_not_seen(held: Path) -> None:
    append_batches(held / "t-0", 0, 50)
    path = held / "t-0" / segment_file(0, LOG)
    whole = path.read_bytes()
    write_offsets(FS, str(held / "replication-offset-checkpoint"), {_TP: 40})
    for cut in (1, 11, 12, 60, 61, 80):
        path.write_bytes(whole[: len(whole) - cut])
        assert len(read_all(options_for(held))) == 40


def test_a_directory_is_free_when_its_broker_is_gone(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 50)
    write_offsets(FS, str(tmp_path / "replication-offset-checkpoint"), {_TP: 37})
    (tmp_path / ".lock").touch()
    assert not is_held(FS, str(tmp_path))
    assert len(read_all(options_for(tmp_path))) == 50


def test_a_running_broker_is_read_beside(tmp_path: Path) -> None:
    settings = {
        "replica.high.watermark.checkpoint.interval.ms": "50",
        "log.segment.bytes": "1048576",
        "num.partitions": 2,
    }
    with EmbeddedBroker(settings) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1})
        options = options_for(broker.data, subscribe="orders")
        seen: dict[tuple[int, int], bytes] = {}
        for number in range(3000):
            producer.produce("orders", b"%d" % number)
            if number % 500 == 499:
                producer.flush()
                assert is_held(FS, broker.data)
                _check_prefix(read_all(options), seen)
        producer.flush()
        brokers = options_for(broker.data, subscribe="orders", kafka_bootstrap_servers=broker.bootstrap)
        rows = read_all(brokers)  # files, and the tail from the broker: all that was acknowledged
        _check_prefix(rows, seen)
        assert sorted(int(row["value"]) for row in rows) == list(range(3000))


def _check_prefix(rows: list[dict[str, Any]], seen: dict[tuple[int, int], bytes]) -> None:
    """What was read before is read again, without holes."""
    found = {(row["partition"], row["offset"]): row["value"] for row in rows}
    assert len(found) == len(rows)
    assert seen.items() <= found.items()
    for partition in {key[0] for key in found}:
        offsets = sorted(offset for where, offset in found if where == partition)
        assert offsets == list(range(len(offsets)))
    seen.update(found)


def _offsets(log: LogFiles, start: int, end: int) -> Iterator[tuple[int, int]]:
    for found in log.read(start, end):
        assert isinstance(found, Block)
        yield found.rows[2], found.rows[(found.count - 1) * 16 + 3]


def _three_segments(directory: Path) -> LogFiles:
    append_batches(directory, 0, 30)
    append_batches(directory, 30, 30, new_segment=True)
    append_batches(directory, 60, 30, new_segment=True)
    return LogFiles(FS, str(directory))


def test_a_segment_on_its_way_out_is_read_under_its_new_name(tmp_path: Path) -> None:
    log = _three_segments(tmp_path / "t-0")
    reading = _offsets(log, 0, 90)
    assert next(reading) == (0, 29)
    for base in (0, 30):
        path = tmp_path / "t-0" / segment_file(base, LOG)
        path.rename(f"{path}.deleted")
    assert list(reading) == [(30, 59), (60, 89)]
    assert log.first_offset() == 60


def test_segments_merged_while_they_are_read_come_once(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    log = _three_segments(directory)
    reading = _offsets(log, 0, 90)
    assert next(reading) == (0, 29)
    first, second = directory / segment_file(0, LOG), directory / segment_file(30, LOG)
    merged = first.read_bytes() + second.read_bytes()
    # The steps of a broker that replaces two segments by one, each of them looked at.
    swap = directory / segment_file(0, LOG, ".swap")
    swap.write_bytes(merged)
    assert list(_offsets(log, 0, 90)) == [(0, 29), (30, 59), (60, 89)]
    first.rename(f"{first}.deleted")
    assert {offsets[1] for offsets in _offsets(log, 0, 90)} == {59, 89}
    second.rename(f"{second}.deleted")
    assert [offsets[1] for offsets in _offsets(log, 0, 90)] == [59, 89]
    swap.rename(first)
    rest = list(reading)
    assert [offsets[1] for offsets in rest] == [59, 89]


def test_what_retention_takes_before_it_is_read_is_no_error_but_said(tmp_path: Path) -> None:
    _three_segments(tmp_path / "t-0")
    options = options_for(tmp_path)
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    (tmp_path / "t-0" / segment_file(0, LOG)).unlink()
    with pytest.warns(RuntimeWarning, match="t-0: offsets 0 to 29 are gone"):
        offsets = [
            o
            for split in splits
            for found in plan.read_split(options, split)
            for o in found["offset"].to_pylist()
        ]
    assert offsets == list(range(30, 90))


def test_several_copies_of_a_partition_are_read_as_the_longest(tmp_path: Path) -> None:
    append_batches(tmp_path / "a" / "t-0", 0, 20)
    append_batches(tmp_path / "b" / "t-0", 0, 50)
    transport = FileTransport(options_for(f'["{tmp_path / "a"}", "{tmp_path / "b"}"]'))
    assert transport.latest([_TP]) == {_TP: 50}


def test_what_was_asked_for_by_its_offset_must_be_there(tmp_path: Path) -> None:
    _three_segments(tmp_path / "t-0")
    options = options_for(tmp_path, startingOffsets='{"t": {"0": 10}}')
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    (tmp_path / "t-0" / segment_file(0, LOG)).unlink()
    with pytest.raises(DataLostError, match="t-0: offsets 10 to 29 are gone"):
        list(plan.read_split(options, splits[0]))


def test_a_machine_that_does_not_see_the_directory_says_so(tmp_path: Path) -> None:
    append_batches(tmp_path / "t-0", 0, 10)
    options = options_for(tmp_path)
    (split,) = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    (tmp_path / "t-0").rename(tmp_path / "elsewhere")
    with pytest.raises(
        UnknownTopicOrPartitionError, match="every machine that reads must see these directories"
    ):
        list(plan.read_split(options, split))
