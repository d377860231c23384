"""Several broker processes behind one command: started together, started again when one dies, stopped together."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

REFUSED = 2  # how a broker ends that was given something it cannot start with
RESTART_AFTER_S = (0.1, 0.5, 2.0, 5.0)  # longer each time one does not stay up
STAYED_UP_S = 10.0


class _Child:
    """One broker process, and how often it has died lately."""

    def __init__(self, node: int, words: Sequence[str]) -> None:
        self.node = node
        self._words = words
        self.failures = 0
        self.refused = False  # it never came up, and would not the next time
        self.start_at = 0.0
        self.started = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # The same command line with the node's number: the child takes its ports and its directory from that.
        command = [sys.executable, "-m", "ottla", "serve", *self._words, "--node", str(self.node)]
        # The other end of its standard input closes with this process, however that ends: no broker stays behind.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self.started = time.monotonic()

    def look(self) -> None:
        """Note that it has died, or start it when its time has come."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.start_at:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        if code == REFUSED and not self.failures:
            self.process, self.refused = None, True
            return
        self.failures = 1 if now - self.started > STAYED_UP_S else self.failures + 1
        wait_s = RESTART_AFTER_S[min(self.failures, len(RESTART_AFTER_S)) - 1]
        print(f"ottla: node {self.node} ended with {code}; starting it again in {wait_s} s", file=sys.stderr)
        self.process, self.start_at = None, now + wait_s


def run_brokers(count: int, words: Sequence[str]) -> None:
    """Run nodes 1 to `count` until SIGTERM or Ctrl-C; then every one is stopped in order.

    One that cannot be started with what it was given ends all of them, with its exit code.

    words: what `ottla serve` was called with, which each of them is called with too
    """
    children = [_Child(node, words) for node in range(1, count + 1)]
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as one broker does
    while not stopping and not any(child.refused for child in children):
        for child in children:
            child.look()
        time.sleep(0.1)
    running = [child.process for child in children if child.process is not None]
    for process in running:
        process.send_signal(signal.SIGTERM)
    for process in running:
        process.wait()
    if any(child.refused for child in children):
        sys.exit(REFUSED)
