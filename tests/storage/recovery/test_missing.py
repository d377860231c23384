"""What is missing of a log when it is loaded is put on record, and what is only odd is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.config import BrokerConfig, LogConfig
from ottla.names import TopicPartition
from ottla.storage import losses, upkeep
from ottla.storage.fs import RealFileSystem
from ottla.storage.layout import segment_file
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.steps import apply_retention
from tests.storage.world import append, read_all

KEY = TopicPartition("t", 0)
BASES = (0, 10, 20, 30)
END = 40
CLEAN = [True, False]


class Dir:
    """A data directory with one partition of four segments, ten offsets each."""

    def __init__(self, root: Path, **config: object) -> None:
        self.root = root
        self.path = root / str(KEY)
        self.config = LogConfig(index_interval_bytes=100, **config)  # type: ignore[arg-type]
        self.manager = self.open()
        log = self.manager.get_or_create(KEY)
        for number in range(20):
            if number and number % 5 == 0:
                log.roll()
            append(log, 2, value=b"%d" % number * 30, epoch=1)
        log.flush()
        log.raise_high_watermark(END)
        self.manager.checkpoint()

    def open(self) -> LogManager:
        manager = LogManager(
            RealFileSystem(),
            SimulatedRuntime(),
            BrokerConfig(log_dirs=(str(self.root),)),
            defaults=self.config,
        )
        manager.open()
        self.manager = manager
        return manager

    def stop(self, *, clean: bool = True) -> None:
        if clean:
            self.manager.close()
        else:
            self.manager.abandon()

    def log_of(self, base: int) -> Path:
        return self.path / segment_file(base, ".log")

    def start(self) -> Log:
        return self.open().get_or_create(KEY)

    def lost(self) -> list[tuple[int, int]]:
        found = losses.read(RealFileSystem(), str(self.path)).losses
        return [(loss.first_offset, loss.end_offset) for loss in found]

    def said(self) -> list[str]:
        return [loss.describe() for _, loss in self.manager.losses()]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Dir]:
    made = Dir(tmp_path / "data")
    yield made
    made.manager.abandon()


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("clean", CLEAN)
def test_a_healthy_log_has_nothing_on_record(data: Dir, clean: bool) -> None:
    data.stop(clean=clean)
    assert offsets(data.start()) == list(range(END))
    assert data.lost() == []
    assert data.manager.notices() == []
    assert not (data.path / losses.FILE).exists()


@pytest.mark.parametrize("clean", CLEAN)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("how", ["zeroed", "deleted", "cut"])
def test_a_segment_that_is_gone_is_named_by_its_offsets(data: Dir, clean: bool, base: int, how: str) -> None:
    data.stop(clean=clean)
    path, first = data.log_of(base), base
    if how == "zeroed":
        zero(path)
    elif how == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-10])
        first = base + 8
    log = data.start()
    assert offsets(log) == [offset for offset in range(END) if not first <= offset < base + 10]
    assert data.lost() == [(first, base + 10)]
    assert f"({first} to {base + 9}) missing in" in data.said()[0]
    assert data.manager.missing_offsets() == {KEY: base + 10 - first}


@pytest.mark.parametrize("clean", CLEAN)
def test_it_is_said_at_every_start_until_it_is_acknowledged(data: Dir, clean: bool) -> None:
    data.stop(clean=clean)
    zero(data.log_of(30))
    data.start()
    said = data.said()
    for again in CLEAN:
        data.stop(clean=again)
        data.start()
        assert data.said() == said
    losses.acknowledge(data.manager._fs, str(data.path), 5)
    assert data.manager.missing_offsets() == {KEY: 0}
    data.stop()
    data.start()
    assert data.said() == []
    assert data.manager.missing_offsets() == {}


def test_the_end_can_be_lost_again_after_new_records_took_its_offsets(data: Dir) -> None:
    for number in range(2):
        data.stop()
        zero(data.log_of(30))
        log = data.start()
        assert data.lost() == [(30, END)] * (number + 1)
        losses.acknowledge(data.manager._fs, str(data.path), 5)
        for _ in range(5):
            append(log, 2, epoch=1)
        assert log.end_offset == END


@pytest.mark.parametrize("clean", CLEAN)
def test_a_directory_that_is_gone_comes_back_empty_with_its_loss(data: Dir, clean: bool) -> None:
    data.stop(clean=clean)
    for file in data.path.iterdir():
        file.unlink()
    data.path.rmdir()
    data.open()
    assert "40 offsets (0 to 39) missing in t-0" in data.said()[0]
    assert data.manager.get(KEY) is None
    assert data.manager.get_or_create(KEY).end_offset == 0
    assert data.manager.missing_offsets() == {KEY: END}
    assert len(data.said()) == 1
    data.stop()
    data.start()
    assert data.lost() == [(0, END)]


def test_an_empty_directory_counts_from_the_log_start(data: Dir) -> None:
    log = data.manager.get_or_create(KEY)
    log.raise_start_offset(15)
    data.stop()
    for file in data.path.iterdir():
        file.unlink()
    assert offsets(data.start()) == []
    assert data.lost() == [(15, END)]


@pytest.mark.parametrize("clean", CLEAN)
def test_what_retention_took_out_is_not_missing(data: Dir, clean: bool) -> None:
    log = data.manager.get_or_create(KEY)
    log.raise_start_offset(25)
    apply_retention(data.manager)
    data.stop(clean=clean)
    assert offsets(data.start())[0] in (20, 25)
    assert data.lost() == []


def test_the_first_segment_is_missing_where_the_leader_epochs_begin_before_it(data: Dir) -> None:
    data.stop(clean=False)
    for file in data.path.glob(segment_file(0, ".*")):
        file.unlink()
    data.start()
    assert data.lost() == [(0, 10)]


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
def test_after_a_clean_stop_other_files_know_the_end_too(data: Dir, name: str) -> None:
    data.stop()
    (data.root / name).unlink()
    zero(data.log_of(30))
    data.start()
    assert data.lost() == [(30, END)]


def test_a_checkpoint_that_cannot_be_read_is_named_and_nothing_is_lost(data: Dir) -> None:
    data.stop()
    (data.root / "recovery-point-offset-checkpoint").write_bytes(b"\0" * 20)
    data.start()
    assert "recovery-point-offset-checkpoint" in data.manager.notices()[0]
    assert data.lost() == []


def test_a_checkpoint_past_the_end_at_which_the_log_was_closed_is_wrong(data: Dir) -> None:
    data.stop()
    path = data.root / "recovery-point-offset-checkpoint"
    path.write_text(path.read_text().replace("40", "90"))
    data.start()
    assert data.lost() == []


def test_a_page_of_zeros_in_a_file_that_was_touched_after_the_stop_is_found(data: Dir) -> None:
    data.stop()
    path = data.log_of(10)
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    log = data.start()
    [(first, end)] = data.lost()
    assert (first, end) == (12, 14)
    assert path.read_bytes() == content  # it stays as it is, for a repair
    assert log.end_offset == END


# -- what recovery cuts


def test_recovery_says_what_it_cuts_and_keeps_what_is_whole(data: Dir) -> None:
    log = data.manager.get_or_create(KEY)
    for _ in range(10):
        append(log, 2, epoch=1)
    data.stop(clean=False)
    path = data.log_of(30)
    whole = path.read_bytes()
    size = len(whole)
    at = whole.rindex(b"value") - 400  # one byte of a batch above the recovery point
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    log = data.start()
    [loss] = losses.read(RealFileSystem(), str(data.path)).losses
    assert loss.found_by == losses.RECOVERY
    assert (loss.first_offset, loss.end_offset) == (log.end_offset, 60)
    assert loss.position == path.stat().st_size
    assert loss.size_bytes == size - loss.position
    assert loss.batches == (60 - log.end_offset) // 2 - 1  # all but the damaged one
    assert loss.reason == "the checksum does not match"
    assert loss.kept_in is not None
    kept = (data.path / loss.kept_in).read_bytes()
    assert kept[-1:] == whole[-1:]
    assert len(kept) == loss.size_bytes


def test_segments_behind_a_cut_are_kept_aside(data: Dir) -> None:
    (data.root / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 10\n")
    data.stop(clean=False)
    path = data.log_of(10)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    log = data.start()
    assert log.end_offset == 18
    assert data.lost() == [
        (20, 30),
        (30, 40),
    ]  # the last batch of the second segment has nothing whole behind it
    assert {file.name for file in data.path.glob("*.quarantine")} == {
        segment_file(20, ".quarantine"), segment_file(30, ".quarantine")
    }  # fmt: skip


def test_a_torn_tail_is_told_in_one_line_and_is_no_loss(data: Dir) -> None:
    log = data.manager.get_or_create(KEY)
    append(log, 2, epoch=1)
    data.stop(clean=False)
    path = data.log_of(30)
    path.write_bytes(path.read_bytes()[:-3])
    data.start()
    assert data.lost() == []
    [notice] = data.manager.notices()
    assert "are not a whole batch (cut short) and were cut off; the log ends at offset 40" in notice
    assert not list(data.path.glob("*.quarantine"))


# -- files under wrong names


@pytest.mark.parametrize("clean", CLEAN)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("target", [99_999, 15])
def test_a_renamed_segment_gets_its_name_back(data: Dir, clean: bool, base: int, target: int) -> None:
    data.stop(clean=clean)
    data.log_of(base).rename(data.log_of(target))
    assert offsets(data.start()) == list(range(END))
    assert data.lost() == []
    assert "named after them again" in data.manager.notices()[0]


@pytest.mark.parametrize("clean", CLEAN)
@pytest.mark.parametrize("target", [99_999, 15, 5, 31])
def test_a_copy_under_a_wrong_name_is_kept_aside(data: Dir, clean: bool, target: int) -> None:
    data.stop(clean=clean)
    copied = data.log_of(20).read_bytes()
    data.log_of(target).write_bytes(copied)
    log = data.start()
    assert offsets(log) == list(range(END))
    assert log.end_offset == END
    assert data.lost() == []
    assert "which do not belong under this name" in data.manager.notices()[0]
    assert (data.path / segment_file(target, ".quarantine")).read_bytes() == copied


# -- logs that may have holes


def test_holes_of_a_log_that_was_compacted_once_are_no_loss(tmp_path: Path) -> None:
    data = Dir(tmp_path / "data", cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
    assert upkeep.clean_dirtiest(data.manager) is not None
    data.stop()
    (data.root / "cleaner-offset-checkpoint").unlink()
    data.config = LogConfig()
    log = data.start()
    assert len(offsets(log)) < END
    assert data.lost() == []
    data.manager.abandon()


def test_a_hole_beside_one_that_is_on_record_is_still_found(data: Dir) -> None:
    data.stop()
    data.log_of(10).unlink()
    data.start()
    losses.acknowledge(data.manager._fs, str(data.path), 5)
    data.stop()
    data.log_of(20).unlink()
    data.start()
    assert data.lost() == [(10, 20), (20, 30)]
