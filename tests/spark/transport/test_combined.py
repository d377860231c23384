"""Files and brokers together: each record comes once, from one or the other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla.names import TopicPartition
from ottla.spark.options import ReadOptions
from ottla.spark.read import plan
from ottla.spark.transport.combined import CombinedTransport
from ottla.spark.transport.files import FileTransport
from ottla.storage.layout import LOG, segment_file
from tests.spark.making import append_batches, options_for
from tests.spark.transport.test_committed import COMMITTED, ONE, PLAIN, TWO, damage, end_of, make, txn


class HalfWrittenDown(FileTransport):
    """Files of a broker whose high watermark in the checkpoint is behind what lies in them."""

    def readable_end(self, partition: TopicPartition) -> int | None:
        return 50


def _offsets(options: ReadOptions, files: FileTransport, brokers: FileTransport) -> list[int]:
    """What all splits give; other files, with all records, stand for the brokers."""
    both = CombinedTransport(files, brokers)
    splits = plan.plan_splits(
        options, plan.starting_offsets(options, brokers), plan.latest_offsets(options, brokers), both
    )
    return [
        offset
        for split in splits
        for rows in plan.read_split(options, split, both)
        for offset in rows.column("offset").to_pylist()
    ]


@pytest.mark.parametrize("max_records", ["7", "1000"])
def test_what_lies_behind_the_high_watermark_comes_once(tmp_path: Path, max_records: str) -> None:
    append_batches(tmp_path / "t-0", 0, 100).index(interval=100)
    options = options_for(tmp_path, maxRecordsPerPartition=max_records)
    assert _offsets(options, HalfWrittenDown(options), FileTransport(options)) == list(range(100))


@pytest.mark.parametrize("max_records", ["7", "1000"])
def test_what_retention_took_from_the_files_comes_once(tmp_path: Path, max_records: str) -> None:
    for start in (0, 30, 60):
        append_batches(tmp_path / "files" / "t-0", start, 30, new_segment=True)
    shutil.copytree(tmp_path / "files", tmp_path / "brokers")
    (tmp_path / "files" / "t-0" / segment_file(0, LOG)).unlink()
    options = options_for(tmp_path / "files", maxRecordsPerPartition=max_records)
    brokers = FileTransport(options_for(tmp_path / "brokers"))
    assert _offsets(options, FileTransport(options), brokers) == list(range(90))


def test_brokers_decide_what_the_files_cannot(tmp_path: Path) -> None:
    made = make(tmp_path / "files", PLAIN, txn(ONE), end_of(ONE), PLAIN, txn(TWO), end_of(TWO, abort=True))
    shutil.copytree(tmp_path / "files", tmp_path / "brokers")
    damage(made[2])
    options = options_for(tmp_path / "files", **COMMITTED)
    brokers = FileTransport(options_for(tmp_path / "brokers", **COMMITTED))
    found = _offsets(options, FileTransport(options), brokers)
    assert found == [made[0].base, made[1].base, made[3].base]
