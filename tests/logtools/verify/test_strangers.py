"""Segments under a wrong name: `verify` tells which they are, and `repair` puts names right and cuts nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla.cli.log import repair as log_repair
from ottla.logtools.listing import list_partition, resolve
from ottla.logtools.repair.names import put_in_place
from ottla.logtools.verify.find_strangers import find_strangers
from ottla.records import batch
from ottla.records.record import read_batches
from ottla.storage.fs import RealFileSystem
from tests.logtools.making import defects

FS = RealFileSystem()
INDEXES = (".index", ".timeindex", ".txnindex")
BASES = (0, 42, 86, 130)  # the log ends at 156


def name(base: int, suffix: str = ".log") -> str:
    return f"{base:020d}{suffix}"


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def copy(log_dir: Path, source: int, target: int, suffixes: tuple[str, ...] = ()) -> None:
    for suffix in (".log", *suffixes):
        shutil.copy(log_dir / name(source, suffix), log_dir / name(target, suffix))


def rename(log_dir: Path, source: int, target: int, suffixes: tuple[str, ...] = ()) -> None:
    for suffix in (".log", *suffixes):
        (log_dir / name(source, suffix)).rename(log_dir / name(target, suffix))


def swap(log_dir: Path, one: int, other: int, suffixes: tuple[str, ...] = ()) -> None:
    rename(log_dir, one, 777, suffixes)
    rename(log_dir, other, one, suffixes)
    rename(log_dir, 777, other, suffixes)


def repair(path: Path) -> bool:
    return log_repair.run(FS, resolve(FS, str(path)), write=True, skip_corrupt=True, as_json=False)


@pytest.mark.parametrize("suffixes", [(), INDEXES])
@pytest.mark.parametrize(
    ("source", "target"), [(42, 17), (42, 60), (130, 17), (130, 140), (0, 999), (42, 99_999)]
)
def test_a_stray_copy_is_set_aside_whole_and_nothing_else_is_touched(
    data_dir: Path, log_dir: Path, source: int, target: int, suffixes: tuple[str, ...]
) -> None:
    before = contents(log_dir)
    copy(log_dir, source, target, suffixes)
    assert [(found.code, found.file) for found in defects(data_dir)] == [
        ("stray-segment", str(log_dir / name(target)))
    ]
    assert repair(data_dir)
    after = contents(log_dir)
    assert after.pop(name(target) + ".quarantine") == before[name(source)]
    assert {key for key in after if not key.endswith(".quarantine")} == set(before)
    assert {key: data for key, data in after.items() if key in before} == before
    assert defects(data_dir) == []


@pytest.mark.parametrize("suffixes", [(), INDEXES, (*INDEXES, ".snapshot")])
@pytest.mark.parametrize(
    ("source", "target"), [(42, 99_999), (42, 41), (42, 43), (42, 5), (130, 5), (130, 131), (86, 160)]
)
def test_a_renamed_segment_gets_its_name_back(
    data_dir: Path, log_dir: Path, source: int, target: int, suffixes: tuple[str, ...]
) -> None:
    before = contents(log_dir)
    rename(log_dir, source, target, suffixes)
    assert ("misnamed-segment", str(log_dir / name(target))) in [(f.code, f.file) for f in defects(data_dir)]
    assert repair(data_dir)
    assert contents(log_dir) == before


@pytest.mark.parametrize("suffixes", [(), INDEXES])
@pytest.mark.parametrize(("one", "other"), [(0, 42), (42, 86), (0, 130), (86, 130)])
def test_exchanged_segments_are_exchanged_again(
    data_dir: Path, log_dir: Path, one: int, other: int, suffixes: tuple[str, ...]
) -> None:
    before = contents(log_dir)
    swap(log_dir, one, other, suffixes)
    assert repair(data_dir)
    assert contents(log_dir) == before


def test_a_rename_is_proposed_before_it_is_done(
    data_dir: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rename(log_dir, 42, 99_999)
    before = contents(log_dir)
    target = resolve(FS, str(data_dir))
    assert log_repair.run(FS, target, write=False, skip_corrupt=False, as_json=False)
    assert f"rename: {log_dir / name(99_999)}: to {name(42)}" in capsys.readouterr().out
    assert contents(log_dir) == before


def test_a_repair_that_was_interrupted_between_two_names_is_finished_by_the_next(
    data_dir: Path, log_dir: Path
) -> None:
    before = contents(log_dir)

    class Stopping(RealFileSystem):
        allowed = 0

        def rename(self, source: str, target: str) -> None:
            if self.allowed == 0:
                raise KeyboardInterrupt
            self.allowed -= 1
            super().rename(source, target)

    for allowed in range(12):
        swap(log_dir, 42, 86, INDEXES)
        fs = Stopping()
        fs.allowed = allowed
        partition = list_partition(fs, str(log_dir))
        try:
            put_in_place(fs, partition, find_strangers(fs, partition))
        except KeyboardInterrupt:
            assert defects(log_dir)
        assert repair(data_dir)
        now = contents(log_dir)
        assert {key: now[key] for key in before if key.endswith(".log")} == {
            key: data for key, data in before.items() if key.endswith(".log")
        }
        assert defects(data_dir) == []
        for extra in set(now) - set(before):
            (log_dir / extra).unlink()
        for key, data in before.items():
            (log_dir / key).write_bytes(data)


def test_an_intact_copy_takes_the_place_of_a_destroyed_original(data_dir: Path, log_dir: Path) -> None:
    good = (log_dir / name(42)).read_bytes()
    copy(log_dir, 42, 17)
    bad = bytes(len(good) // 2) + good[len(good) // 2 :]
    (log_dir / name(42)).write_bytes(bad)
    assert repair(data_dir)
    assert (log_dir / name(42)).read_bytes() == good
    assert (log_dir / (name(42) + ".quarantine")).read_bytes() == bad


def test_what_was_set_aside_before_is_not_overwritten(data_dir: Path, log_dir: Path) -> None:
    for source in (42, 86):
        copy(log_dir, source, 17)
        assert repair(data_dir)
    assert (log_dir / (name(17) + ".quarantine")).read_bytes() == (log_dir / name(42)).read_bytes()
    assert (log_dir / (name(17) + ".2.quarantine")).read_bytes() == (log_dir / name(86)).read_bytes()


def shifted(data: bytes, offsets: int, epoch: int | None = None) -> bytes:
    """The same batches at other offsets, as another partition may have them."""
    out = bytearray(data)
    for position, header in read_batches(data):
        leader_epoch = header.leader_epoch if epoch is None else epoch
        batch.patch_offsets(out, position, header.base_offset + offsets, leader_epoch)
    return bytes(out)


def test_a_segment_of_another_log_is_the_one_that_joins_no_neighbour(data_dir: Path, log_dir: Path) -> None:
    before = contents(log_dir)
    foreign = shifted(before[name(42)], 18)
    (log_dir / name(60)).write_bytes(foreign)  # its offsets are those of its name
    assert [f.code for f in defects(log_dir)] == ["stray-segment"]
    assert repair(data_dir)
    assert (log_dir / (name(60) + ".quarantine")).read_bytes() == foreign
    assert {key: (log_dir / key).read_bytes() for key in before} == before


def two_of_equal_right(log_dir: Path, epoch: int | None = None) -> None:
    """Two files whose offsets overlap, and no neighbour or index to decide; the second may have another epoch."""
    for path in (*log_dir.glob("*86.*"), *log_dir.glob("*130.*"), *log_dir.glob("*42.*")):
        if path.name != name(42):
            path.unlink()
    data = (log_dir / name(42)).read_bytes()
    (log_dir / name(42)).unlink()
    (log_dir / name(50)).write_bytes(shifted(data, 8))
    (log_dir / name(66)).write_bytes(shifted(data, 24, epoch))


def test_where_it_cannot_be_told_both_files_stay_and_nothing_is_cut(
    data_dir: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_of_equal_right(log_dir)
    (log_dir / "leader-epoch-checkpoint").unlink()
    before = contents(log_dir)
    assert not repair(log_dir)
    assert contents(log_dir) == before
    assert "cannot be told" in capsys.readouterr().out


def test_an_epoch_that_this_log_never_had_decides(log_dir: Path) -> None:
    two_of_equal_right(log_dir, epoch=9)
    (log_dir / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    path = log_dir / name(50)
    path.write_bytes(shifted(path.read_bytes(), 0, 0))
    found = find_strangers(FS, list_partition(FS, str(log_dir)))
    assert [(one.segment.base_offset, one.verdict) for one in found] == [(66, "set-aside")]


@pytest.mark.parametrize("number", [0, 1, 5])
@pytest.mark.parametrize("shift", [-20, 3, 1 << 40])
def test_one_batch_with_a_wrong_offset_does_not_make_its_segment_a_stranger(
    log_dir: Path, number: int, shift: int
) -> None:
    path = log_dir / name(42)
    data = bytearray(path.read_bytes())
    position, header = list(read_batches(bytes(data)))[number]
    batch.patch_offsets(data, position, header.base_offset + shift, header.leader_epoch)
    path.write_bytes(data)
    assert find_strangers(FS, list_partition(FS, str(log_dir))) == []
