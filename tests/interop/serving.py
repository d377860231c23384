"""`ottla serve` as a child process, the way a user starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

READY = re.compile(r"ottla: ready on (\S+) ")
STOP_TIMEOUT_S = 120.0


class OttlaServer:
    """A broker on a data directory and a free port; in a `with` block, whose end stops it cleanly."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self.data_dir = data_dir
        self.log_file = data_dir.with_name(f"{data_dir.name}.serve.log")
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.servers = "127.0.0.1:0"

    def start(self) -> OttlaServer:
        """Start and wait until it serves; after a stop on the port it had before, where its clients look for it."""
        self.launch()
        assert self._process is not None
        assert self._process.stdout is not None
        ready = next((match for line in self._process.stdout if (match := READY.search(line))), None)
        if ready is None:
            self.kill()
            raise RuntimeError(f"ottla did not start:\n{self.log_text()[-4000:]}")
        self.servers = ready[1]
        return self

    def launch(self) -> None:
        """Start, and wait for nothing."""
        command = [sys.executable, "-m", "ottla", "serve", "--data", str(self.data_dir), "--http", "off"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--listen", self.servers, *self._options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def stop(self) -> None:
        """Stop cleanly (SIGTERM) and wait; anything but a clean end is an error."""
        code = self._end(signal.SIGTERM)
        if code:
            raise RuntimeError(f"ottla ended with {code}:\n{self.log_text()[-4000:]}")

    def kill(self) -> None:
        """Kill (SIGKILL) and wait."""
        self._end(signal.SIGKILL)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace")

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        with process:
            os.kill(process.pid, how)
            try:
                return process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    def __enter__(self) -> OttlaServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
