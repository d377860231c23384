"""Single moments at which a power cut once lost something; tests/reliability cuts the power everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.config import BrokerConfig, LogConfig
from ottla.names import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.control import Marker, build_marker
from ottla.storage.log import reader as log_reader
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.storage.log.truncation import no_point_on_disk
from ottla.storage.log.validation import Origin
from ottla.storage.log_manager import LogManager
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from ottla.testing.history import History
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.storage.steps import apply_retention, truncate

PARTITION = TopicPartition("t", 0)
CONFIG = LogConfig(index_interval_bytes=100, segment_index_bytes=240)


def open_manager(disk: SimulatedDisk) -> LogManager:
    manager = LogManager(
        disk, SimulatedRuntime(queued=True), BrokerConfig(log_dirs=("/data/logs",)), defaults=CONFIG
    )
    manager.open()
    return manager


def append(log: Log, timestamp: int = START_MS) -> None:
    log.append_as_leader(build_batch([(timestamp, b"key", b"value", ())]), 0)


def after_cuts(history: History) -> Iterator[Log | None]:
    """The log after a cut at each point of the history."""
    for state in crash_states(history, samples=2):
        yield open_manager(state.disk()).get(PARTITION)


def test_a_new_log_directory_is_not_lost_with_what_was_flushed_into_it() -> None:
    disk = SimulatedDisk()
    history = disk.record()
    log = open_manager(disk).get_or_create(PARTITION)
    append(log)
    log.flush()
    states = crash_states(history, points=[len(history.operations)])
    logs = [open_manager(state.disk()).get(PARTITION) for state in states]
    assert logs
    assert all(log is not None and log.end_offset == 1 for log in logs)


def test_an_aborted_transaction_stays_aborted_after_a_roll_right_behind_the_recovery_point() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = manager.get_or_create(PARTITION)
    history = disk.record()
    log.append_as_leader(
        build_batch(
            [(START_MS, None, b"v", ())], producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
        ),
        0,
    )
    log.append_as_leader(build_marker(Marker(True, 0), 9, 0, START_MS), 0, Origin.COORDINATOR)
    log.flush()
    manager.checkpoint()
    at_rest = len(history.operations)
    log.roll()
    append(log)
    log.flush()
    manager.checkpoint()
    for state in crash_states(history, samples=2, points=range(at_rest, len(history.operations) + 1)):
        recovered = open_manager(state.disk()).logs[PARTITION]
        assert [txn.last_offset for txn in log_reader.aborted_in(recovered, 0, 2)] == [1], state.describe()
        assert log_reader.find_timestamp(recovered, START_MS) is not None


def test_an_empty_log_keeps_its_end_offset_while_its_only_segment_is_made_anew() -> None:
    disk = SimulatedDisk()
    log = open_manager(disk).get_or_create(PARTITION)
    truncation.truncate_fully_and_start_at(log, 7, no_point_on_disk)
    history = disk.record()
    log.roll()
    ends = {log and log.end_offset for log in after_cuts(history)}
    assert ends == {7}


def test_a_log_never_begins_at_0_again_while_it_is_truncated_fully() -> None:
    for offset in (4, 9, 12):  # before, at and behind the base of its one segment
        disk = SimulatedDisk()
        log = open_manager(disk).get_or_create(PARTITION)
        truncation.truncate_fully_and_start_at(log, 9, no_point_on_disk)
        append(log)
        log.flush()
        history = disk.record()
        truncation.truncate_fully_and_start_at(log, offset, no_point_on_disk)
        ends = {log and log.end_offset for log in after_cuts(history)}
        assert ends - {offset, 9, 10} == set()  # the old log, an empty one where it began, or the new one


def test_deleted_records_do_not_come_back_once_the_log_start_was_written_down() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = manager.get_or_create(PARTITION)
    for _ in range(3):
        append(log)
        log.roll()
    log.flush()
    log.raise_high_watermark(3)
    log.raise_start_offset(2)
    manager.checkpoint()
    history = disk.record()
    apply_retention(manager)
    manager.checkpoint()
    starts = {log and log.start_offset for log in after_cuts(history)}
    assert starts == {2}


def test_an_index_is_rebuilt_again_when_its_rebuilding_was_interrupted() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = manager.get_or_create(PARTITION)
    for number in range(12):
        append(log, timestamp=START_MS + number)
    log.roll()
    append(log)
    log.roll()
    log.flush()
    manager.checkpoint()
    disk.unlink("/data/logs/t-0/00000000000000000000.timeindex")
    manager.abandon()
    history = disk.record()
    open_manager(disk).abandon()
    for state in crash_states(history):
        recovered = open_manager(state.disk()).logs[PARTITION]
        found = log_reader.find_timestamp(recovered, START_MS + 11)
        assert found is not None, state.describe()
        assert found.offset == 11


def test_a_log_is_cut_whole_or_not_at_all() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = manager.get_or_create(PARTITION)
    for number in range(12):
        append(log, timestamp=START_MS + number)
        if number == 9:
            log.roll()
    log.flush()
    manager.checkpoint()
    history = disk.record()
    truncate(manager, PARTITION, 8)
    for state in crash_states(history):
        recovered = open_manager(state.disk()).logs[PARTITION]
        assert recovered.end_offset in (8, 10, 12)
        for timestamp in range(START_MS, START_MS + recovered.end_offset):
            found = log_reader.find_timestamp(recovered, timestamp)
            assert found is not None, state.describe()
            assert found.timestamp == timestamp
