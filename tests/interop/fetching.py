"""Commands that fetch something from elsewhere: a network that fails once may not fail the next time."""

from __future__ import annotations

import subprocess
import time
from typing import Any

ATTEMPTS = 3
PAUSE_S = 10.0


def fetch(command: list[str], **options: Any) -> None:
    """Run it until it succeeds, a few times at most."""
    for _ in range(ATTEMPTS - 1):
        if subprocess.run(command, check=False, **options).returncode == 0:
            return
        time.sleep(PAUSE_S)
    subprocess.run(command, check=True, **options)
