"""Ports for servers that must be told theirs before they start."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import ExitStack, closing

# Below those that the system gives to clients: what is free now stays free until the server is up. Processes that ask
# at once begin far apart, and none gives a port a second time while clients of its last owner may look for that one.
_FIRST, _LAST = 20_000, 32_000
_places = itertools.cycle(range(_FIRST, _LAST))
for _ in range(os.getpid() * 64 % (_LAST - _FIRST)):
    next(_places)


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that nobody listens on."""
    in_a_row = 0
    for port in itertools.islice(_places, _LAST - _FIRST):
        with ExitStack() as stack:
            try:
                stack.enter_context(closing(socket.create_server(("127.0.0.1", port))))
            except OSError:
                in_a_row = 0
                continue
        in_a_row = 1 if port == _FIRST else in_a_row + 1
        if in_a_row == count:
            return port - count + 1
    raise AssertionError("no free ports")
