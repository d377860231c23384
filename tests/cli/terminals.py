"""Runs `ottla` on a terminal of its own: what a person would see, at a width of choice."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

TIMEOUT_S = 60


def on_terminal(
    *words: object, width: int, colour: bool = False, bootstrap: str = "", expected: int | None = 0
) -> str:
    """What is written to the terminal, with \\n for its line ends."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    environment |= {
        "TERM": "xterm-256color",
        "PYTHONUTF8": "1",
        "OTTLA_BOOTSTRAP": bootstrap or "127.0.0.1:1",
    }
    environment.pop("NO_COLOR", None)
    if not colour:
        environment["NO_COLOR"] = "1"
    command = [sys.executable, "-m", "ottla", *map(str, words)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        pieces = []
        try:
            while piece := os.read(leader, 1 << 16):
                pieces.append(piece)
        except OSError:  # the other end is closed: the process has ended
            pass
        finally:
            os.close(leader)
        code = process.wait(TIMEOUT_S)
    text = b"".join(pieces).decode().replace("\r\n", "\n")
    assert expected in (None, code), text
    return text
