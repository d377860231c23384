"""Directories that real Kafka wrote are read as Kafka's own consumers read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.spark.transport.files import FileTransport
from ottla.storage.layout import parse_partition_dir
from tests import corpus
from tests.consuming import TIMESTAMP_TYPES, as_dict
from tests.spark.making import options_for, read_all

KINDS = {0: TIMESTAMP_TYPES[0], 1: TIMESTAMP_TYPES[1], -1: "NoTimestampType"}


def _told(row: dict[str, Any]) -> dict[str, Any]:
    headers = [(pair["key"].encode(), pair["value"]) for pair in row["headers"] or []]
    time_ms = row["timestamp"] // 1000
    return as_dict(
        row["offset"], time_ms, KINDS[row["timestampType"]], row["key"], row["value"], None, headers
    )


def _without_epochs(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**record, "leader_epoch": None} for record in records]


@pytest.fixture(scope="module", params=corpus.NAMES)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, dict[str, Any]]]:
    return corpus.unpack(request.param, tmp_path_factory.mktemp("corpus")), corpus.expected(request.param)


def test_every_record_of_every_partition_is_read(written: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    root, partitions = written
    for name, expected in partitions.items():
        for size in ("700", "64m"):
            options = options_for(root / name, includeHeaders="true", targetBytesPerPartition=size)
            found = [_told(row) for row in read_all(options)]
            assert found == _without_epochs(expected["records"]), name


def test_read_committed_gives_what_a_consumer_gets(written: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    root, partitions = written
    for name, expected in partitions.items():
        options = options_for(
            root / name, kafka_isolation_level="read_committed", targetBytesPerPartition="1000"
        )
        assert [row["offset"] for row in read_all(options)] == expected["committed"], name
        partition = parse_partition_dir(name)
        assert partition is not None
        assert FileTransport(options).latest([partition]) == {partition: expected["last_stable"]}


def test_times_are_found_where_kafka_finds_them(written: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    root, partitions = written
    for name, expected in partitions.items():
        partition = parse_partition_dir(name)
        assert partition is not None
        transport = FileTransport(options_for(root / name))
        assert transport.earliest([partition]) == {partition: expected["start"]}
        for time_ms, offset, _ in expected["times"]:
            if offset is None:  # Kafka looks into one segment alone, also if compaction left that one empty
                later = (record["offset"] for record in expected["records"] if record["timestamp"] >= time_ms)
                offset = next(later, None)
            assert transport.at_times({partition: time_ms}) == {partition: offset}, (name, time_ms)
