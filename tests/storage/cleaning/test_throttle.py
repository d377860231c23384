"""The cleaner keeps to log.cleaner.io.max.bytes.per.second."""

from __future__ import annotations

from ottla.config import BrokerConfig
from ottla.storage.cleaning.throttle import Throttle
from ottla.testing.runtime import SimulatedRuntime


def test_bytes_take_their_time_and_a_rest_is_not_saved_up() -> None:
    runtime = SimulatedRuntime()
    throttle = Throttle(runtime, 1000, lambda: False)
    throttle.took(500)
    assert runtime.monotonic_ms() == 500
    runtime.advance(60_000)
    throttle.took(2000)
    assert runtime.monotonic_ms() == 62_500


def test_without_a_limit_nothing_waits() -> None:
    runtime = SimulatedRuntime()
    throttle = Throttle(runtime, BrokerConfig().log_cleaner_io_max_bytes_per_second, lambda: False)
    throttle.took(1 << 40)
    assert runtime.monotonic_ms() == 0


def test_a_cleaning_that_is_called_off_does_not_sleep_on() -> None:
    runtime = SimulatedRuntime()
    throttle = Throttle(runtime, 1, lambda: runtime.monotonic_ms() >= 1000)
    throttle.took(1 << 30)
    assert runtime.monotonic_ms() < 1200
