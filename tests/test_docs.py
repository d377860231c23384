"""The documentation is true: its programs run, its links lead somewhere, and the two commands are named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_library_example_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs/library.md").read_text()
    program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "0 b'key' b'value'\n"
    assert (tmp_path / "data/orders-0/00000000000000000000.log").stat().st_size > 61
    assert (tmp_path / "data/.kafka_cleanshutdown").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_the_readme_names_the_two_commands_on_its_first_screen() -> None:
    first_screen = (ROOT / "README.md").read_text().splitlines()[:15]
    assert any("make demo" in line for line in first_screen)
    assert any("make test" in line for line in first_screen)
