"""The wheel of this checkout in an empty environment: complete, compiled, and at work."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.install.environments import ROOT, Environment
from tests.install.smoke import smoke
from tests.kernels import has_compiler


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Packed again if something in src is newer."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "-s", ".build/wheel/.built"], cwd=ROOT, env=variables, check=True)
    (found,) = (ROOT / ".build/wheel").glob("*.whl")
    return found


def test_an_installed_wheel_is_compiled_and_does_its_work(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.install(wheel)
    tried = smoke(environment)
    if has_compiler():
        assert tried.facts["interpreted"] == []
        assert "interpreted" not in tried.said


def test_a_wheel_holds_every_source_file_and_what_was_compiled_of_it_and_nothing_else(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    compiled = {name for name in packed if name.endswith(".so")}
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert packed - compiled == {name.removeprefix("src/") for name in listed if (ROOT / name).exists()}
    if has_compiler():
        names = (ROOT / "src/ottla/compiled.txt").read_text().splitlines()
        wanted = {name.replace(".", "/") for name in names if not name.startswith("#")} | {"ottla__mypyc"}
        assert {name.partition(".")[0] for name in compiled} == wanted
