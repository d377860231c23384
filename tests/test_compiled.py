"""The list of what is compiled: complete, and true of this environment."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
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
