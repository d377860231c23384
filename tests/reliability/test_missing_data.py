"""A slice of the mishaps between a stop and the next start, and that the check can fail."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.storage.recovery.missing import Missing
from ottla.storage.recovery.witnesses import Expected
from tests.reliability import missing_data
from tests.reliability.file_mishaps import Mishap
from tests.reliability.missing_data import check, world
from tests.reliability.scenarios import run_cases


@pytest.fixture(autouse=True, scope="module")
def _worlds_go_in_the_end() -> Iterator[None]:
    yield
    for how in ("clean", "killed"):
        shutil.rmtree(world(how).path)
    world.cache_clear()


@pytest.mark.slice
def test_what_is_missing_is_named_and_nothing_else_is() -> None:
    done = list(run_cases("missing_data", 1, missing_data.cases(seed=1, count=16)))
    assert {case.kind for case in done} == {"clean", "killed"}


@pytest.mark.parametrize("how", ["clean", "killed"])
def test_the_check_finds_a_start_that_keeps_silent(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    shutil.copytree(world(how).path, data)
    sorted((data / "plain-0").glob("*.log"))[2].unlink()
    monkeypatch.setattr(Missing, "judge", lambda *_, **__: None)
    with pytest.raises(AssertionError, match="lost offsets are not on record"):
        check(world(how), data, Mishap(data, None))  # type: ignore[arg-type]


def test_the_check_finds_a_false_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    shutil.copytree(world("clean").path, data)
    monkeypatch.setattr("ottla.storage.recovery.loading.expect", lambda *_, **__: Expected(None, 10_000))
    with pytest.raises(AssertionError, match="nothing is lost, but on record are"):
        check(world("clean"), data, Mishap(data, None))  # type: ignore[arg-type]
