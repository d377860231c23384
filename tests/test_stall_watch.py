"""The stall watch: what it measures, and whom it names."""

from __future__ import annotations

import logging
import time
import urllib.request
from collections.abc import Callable

import pytest

from ottla.api.call import Call
from ottla.api.services import Services
from ottla.protocol import frame
from ottla.server.dispatch import Dispatcher, Route
from ottla.stall_watch import StallWatch
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import API_VERSIONS, Wire, api_versions


def _work(cpu_ms: int) -> None:
    end_ns = time.thread_time_ns() + cpu_ms * 1_000_000
    while time.thread_time_ns() < end_ns:
        pass


def test_a_turn_is_all_that_is_done_before_the_loop_looks_at_its_sockets() -> None:
    soon: list[Callable[[], None]] = []
    watch = StallWatch(soon.append)
    watch.run(lambda: _work(2))  # only now there is a first reading
    soon.pop()()
    for _ in range(5):
        watch.run(lambda: _work(4))
    assert len(soon) == 1  # one callback ends the turn
    soon.pop()()
    assert 20e6 <= watch.processor.longest_ns < 200e6
    assert watch.processor.longest_ns <= watch.duration.longest_ns


def test_short_pieces_of_work_cost_no_callback() -> None:
    soon: list[Callable[[], None]] = []
    watch = StallWatch(soon.append)
    watch.run(lambda: _work(2))
    soon.pop()()
    watch.run(lambda: None)
    assert not soon


def test_waiting_is_no_processor_time() -> None:
    watch = StallWatch()
    watch.run(lambda: _work(2))
    watch.run(lambda: time.sleep(0.05))
    assert watch.processor.longest_ns < 40e6
    assert watch.duration.longest_ns >= 50e6


def test_the_log_names_the_longest_piece_of_work(caplog: pytest.LogCaptureFixture) -> None:
    watch = StallWatch()
    watch.run(lambda: None)
    with caplog.at_level(logging.WARNING):
        watch.run(_take_long)
    assert "test_stall_watch._take_long" in caplog.text


def _take_long() -> None:
    _work(60)


class _SlowBroker(EmbeddedBroker):
    """Every request keeps its loop busy for 60 ms."""

    def _make_dispatcher(self, services: Services, clock_ns: Callable[[], int]) -> Dispatcher:
        def slow(route: Route, call: Call) -> object:
            _take_long()
            return route.handle(services, call, call.request)

        return Dispatcher(services, time.monotonic_ns, slow)


def test_the_log_names_the_request_that_kept_the_loop_busy(caplog: pytest.LogCaptureFixture) -> None:
    with _SlowBroker() as broker, Wire(broker) as wire:
        broker.worst_turn_ms()
        wire.send_bytes(b"".join(frame.request_parts(API_VERSIONS, 3, 1, "evil\nline", api_versions())))
        wire.read_frame()
        assert broker.worst_turn_ms() >= 60
    assert "ApiVersions v3 of client 'evil\\nline' (127.0.0.1:" in caplog.text


def test_metrics_tell_how_long_turns_were() -> None:
    with EmbeddedBroker(http=True) as broker:
        broker.call(lambda: broker.broker.runtime.watch.run(lambda: _work(30)))
        broker.worst_turn_ms()
        with urllib.request.urlopen(f"http://{broker.broker.http}/metrics") as answer:
            text = answer.read().decode()
    assert 'ottla_event_loop_turn_cpu_seconds_bucket{le="0.001"}' in text
    assert "ottla_event_loop_turn_seconds_count" in text
