"""Empty environments, and ottla installed into them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Environment:
    """A virtual environment with nothing in it but pip. Its programs see no other, and no settings of pytest's."""

    def __init__(self, directory: Path, *, compiler: str | None = "", python: str = sys.executable) -> None:
        """`compiler` is the system's own, a command, or None for a machine that has none."""
        self.directory = directory
        subprocess.run([python, "-m", "venv", str(directory)], check=True)
        ours = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "OTTLA", "CC"))
        }
        self.variables = {**ours, "PATH": f"{directory / 'bin'}:{os.environ['PATH']}"}
        if compiler is None:
            self.variables["PATH"] = str(directory / "bin")
        elif compiler:
            self.variables["CC"] = compiler

    def run(self, *words: str, input: str = "") -> subprocess.CompletedProcess[str]:
        """One of its programs, away from the checkout."""
        return subprocess.run(
            [str(self.directory / "bin" / words[0]), *words[1:]],
            cwd=self.directory,
            env=self.variables,
            input=input,
            capture_output=True,
            text=True,
        )

    def install(self, what: Path) -> str:
        """pip install, as a user does it; what it said with -v."""
        done = self.run("pip", "install", "-v", "--no-cache-dir", str(what))
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
        return done.stdout + done.stderr


def checkout_copy(directory: Path) -> Path:
    """What is in the repository as it stands here, and nothing that was built from it."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return directory


def sdist(directory: Path) -> Path:
    """The source distribution of this checkout."""
    copy = checkout_copy(directory / "checkout")
    command = [sys.executable, "setup.py", "-q", "sdist", "-d", str(directory)]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    (found,) = directory.glob("*.tar.gz")
    return found
