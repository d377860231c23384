"""Directories that real Kafka left behind: ottla opens each of them and reads what Kafka itself reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.config import LogConfig
from ottla.records import batch, kernel
from ottla.records.record import read_batches, read_records
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.consuming import consume, describe, open_logs
from tests.corpus import NAMES, expected, unpack
from tests.dumping import printed, scanned

YEAR_MS = 365 * 86_400_000
CONFIG = LogConfig(segment_index_bytes=16_384)  # as the brokers that wrote the corpus had it


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kafka(name: str) -> dict[str, dict[str, Any]]:
    return expected(name)


@pytest.fixture
def data_dir(name: str, tmp_path: Path) -> Path:
    return unpack(name, tmp_path)


def opened(data_dir: Path, now_ms: int = START_MS) -> tuple[LogManager, dict[str, Log]]:
    return open_logs(data_dir, SimulatedRuntime(now_ms=now_ms), CONFIG)


def seen(logs: dict[str, Log]) -> dict[str, Any]:
    """All that a consumer can ask, but lookups by time."""
    return {
        partition: {
            "start": log.start_offset,
            "end": log.end_offset,
            "last_stable": log.last_stable_offset,
            "records": consume(log),
            "committed": [record["offset"] for record in consume(log, committed=True)],
        }
        for partition, log in logs.items()
    }


def without(kafka: dict[str, dict[str, Any]], *fields: str) -> dict[str, Any]:
    return {
        partition: {name: value for name, value in found.items() if name not in fields}
        for partition, found in kafka.items()
    }


def test_all_that_kafka_reads_is_read_and_nothing_else(
    data_dir: Path, kafka: dict[str, dict[str, Any]]
) -> None:
    manager, logs = opened(data_dir)
    assert seen(logs) == without(kafka, "times", "batches", "decoded")
    manager.close()


def test_it_is_read_again_after_a_clean_stop_and_after_a_kill(
    data_dir: Path, kafka: dict[str, dict[str, Any]]
) -> None:
    wanted = without(kafka, "times", "batches", "decoded")
    manager, _ = opened(data_dir)
    manager.close()
    manager, logs = opened(data_dir)
    assert seen(logs) == wanted
    manager.abandon()
    manager, logs = opened(data_dir)
    assert seen(logs) == wanted
    manager.close()


def test_it_is_read_when_every_producer_is_long_forgotten(
    data_dir: Path, kafka: dict[str, dict[str, Any]]
) -> None:
    latest = max(record["timestamp"] for found in kafka.values() for record in found["records"])
    manager, logs = opened(data_dir, latest + YEAR_MS)
    assert seen(logs) == without(kafka, "times", "batches", "decoded")
    manager.close()


def test_reads_of_one_batch_at_a_time_see_the_same(data_dir: Path, kafka: dict[str, dict[str, Any]]) -> None:
    manager, logs = opened(data_dir)
    for partition, found in kafka.items():
        assert consume(logs[partition], max_bytes=1) == found["records"]
        committed = [record["offset"] for record in consume(logs[partition], committed=True, max_bytes=1)]
        assert committed == found["committed"]
    manager.close()


def test_a_read_may_begin_at_any_offset(data_dir: Path, kafka: dict[str, dict[str, Any]]) -> None:
    manager, logs = opened(data_dir)
    for partition, found in kafka.items():
        log = logs[partition]
        for offset in range(log.start_offset, log.end_offset, 7):
            later = [record for record in found["records"] if record["offset"] >= offset]
            assert consume(log, offset) == later
            wanted = [number for number in found["committed"] if number >= offset]
            assert [record["offset"] for record in consume(log, offset, committed=True)] == wanted
    manager.close()


def test_lookups_by_time_find_what_kafka_finds(data_dir: Path, kafka: dict[str, dict[str, Any]]) -> None:
    manager, logs = opened(data_dir)
    for partition, found in kafka.items():
        log = logs[partition]
        hidden = any(segment.size == 0 for segment in log.segments if segment is not log.segments.active)
        for timestamp, offset, at in found["times"]:
            answer = log_reader.find_timestamp(log, timestamp)
            if offset is None and hidden:
                # Kafka looks no further than a segment that compaction has emptied; we do.
                first = next(one for one in found["records"] if one["timestamp"] >= timestamp)
                offset, at = first["offset"], first["timestamp"]
            assert ((answer.offset, answer.timestamp) if answer else (None, None)) == (offset, at)
    manager.close()


def test_every_batch_is_what_kafkas_own_tool_prints(data_dir: Path, kafka: dict[str, dict[str, Any]]) -> None:
    manager, logs = opened(data_dir)
    for partition, found in kafka.items():
        log = logs[partition]
        dumped = [
            {"file": Path(segment.path(".log")).name, **printed(row)}
            for segment in log.segments
            for row in scanned(Path(segment.path(".log")))
        ]
        assert dumped == found["batches"]
    manager.close()


def test_the_files_can_be_read_without_a_log(data_dir: Path, kafka: dict[str, dict[str, Any]]) -> None:
    """Straight from the bytes, as tools and converters do."""
    for partition, found in kafka.items():
        records: list[Any] = []
        told: list[Any] = []
        for path in sorted((data_dir / partition).glob("*.log")):
            data = path.read_bytes()
            for row in scanned(path):
                if not row[kernel.ATTRIBUTES] & batch.CONTROL:
                    records += describe(data, row)
            if all(row[kernel.MAGIC] == batch.MAGIC_V2 for row in scanned(path)):
                for position, header in read_batches(data):
                    assert header.count == len(list(read_records(data, position)))
                    told.append((path.name, position, header.base_offset, header.crc))
        assert [record for record in records if record["offset"] >= found["start"]] == found["records"]
        v2_files = {name for name, *_ in told}
        assert told == [
            (row["file"], row["position"], row["baseOffset"], row["crc"])
            for row in found["batches"]
            if row["file"] in v2_files
        ]


def test_nothing_of_what_kafka_left_is_called_lost(data_dir: Path) -> None:
    manager, _ = opened(data_dir)
    assert list(manager.losses()) == []
    manager.abandon()


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("stopped")])
def test_without_the_mark_of_the_clean_stop_nothing_is_called_lost_either(data_dir: Path) -> None:
    (data_dir / ".kafka_cleanshutdown").unlink()
    manager, _ = opened(data_dir)
    assert list(manager.losses()) == []
    manager.abandon()
