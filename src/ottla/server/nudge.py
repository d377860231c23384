"""How brokers that share a store on one machine tell each other that it has changed.

Each has a datagram socket `node.N.sock` beside the store; an empty datagram means "look". A nudge that is lost costs
nothing but time: the store is looked at now and then anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable

POLL_MS = 2_000


class Nudges:
    """This broker's socket, and the way to the others'."""

    def __init__(self, directory: str, node_id: int, on_nudge: Callable[[], None]) -> None:
        self._directory = directory
        self._path = f"{directory}/node.{node_id}.sock"
        self._on_nudge = on_nudge
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)  # of an earlier process, which is gone: its log directory was not locked
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(self._path)
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    def send(self) -> None:
        """Tell all others."""
        for name in os.listdir(self._directory):
            path = f"{self._directory}/{name}"
            if name.endswith(".sock") and path != self._path:
                # A dead broker's socket refuses, a busy one's is full: it looks by itself later.
                with contextlib.suppress(OSError):
                    self._socket.sendto(b"", path)

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._socket.recv(1)
        self._on_nudge()

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
