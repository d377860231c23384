"""Verify: silent on what is healthy, and names what is not by file, position and offset."""

from __future__ import annotations

import random
import shutil
import uuid
from pathlib import Path

import pytest

from ottla.logtools.findings import Finding
from ottla.logtools.listing import Partition, resolve
from ottla.logtools.verify.data_dir import verify
from ottla.records import batch
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.record import read_batches
from ottla.storage.fs import RealFile, RealFileSystem
from ottla.testing.runtime import START_MS
from tests import corpus
from tests.logtools.making import ORDERS, append, check, defects, fill, open_manager

FIRST, SECOND, LAST = (f"{base:020d}" for base in (0, 42, 130))


def change(path: Path, position: int, value: int | None = None) -> None:
    """Change one byte: to `value`, or its lowest bit."""
    data = bytearray(path.read_bytes())
    data[position] = data[position] ^ 1 if value is None else value
    path.write_bytes(data)


def batches(path: Path) -> list[tuple[int, batch.BatchHeader]]:
    return list(read_batches(path.read_bytes()))


def set_base_offset(path: Path, number: int, base_offset: int) -> int:
    """Returns where the batch lies."""
    data = bytearray(path.read_bytes())
    position, header = batches(path)[number]
    batch.patch_offsets(data, position, base_offset, header.leader_epoch)
    path.write_bytes(data)
    return position


def one(found: list[Finding], code: str) -> Finding:
    matching = [finding for finding in found if finding.code == code]
    assert len(matching) == 1, found
    return matching[0]


def test_a_healthy_data_directory_gives_no_finding(pristine: Path) -> None:
    assert check(pristine) == []


def test_a_healthy_partition_segment_and_index_give_no_finding(pristine: Path) -> None:
    assert check(pristine / "orders-0") == []
    assert check(pristine / "orders-0" / f"{SECOND}.log") == []
    assert check(pristine / "orders-0" / f"{LAST}.timeindex") == []
    assert check(pristine / "orders-0" / f"{SECOND}.snapshot") == []
    assert check(pristine / "orders-0" / "leader-epoch-checkpoint") == []
    assert check(pristine / "recovery-point-offset-checkpoint") == []


@pytest.mark.parametrize("name", corpus.NAMES)
def test_directories_of_kafka_have_no_defect(kafka_dirs: dict[str, Path], name: str) -> None:
    assert defects(kafka_dirs[name]) == []


def test_a_partition_of_kafka_alone_has_no_defect(kafka_dirs: dict[str, Path], tmp_path: Path) -> None:
    for name, path in kafka_dirs.items():
        for partition in ("codec-zstd-0", "txn-0", "large-0", "wide-1"):
            copy = tmp_path / name / partition
            shutil.copytree(path / partition, copy)
            assert defects(copy) == []


# Bytes that nothing contradicts: ids and values that may be anything. What they hold is not in any log.
FREE = {"meta.properties", ".kafka_cleanshutdown", "replication-offset-checkpoint", ".lock"}


@pytest.mark.slice
@pytest.mark.parametrize("seed", range(2))
def test_any_changed_byte_is_found_in_its_file(data_dir: Path, seed: int) -> None:
    rng = random.Random(seed)
    files = [path for path in sorted(data_dir.rglob("*")) if path.is_file() and path.name not in FREE]
    for _ in range(150):
        path = rng.choice(files)
        before = path.read_bytes()
        position, flipped = rng.randrange(len(before)), rng.randrange(1, 256)
        change(path, position, before[position] ^ flipped)
        found = defects(data_dir)
        assert str(path) in {finding.file for finding in found}, (seed, path.name, position, flipped, found)
        path.write_bytes(before)
    assert check(data_dir) == []


def test_a_changed_record_is_named_by_its_batch_and_nothing_else_is(log_dir: Path) -> None:
    path = log_dir / f"{SECOND}.log"
    position, header = batches(path)[2]
    change(path, position + batch.HEADER_SIZE + 3)
    found = defects(log_dir)
    assert [(f.code, f.file, f.position, f.offset) for f in found] == [
        ("bad-crc", str(path), position, header.base_offset)
    ]
    assert "checksum" in found[0].meaning


def test_a_batch_that_claims_to_be_longer_than_the_file_is_a_defect_with_the_batches_behind_it_checked(
    log_dir: Path,
) -> None:
    path = log_dir / f"{LAST}.log"
    position, _ = batches(path)[1]
    change(path, position + 8, 0x10)
    later, _ = batches(log_dir.parent / "orders-1" / f"{LAST}.log")[4]
    change(path, later + batch.HEADER_SIZE)
    found = [f for f in defects(log_dir) if f.file == str(path)]
    assert [(f.code, f.position) for f in found] == [("truncated-batch", position), ("bad-crc", later)]


def test_a_wrong_length_of_the_last_batch_is_not_taken_for_a_torn_one(log_dir: Path) -> None:
    path = log_dir / f"{LAST}.log"
    position, _ = batches(path)[-1]
    change(path, position + 10)
    assert one(defects(log_dir), "truncated-batch").position == position


@pytest.mark.parametrize("number", [0, 1, 5])
@pytest.mark.parametrize("shift", [-20, 3, 1 << 40])
def test_a_wrong_base_offset_is_blamed_on_the_batch_that_has_it(
    log_dir: Path, number: int, shift: int
) -> None:
    path = log_dir / f"{SECOND}.log"
    right = batches(path)[number][1].base_offset
    position = set_base_offset(path, number, right + shift)
    found = [f for f in defects(log_dir) if f.code == "base-offset"]
    assert [(f.file, f.position, f.offset) for f in found] == [(str(path), position, right + shift)]


def test_a_wrong_base_offset_in_the_last_batch_of_all_is_a_gap(log_dir: Path) -> None:
    path = log_dir / f"{LAST}.log"
    right = batches(path)[-1][1].base_offset
    position = set_base_offset(path, -1, right + 3)
    found = one(defects(log_dir), "gap")
    assert (found.file, found.position, found.offset) == (str(path), position, right)


def test_a_wrong_leader_epoch_is_found_by_the_checkpoint_and_without_one_by_the_order(log_dir: Path) -> None:
    path = log_dir / f"{SECOND}.log"
    position, header = batches(path)[5]
    change(path, position + 15, header.leader_epoch + 1)
    found = one(defects(log_dir), "leader-epoch")
    assert (found.file, found.position, found.offset) == (str(path), position, header.base_offset)
    (log_dir / "leader-epoch-checkpoint").unlink()
    found = one(defects(log_dir), "leader-epoch")
    assert found.position is not None
    assert found.position > position


def test_a_wrong_epoch_in_the_checkpoint_is_blamed_on_the_checkpoint(log_dir: Path) -> None:
    path = log_dir / "leader-epoch-checkpoint"
    text = path.read_text()
    assert text == "0\n3\n0 0\n1 52\n2 104\n"
    path.write_text(text.replace("2 104", "5 104"))
    assert (
        one(defects(log_dir), "epoch-checkpoint").file,
        one(defects(log_dir), "epoch-checkpoint").position,
    ) == (
        str(path),
        13,
    )
    path.write_text(text.replace("2 104", "2 105"))
    assert one(defects(log_dir), "epoch-checkpoint").file == str(path)
    path.write_text(text.replace("2 104", "2 1040"))
    assert any("past the log's end" in finding.meaning for finding in defects(log_dir))


# -- what a kill -9 or a running writer leaves


def test_an_open_log_is_as_good_as_a_closed_one(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    fill(manager.get_or_create(ORDERS))
    assert check(tmp_path) == []
    manager.abandon()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_kafka_has_grown_for_its_active_segment_has_only_a_note(
    tmp_path: Path, suffix: str
) -> None:
    manager = open_manager(tmp_path)
    log = manager.get_or_create(ORDERS)
    fill(log)
    index = Path(log.segments.active.path(suffix))
    with index.open("ab") as file:
        file.write(bytes(12 * 8 * 10))
    assert [(f.level, f.code, f.file) for f in check(tmp_path)] == [("note", "zero-tail", str(index))]
    manager.abandon()


@pytest.mark.parametrize("cut", [1, 40, 66])
def test_a_torn_last_batch_of_the_active_segment_is_a_note(log_dir: Path, cut: int) -> None:
    path = log_dir / f"{LAST}.log"
    position, header = batches(path)[-1]
    assert header.size == 78
    was_killed(log_dir.parent, flushed=header.base_offset)
    path.write_bytes(path.read_bytes()[:-cut])
    found = check(log_dir)
    assert {f.level for f in found} == {"note"}
    torn = one(found, "torn-batch")
    assert (torn.file, torn.position, torn.offset) == (str(path), position, header.base_offset)


def was_killed(data_dir: Path, flushed: int) -> None:
    """As if the writer had been killed when it had flushed up to this offset."""
    (data_dir / ".kafka_cleanshutdown").unlink()
    points = data_dir / "recovery-point-offset-checkpoint"
    points.write_text(points.read_text().replace(" 156", f" {flushed}"))


def test_a_torn_last_batch_of_another_segment_is_a_defect(log_dir: Path) -> None:
    path = log_dir / f"{SECOND}.log"
    path.write_bytes(path.read_bytes()[:-1])
    assert one(defects(log_dir), "truncated-batch").file == str(path)


def test_zeros_at_the_end_of_the_active_log_are_a_note_and_of_another_a_defect(log_dir: Path) -> None:
    with (log_dir / f"{LAST}.log").open("ab") as file:
        file.write(bytes(5000))
    assert [(f.level, f.code) for f in check(log_dir)] == [("note", "zero-tail")]
    with (log_dir / f"{FIRST}.log").open("ab") as file:
        file.write(bytes(5000))
    assert one(defects(log_dir), "bad-length").file == str(log_dir / f"{FIRST}.log")


def test_a_missing_index_is_a_note_for_the_active_segment_only(log_dir: Path) -> None:
    for suffix in (".index", ".timeindex", ".snapshot"):
        (log_dir / f"{LAST}{suffix}").unlink()
    assert {(f.level, f.code) for f in check(log_dir)} == {("note", "missing-index")}
    (log_dir / f"{FIRST}.index").unlink()
    assert one(defects(log_dir), "missing-index").file == str(log_dir / f"{FIRST}.index")


def test_a_missing_transaction_index_is_a_defect_where_transactions_were_aborted(log_dir: Path) -> None:
    (log_dir / f"{LAST}.txnindex").unlink()
    found = one(defects(log_dir), "txn-index-missing")
    assert (found.file, found.offset) == (str(log_dir / f"{LAST}.txnindex"), 155)


def test_a_time_index_that_ends_too_early_is_a_defect_in_a_closed_segment(log_dir: Path) -> None:
    for name in (FIRST, LAST):
        path = log_dir / f"{name}.timeindex"
        path.write_bytes(path.read_bytes()[:-12])
    assert one(defects(log_dir), "time-index-short").file == str(log_dir / f"{FIRST}.timeindex")


def test_leftovers_orphans_and_strange_files_are_notes(log_dir: Path) -> None:
    for name in (
        f"{FIRST}.log.deleted",
        f"{FIRST}.log.cleaned",
        f"{FIRST}.index.swap",
        f"{99:020d}.index",
        "notes.txt",
    ):
        (log_dir / name).write_bytes(b"x")
    assert sorted((f.level, f.code) for f in check(log_dir)) == [
        ("note", "leftover"),
        ("note", "leftover"),
        ("note", "leftover"),
        ("note", "orphan-index"),
        ("note", "unknown-file"),
    ]


class Vanishing(RealFileSystem):
    """Removes a file just before it is opened, as retention does."""

    def __init__(self, victim: str) -> None:
        self._victim = victim

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        if path == self._victim and Path(path).exists():
            log_dir = Path(path).parent
            for other in log_dir.glob(Path(path).stem + ".*"):
                other.unlink()
            # The epochs are moved on first; here that comes before anybody can see the difference.
            first = min(int(other.stem) for other in log_dir.glob("*.log"))
            epochs = log_dir / "leader-epoch-checkpoint"
            lines = epochs.read_text().splitlines()
            lines[2] = f"{lines[2].split()[0]} {first}"
            epochs.write_text("".join(f"{line}\n" for line in lines))
        return super().open(path, write=write, create=create)


def test_a_segment_that_vanishes_while_it_is_checked_is_no_defect(log_dir: Path) -> None:
    fs = Vanishing(str(log_dir / f"{FIRST}.log"))
    found = list(verify(fs, resolve(fs, str(log_dir))))
    assert [f for f in found if f.level == "defect"] == []


class Growing(RealFileSystem):
    """Appends to the log whenever a file of it is opened, as a running broker does."""

    def __init__(self, path: Path) -> None:
        self._manager = open_manager(path)
        self._log = self._manager.get_or_create(ORDERS)
        fill(self._log)
        self.number = 36

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        for _ in range(3):
            append(self._log, self.number)
            self.number += 1
        return super().open(path, write=write, create=create)

    def stop(self) -> None:
        self._manager.abandon()


def test_a_log_that_grows_while_it_is_checked_has_no_defect(tmp_path: Path) -> None:
    fs = Growing(tmp_path)
    found = list(verify(fs, resolve(fs, str(tmp_path))))
    assert [f for f in found if f.level == "defect"] == []
    assert fs.number > 36
    fs.stop()


# -- gaps and compaction


def test_a_gap_is_a_defect_unless_the_log_was_compacted(data_dir: Path, log_dir: Path) -> None:
    path = log_dir / f"{LAST}.log"
    data = path.read_bytes()
    position, header = batches(path)[3]
    path.write_bytes(data[:position] + data[position + header.size :])
    for suffix in (".index", ".timeindex", ".txnindex"):
        (log_dir / f"{LAST}{suffix}").unlink()
    gap = one(check(log_dir), "gap")
    assert (gap.level, gap.file, gap.position, gap.offset) == (
        "defect",
        str(path),
        position,
        header.base_offset,
    )
    (data_dir / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 130\n")
    assert one(check(log_dir), "gap").level == "note"


# -- a data directory's own files


@pytest.mark.parametrize(
    ("name", "old", "new", "meaning"),
    [
        ("recovery-point-offset-checkpoint", "orders 0 156", "orders 0 155", "closed at 156"),
        ("recovery-point-offset-checkpoint", "orders 1 156", "orders 1 999", "past the log's end 156"),
        ("replication-offset-checkpoint", "orders 0 156", "orders 0 157", "past the log's end 156"),
        ("replication-offset-checkpoint", "orders 1", "orders 7", "there is no partition orders-7"),
        ("replication-offset-checkpoint", "orders 1", "orders 0", "orders-0 stands there twice"),
        ("replication-offset-checkpoint", "0\n2", "0\n3", "3 entries are announced, 2 are there"),
        ("replication-offset-checkpoint", "0\n2", "1\n2", "version"),
        ("replication-offset-checkpoint", " 156\norders 1", " 1x6\norders 1", "'1x6' is not a number"),
        ("meta.properties", "version=1", "version=9", "version '9' is not known"),
        ("meta.properties", "node.id=1", "node.id=x", "node.id"),
        (".kafka_cleanshutdown", '"version":0', '"version":3', "version 3"),
    ],
)
def test_a_wrong_entry_in_a_file_of_the_data_directory_is_named(
    data_dir: Path, name: str, old: str, new: str, meaning: str
) -> None:
    path = data_dir / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    found = [f for f in defects(data_dir) if f.file == str(path)]
    assert any(meaning in f.meaning for f in found), found


def test_partitions_of_one_topic_must_have_one_topic_id(data_dir: Path) -> None:
    path = data_dir / "orders-1" / "partition.metadata"
    text = path.read_text()
    path.write_text(text.replace(text[-22:], "AAAAAAAAAAAAAAAAAAAAAQ"))
    for where in (data_dir, data_dir / "orders-0"):
        files = {f.file for f in defects(where)}
        assert files == {str(data_dir / f"orders-{n}" / "partition.metadata") for n in (0, 1)}
    assert str(uuid.UUID(int=1)) in one(defects(data_dir / "orders-1")[:1], "partition-metadata").meaning


def test_a_strange_directory_is_a_defect_and_a_doomed_one_a_note(data_dir: Path) -> None:
    (data_dir / "backup").mkdir()
    (data_dir / f"orders-9.{'a' * 32}-delete").mkdir()
    assert sorted((f.level, f.code) for f in check(data_dir)) == [
        ("defect", "strange-directory"),
        ("note", "marked-directory"),
    ]


# -- what else may be wrong inside batches


def test_a_compressed_batch_whose_records_cannot_be_read_is_named_though_its_crc_matches(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t-0"
    path.mkdir()
    bad = build_batch([NewRecord(START_MS, None, b"v" * 100)], codec=Codec.GZIP, leader_epoch=0)
    bad[-10] ^= 0xFF
    batch.write_crc(bad, 0, len(bad))
    good = build_batch([NewRecord(START_MS, None, b"v")], base_offset=1, leader_epoch=0)
    (path / f"{FIRST}.log").write_bytes(bad + good)
    found = [f for f in check(path) if f.level == "defect"]
    assert [(f.code, f.position, f.offset) for f in found] == [("bad-record", 0, 0)]


def test_a_compressed_batch_larger_than_the_window_is_read_through(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    path.mkdir()
    records = [NewRecord(START_MS, b"%d" % n, bytes(200_000)) for n in range(40)]
    whole = build_batch(records, codec=Codec.ZSTD, leader_epoch=0)
    assert len(whole) < 100_000
    (path / f"{FIRST}.log").write_bytes(whole)
    assert defects(path) == []
    fewer = bytearray(whole)
    fewer[57:61] = (39).to_bytes(4, "big")
    batch.write_crc(fewer, 0, len(fewer))
    (path / f"{FIRST}.log").write_bytes(fewer)
    assert one(defects(path), "bad-record").position == 0


def test_memory_does_not_grow_with_the_number_of_findings(log_dir: Path) -> None:
    path = log_dir / f"{LAST}.index"
    path.write_bytes(b"\0\0\0\1\0\0\0\1" * 100_000)
    found = defects(log_dir)
    assert len(found) < 50
    assert any("more like this" in f.meaning for f in found)


def test_the_check_of_a_segment_reads_its_log_once(log_dir: Path) -> None:
    reads: list[int] = []

    class Counting(RealFileSystem):
        def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
            assert not write
            assert not create
            reads.append(1)
            return super().open(path)

    fs = Counting()
    target = resolve(fs, str(log_dir))
    assert isinstance(target, Partition)
    assert list(verify(fs, target)) == []
    assert len(reads) == len(target.segments)
