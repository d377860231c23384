"""What a request held is freed when it is answered or its client goes, not when garbage in cycles is looked for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from ottla.protocol import frame
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce, records, wait_until

REQUESTS = 40


class Scene:
    """A topic with a record, and two connections."""

    def __init__(self, broker: EmbeddedBroker, reader: Wire, writer: Wire) -> None:
        self.broker, self.reader, self.writer = broker, reader, writer
        self.end_offset = 0
        self.write()

    def write(self) -> None:
        self.writer.ask(PRODUCE, 9, produce("t", records(b"value")))
        self.end_offset += 1

    def ask(self, wire: Wire, version: int, **wanted: int) -> None:
        asked = fetch("t", **wanted)
        wire.send_bytes(
            b"".join(
                part
                for number in range(REQUESTS)
                for part in frame.request_parts(FETCH, version, number, "c", asked)
            )
        )

    def take(self) -> None:
        for _ in range(REQUESTS):
            self.reader.read_frame()

    def wait_for(self, waiting: int) -> None:
        wait_until(lambda: self.broker.broker.replicas.purgatories.fetch.delayed == waiting)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with EmbeddedBroker() as broker:
        broker.create_topic("t")
        with Wire(broker) as reader, Wire(broker) as writer:
            yield Scene(broker, reader, writer)


def at_once(scene: Scene) -> None:
    scene.ask(scene.reader, 12, offset=0)
    scene.take()


def converted(scene: Scene) -> None:
    scene.ask(scene.reader, 2, offset=0)
    scene.take()


def woken(scene: Scene) -> None:
    scene.ask(scene.reader, 12, offset=scene.end_offset, max_wait_ms=600_000)
    scene.wait_for(REQUESTS)
    scene.write()
    scene.take()


def expired(scene: Scene) -> None:
    scene.ask(scene.reader, 12, offset=scene.end_offset, max_wait_ms=20)
    scene.take()


def hung_up(scene: Scene) -> None:
    with Wire(scene.broker) as wire:
        scene.ask(wire, 12, offset=scene.end_offset, max_wait_ms=600_000)
        scene.wait_for(REQUESTS)
    scene.wait_for(0)


@pytest.mark.parametrize("ask", [at_once, converted, woken, expired, hung_up])
def test_a_fetch_that_has_ended_leaves_no_cycle(scene: Scene, ask: Callable[[Scene], None]) -> None:
    ask(scene)  # what is made once
    gc.collect()
    gc.disable()
    try:
        ask(scene)
        scene.writer.ping()
        assert gc.collect() < REQUESTS
    finally:
        gc.enable()
