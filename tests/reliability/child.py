"""A broker in a process of its own that can be killed at any moment, on a port that stays its own meanwhile."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from tests.interop.serving import OttlaServer

HOST = "127.0.0.1"


class Child(OttlaServer):
    """`ottla serve` for tests that kill it, and look at what it uses."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        super().__init__(data_dir, *options)
        # While the broker is down, its port must not be given to anybody else: not even to a client that looks for it.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind((HOST, 0))
        self.port: int = self._place.getsockname()[1]
        self.servers = f"{HOST}:{self.port}"

    def start_killed(self, after_s: float) -> None:
        """Start, and kill it before it is ready, or soon after."""
        self.launch()
        time.sleep(after_s)
        self.kill()

    def close(self) -> None:
        self.kill()
        self._place.close()

    def memory_bytes(self) -> int:
        """What it has in memory of its own: anonymous pages, not those of files."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
        raise RuntimeError("the kernel does not say how much memory the broker uses")

    def wait_until_idle(self, timeout_s: float = 60.0) -> None:
        """Until it has done nothing for a while."""
        deadline = time.monotonic() + timeout_s
        before = -1
        while (now := self.cpu_ticks()) != before:
            assert time.monotonic() < deadline, "the broker is busy all the time"
            before = now
            time.sleep(0.3)

    def cpu_ticks(self) -> int:
        """Processor time that it has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))
