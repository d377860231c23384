"""The list of what is compiled: complete, and true of this environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ottla import compiled
from tests.cli.serving import Serve
from tests.kernels import has_compiler

ROOT = Path(__file__).parent.parent


def test_every_kernel_is_listed_in_whatever_folder_it_lies() -> None:
    found = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*kernel.py")}
    assert {".".join(path.with_suffix("").parts) for path in found} == {
        name for name in compiled.meant() if name.endswith("kernel")
    }


@pytest.mark.parametrize("name", compiled.meant())
def test_what_is_listed_is_there(name: str) -> None:
    assert (ROOT / "src" / f"{name.replace('.', '/')}.py").exists()


def test_everything_that_should_be_compiled_is() -> None:
    facts = _version()
    assert facts["compiled"] + len(facts["interpreted"]) == len(compiled.meant())
    if has_compiler():
        assert facts["interpreted"] == []


def test_what_runs_interpreted_is_named_and_a_broker_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(
        ROOT / "src/ottla", tmp_path / "ottla", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    facts = _version()
    assert (facts["compiled"], facts["interpreted"]) == (0, compiled.meant())
    with Serve(tmp_path, "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0") as serve:
        assert serve.end() == 0
        total = len(compiled.meant())
        assert f"slow: {total} of {total} modules run interpreted" in serve.errors.read_text()


def small_checkout(directory: Path, *, listed: str) -> Path:
    """A package with one kernel and one hot module, two folders deep."""
    room = directory / "src/ottla/floor/room"
    room.mkdir(parents=True)
    for package in (room.parent.parent, room.parent, room):
        (package / "__init__.py").touch()
    (room / "small_kernel.py").write_text("def twice(number):\n    return 2 * number\n")
    (room / "hot.py").write_text("def thrice(number: int) -> int:\n    return 3 * number\n")
    (directory / "src/ottla/compiled.txt").write_text(listed)
    shutil.copy(ROOT / "setup.py", directory)
    (directory / "pyproject.toml").write_text(
        '[project]\nname = "small"\nversion = "1"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    return room


def build_in_place(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    environment = {**os.environ, "OTTLA_COMPILE": "strict", "CFLAGS": "-O0"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)


def test_what_lies_in_nested_folders_is_compiled_there_and_nothing_old_is_left(tmp_path: Path) -> None:
    room = small_checkout(tmp_path, listed="ottla.floor.room.hot\nottla.floor.room.small_kernel\n")
    end = sysconfig.get_config_var("EXT_SUFFIX")
    old = room.parent / f"moved_kernel{end}"
    old.write_text("what was compiled before its source was moved")
    done = build_in_place(tmp_path)
    if has_compiler():
        assert done.returncode == 0, done.stderr
        found = {path.name for path in tmp_path.glob("src/ottla/**/*.so")}
        assert found == {f"hot{end}", f"small_kernel{end}"}
        assert (room / f"small_kernel{end}").exists()


def test_a_kernel_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    small_checkout(tmp_path, listed="ottla.floor.room.hot\n")
    done = build_in_place(tmp_path)
    assert done.returncode != 0
    assert "not compiled: not in src/ottla/compiled.txt: src/ottla/floor/room/small_kernel.py" in done.stderr


def _version() -> dict[str, Any]:
    command = [sys.executable, "-m", "ottla", "version", "--json"]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def test_users_builds_have_the_compilers_that_are_tested_here() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    locked = (ROOT / "requirements/dev.txt").read_text()
    for tool in ("cython", "mypy"):
        (wanted,) = [one for one in build if one.lower().startswith(tool)]
        found = re.search(rf"^{tool}==(\d+)\.(\d+)", locked, re.MULTILINE)
        assert found is not None
        major, minor = int(found[1]), int(found[2])
        assert wanted.lower() == f"{tool}>={major}.{minor},<{major}.{minor + 1}"
