"""Verify while a broker changes the directory under its hands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.logtools.findings import DEFECT
from ottla.logtools.listing import OFFSET_CHECKPOINTS, resolve
from ottla.logtools.verify.data_dir import verify
from ottla.storage import layout
from ottla.storage.fs import RealFileSystem
from tests.logtools.making import ORDERS, make_data_dir


class Busy(RealFileSystem):
    """Calls `act` before every read of an index."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def read_bytes(self, path: str) -> bytes:
        if path.endswith("index"):
            self._act()
        return super().read_bytes(path)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    make_data_dir(tmp_path)
    return tmp_path / str(ORDERS)


def delete_first_segment(partition: Path) -> None:
    first, *rest = sorted(partition.glob("*.log"))
    if rest:
        for path in partition.glob(f"{first.stem}.*"):
            path.rename(f"{path}.deleted")


def defects(fs: RealFileSystem, path: Path) -> list[str]:
    return [finding.code for finding in verify(fs, resolve(fs, str(path))) if finding.level == DEFECT]


def test_segments_that_retention_deletes_meanwhile_are_no_defect(partition: Path) -> None:
    assert defects(Busy(lambda: delete_first_segment(partition)), partition) == []
    assert len(list(partition.glob("*.log"))) == 1


def test_a_segment_that_went_before_it_was_looked_at_is_no_defect(partition: Path) -> None:
    """The listing is older than the first look: only the listing can tell that something has moved."""
    fs = RealFileSystem()
    listed = resolve(fs, str(partition))
    delete_first_segment(partition)
    assert [finding.code for finding in verify(fs, listed) if finding.level == DEFECT] == []


def test_a_snapshot_listed_before_its_new_segment_is_no_defect(partition: Path) -> None:
    """A roll writes both; the listing may see the one and not yet the other."""
    fs = RealFileSystem()
    last = max(partition.glob("*.log"))
    files = list(partition.glob(f"{last.stem}.*[xg]"))
    assert {path.suffix for path in files} >= {".log", ".index", ".timeindex"}
    for path in files:
        path.rename(partition.parent / path.name)
    listed = resolve(fs, str(partition))
    for path in files:
        (partition.parent / path.name).rename(path)
    assert [finding.code for finding in verify(fs, listed) if finding.level == DEFECT] == []


def test_checkpoints_that_a_young_broker_has_not_written_yet_are_no_defect(partition: Path) -> None:
    data_dir = partition.parent
    (data_dir / layout.CLEAN_SHUTDOWN).unlink()
    for name in OFFSET_CHECKPOINTS:
        (data_dir / name).write_bytes(b"")
    assert defects(RealFileSystem(), data_dir) == []


def test_a_real_defect_is_still_found_in_what_is_left(partition: Path) -> None:
    *_, middle, _ = sorted(partition.glob("*.log"))
    middle.with_suffix(".index").unlink()
    fs = RealFileSystem()
    listed = resolve(fs, str(partition))
    delete_first_segment(partition)
    found = [finding.code for finding in verify(fs, listed) if finding.level == DEFECT]
    assert found == ["missing-index"]


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_snapshot_that_is_just_being_written_is_no_defect(partition: Path, share: float) -> None:
    snapshots = sorted(partition.glob("*.snapshot"))
    assert snapshots
    whole = snapshots[-1].read_bytes()
    snapshots[-1].write_bytes(whole[: int(len(whole) * share)])

    class Writing(RealFileSystem):
        def read_bytes(self, path: str) -> bytes:
            found = super().read_bytes(path)
            if path == str(snapshots[-1]):
                snapshots[-1].write_bytes(whole)
            return found

    assert defects(RealFileSystem(), partition) == ["bad-snapshot"]
    assert defects(Writing(), partition) == []
