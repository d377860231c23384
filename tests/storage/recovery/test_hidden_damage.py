"""Damage that left a file looking sound."""

from __future__ import annotations

import pytest

from ottla.config import LogConfig
from ottla.errors import CorruptCheckpointError, CorruptRecordError
from ottla.names import TopicPartition
from ottla.records.builder import build_batch
from ottla.storage import checkpoint
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log_dir import LogDir
from ottla.storage.recovery.loading import load_log
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import START_MS, SimulatedRuntime

CONFIG = LogConfig(internal_segment_bytes=10_000, index_interval_bytes=100, segment_index_bytes=1200)


def load(disk: SimulatedDisk) -> Log:
    directory = LogDir(disk, "/data")
    return load_log(directory, "/data/t-0", TopicPartition("t", 0), CONFIG, SimulatedRuntime(), clean=True)


def test_a_log_file_cut_to_nothing_opens_empty_though_its_index_has_entries() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    log = load(disk)
    for _ in range(5):
        log.append_as_leader(build_batch([(START_MS, None, bytes(100), ())]), 0)
    log.close()
    disk.open("/data/t-0/00000000000000000000.log", write=True).truncate(0)

    log = load(disk)
    assert log.end_offset == 0
    log.append_as_leader(build_batch([(START_MS, None, b"new", ())]), 0)
    log.close()
    assert load(disk).end_offset == 1


@pytest.mark.parametrize("text", ["0\n1\n3 20", "0\n1\n3 2", "0\n1\n3 20\n4", ""])
def test_a_checkpoint_whose_last_line_is_not_ended_is_corrupt(text: str) -> None:
    disk = SimulatedDisk()
    disk.open("/epochs", create=True).pwrite(text.encode(), 0)
    with pytest.raises(CorruptCheckpointError):
        checkpoint.read_epochs(disk, "/epochs")


def test_a_time_in_a_corrupt_batch_is_an_error_and_not_an_answer() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    log = load(disk)
    log.append_as_leader(build_batch([(START_MS + number, None, b"v", ()) for number in range(3)]), 0)
    path = "/data/t-0/00000000000000000000.log"
    disk.open(path, write=True).pwrite(b"\x7f", 61 + 7 + 2)  # the second record's time
    with pytest.raises(CorruptRecordError, match=r"000\.log: at position 0: the checksum"):
        log_reader.find_timestamp(log, START_MS + 1)
