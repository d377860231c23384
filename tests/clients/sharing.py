"""What tests of consumer groups share: a topic with records, and members who poll until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from tests.clients.client import TIMEOUT_S, Sent
from tests.clients.confluent import ConfluentClient

TOPIC, GROUP = "orders", "readers"
PARTITIONS = 4
ALL = {(TOPIC, number) for number in range(PARTITIONS)}
VALUES = [b"%d" % number for number in range(20)]


class Polling(Protocol):
    def poll(self) -> list[bytes]: ...

    def assignment(self) -> set[tuple[str, int]]: ...

    def close(self) -> None: ...


M = TypeVar("M", bound=Polling)
# Of groups by the newer protocol: heartbeats often enough for a test.
OFTEN = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "20000",
}


def make_topic(bootstrap: str) -> None:
    client = ConfluentClient(bootstrap)
    client.create_topic(TOPIC, PARTITIONS)
    client.produce(TOPIC, [Sent(value) for value in VALUES])
    client.close()


def leave(member: M, joined: list[M]) -> None:
    joined.remove(member)
    member.close()


def until(is_so: Callable[[], bool], *members: Polling) -> list[bytes]:
    """Let all poll until it is so; what they read meanwhile."""
    deadline, read = time.monotonic() + TIMEOUT_S, []
    while not is_so():
        assert time.monotonic() < deadline, [member.assignment() for member in members]
        for member in members:
            read += member.poll()
    return read


def read_all(*members: Polling, count: int = len(VALUES)) -> list[bytes]:
    read: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(read) < count:
        assert time.monotonic() < deadline, read
        for member in members:
            read += member.poll()
    return read


def shared(*members: Polling) -> Callable[[], bool]:
    """Whether each partition has exactly one of them, and each of them some."""

    def is_shared() -> bool:
        parts = [member.assignment() for member in members]
        return all(parts) and set().union(*parts) == ALL and sum(map(len, parts)) == len(ALL)

    return is_shared
