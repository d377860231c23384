"""Clients in Go (see go/): built once into `.build/`, and again when their source has changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.interop import apt
from tests.interop.client import Client
from tests.interop.fetching import fetch
from tests.interop.maven import BUILD

SOURCES = Path(__file__).with_name("go")
# From here on Go fetches by itself the newer Go that a go.mod asks for.
OLDEST_GO = (1, 21)


class GoClient(Client):
    """A client library by the name of its folder in go/: `franz` or `sarama`."""

    def __init__(self, library: str, servers: str, log_file: Path) -> None:
        super().__init__([str(programs() / library), servers], log_file)


@cache
def programs() -> Path:
    """The directory with the built clients. Whether anything is to be done, Go's own cache knows."""
    require_go()
    target = BUILD / "go"
    environment = {**os.environ, "CGO_ENABLED": "0"}
    fetch(["go", "build", "-o", f"{target}/", "./franz", "./sarama"], cwd=SOURCES, env=environment)
    return target


def require_go() -> None:
    """Install Go by apt-get where it is missing."""
    if not shutil.which("go"):
        apt.install(("golang-go",))
    told = subprocess.run(["go", "env", "GOVERSION"], check=True, capture_output=True, text=True).stdout
    version = tuple(map(int, re.findall(r"\d+", told)[:2]))
    if version < OLDEST_GO:
        raise RuntimeError(f"{told.strip()} is too old: install Go {'.'.join(map(str, OLDEST_GO))} or later")
