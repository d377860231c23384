"""Programs for the interop tests that the system's own packages bring."""

from __future__ import annotations

import os
import subprocess

from tests.interop.fetching import fetch

LOCK_TIMEOUT_S = 300


def install(*alternatives: tuple[str, ...]) -> None:
    """Install the first package of each tuple that this system's sources have."""
    _apt_get("update")
    _apt_get("install", "--no-install-recommends", *map(_first_known, alternatives))


def _apt_get(*arguments: str) -> None:
    """Run apt-get as root; it never asks, and waits for another apt-get that is under way."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    options = ["-qq", "-y", "-o", f"DPkg::Lock::Timeout={LOCK_TIMEOUT_S}", "-o", "Acquire::Retries=3"]
    fetch(
        [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *options, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _first_known(packages: tuple[str, ...]) -> str:
    for package in packages:
        known = subprocess.run(["apt-cache", "show", package], check=False, capture_output=True)
        if known.returncode == 0:
            return package
    raise RuntimeError(f"apt-get has none of {', '.join(packages)}; install one of them by other means")
