"""What runs before a commit is what `make lint` runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pre_commit_and_make_lint_run_the_same_checks() -> None:
    hooks = re.findall(r"^ +entry: (.+)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    assert hooks == commands


def test_pre_commit_takes_the_configuration_and_downloads_nothing(tmp_path: Path) -> None:
    config = ROOT / ".pre-commit-config.yaml"
    assert re.findall(r"^ +- repo: (.+)$", config.read_text(), re.MULTILINE) == ["local"]
    done = subprocess.run(
        [ROOT / ".venv/bin/pre-commit", "validate-config", str(config)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout
