"""One file that cannot be read does not end the look at a whole directory, and nothing is mended past it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ottla.cli.log import repair as log_repair
from ottla.cli.log import verify as log_verify
from ottla.logtools.listing import NotALogError, resolve
from ottla.logtools.verify.data_dir import verify
from ottla.storage.fs import RealFile, RealFileSystem
from tests.logtools.making import check

SECOND = f"{42:020d}"


class Denying(RealFileSystem):
    """Some paths belong to another user (the tests may run as root, whom no permission stops)."""

    def __init__(self, *denied: Path, error: int = errno.EACCES) -> None:
        self.denied = {str(path) for path in denied}
        self.error = error

    def _check(self, path: str) -> None:
        if path in self.denied:
            raise OSError(self.error, os.strerror(self.error), path)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        self._check(path)
        return super().open(path, write=write, create=create)

    def read_bytes(self, path: str) -> bytes:
        self._check(path)
        return super().read_bytes(path)

    def list_dir(self, path: str) -> list[str]:
        self._check(path)
        return super().list_dir(path)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name",
    [
        f"{SECOND}.log",
        f"{SECOND}.index",
        f"{SECOND}.timeindex",
        f"{SECOND}.txnindex",
        f"{SECOND}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "",
        "../recovery-point-offset-checkpoint",
        "../meta.properties",
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_all_others_are_checked(
    data_dir: Path, log_dir: Path, name: str
) -> None:
    path = Path(os.path.normpath(log_dir / name))
    damage(data_dir / "orders-1" / f"{SECOND}.log")
    fs = Denying(path)
    found = [finding for finding in verify(fs, resolve(fs, str(data_dir))) if finding.level == "defect"]
    named = [finding for finding in found if finding.code == "unreadable"]
    assert [finding.file for finding in named] == [str(path)]
    assert "Permission denied" in named[0].meaning
    assert "chown" in named[0].meaning
    assert any(finding.file.endswith(f"orders-1/{SECOND}.log") for finding in found)


def test_a_disk_that_fails_in_the_middle_of_a_file_is_named_too(log_dir: Path) -> None:
    fs = Denying(log_dir / f"{SECOND}.log", error=errno.EIO)
    found = [finding for finding in verify(fs, resolve(fs, str(log_dir))) if finding.level == "defect"]
    assert [finding.code for finding in found] == ["unreadable"]
    assert "the disk may be failing" in found[0].meaning


@pytest.mark.parametrize("name", [f"{SECOND}.log", f"{SECOND}.index", ""])
def test_a_log_with_a_file_that_cannot_be_read_is_left_alone_and_others_are_mended(
    data_dir: Path, log_dir: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for partition in ("orders-0", "orders-1"):
        damage(data_dir / partition / f"{SECOND}.log")
        (data_dir / partition / f"{130:020d}.index").unlink()
    before = {path.name: path.read_bytes() for path in log_dir.iterdir()}
    fs = Denying(Path(os.path.normpath(log_dir / name)))
    target = resolve(fs, str(data_dir))
    assert not log_repair.run(fs, target, write=True, skip_corrupt=True, as_json=False)
    assert {path.name: path.read_bytes() for path in log_dir.iterdir()} == before
    assert "Permission denied" in capsys.readouterr().out
    left = {finding.code for finding in check(data_dir / "orders-1") if finding.level == "defect"}
    assert left == {"lost-records"}


@pytest.mark.parametrize("name", ["notes.txt", "kafka.log", "00042"])
@pytest.mark.parametrize("text", ["hi\n", "", "a text of several lines\n" * 2000])
def test_a_text_file_is_told_to_be_no_log_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(NotALogError, match="is no log file"):
        resolve(RealFileSystem(), str(path))


def test_a_log_under_another_name_is_still_one(log_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut-out-by-hand"
    path.write_bytes(b"\0" * 100 + (log_dir / f"{SECOND}.log").read_bytes()[700:])
    assert {finding.code for finding in check(path) if finding.level == "defect"} != set()
    path.write_bytes((log_dir / f"{0:020d}.log").read_bytes())
    assert check(path) == []


def test_no_repair_is_proposed_for_a_single_file(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(log_dir / f"{SECOND}.log")
    path = str(log_dir / f"{SECOND}.log")
    fs = RealFileSystem()
    assert not log_verify.run(fs, resolve(fs, path), path, as_json=False)
    assert f"`ottla log repair {log_dir}`" in capsys.readouterr().out
    other = tmp_path / "by-hand"
    other.write_bytes((log_dir / f"{SECOND}.log").read_bytes())
    assert not log_verify.run(fs, resolve(fs, str(other)), str(other), as_json=False)
    assert "log repair" not in capsys.readouterr().out
