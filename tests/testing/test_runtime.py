"""The simulated runtime: nothing happens that was not asked for."""

from __future__ import annotations

from ottla.runtime import Runtime
from ottla.testing.runtime import START_MS, SimulatedRuntime


def fail() -> int:
    raise ValueError("no")


def test_clocks_move_only_when_told() -> None:
    runtime = SimulatedRuntime()
    assert (runtime.now_ms(), runtime.monotonic_ms()) == (START_MS, 0)
    runtime.advance(250)
    assert (runtime.now_ms(), runtime.monotonic_ms()) == (START_MS + 250, 250)
    runtime.set_clock(7)
    assert (runtime.now_ms(), runtime.monotonic_ms()) == (7, 250)


def test_the_same_seed_gives_the_same_numbers() -> None:
    one, two, other = SimulatedRuntime(3), SimulatedRuntime(3), SimulatedRuntime(4)
    numbers = [one.randrange(1000) for _ in range(20)]
    assert numbers == [two.randrange(1000) for _ in range(20)]
    assert numbers != [other.randrange(1000) for _ in range(20)]


def test_queued_work_waits_and_then_runs_in_order_with_what_it_queues() -> None:
    runtime = SimulatedRuntime(queued=True)
    told: list[object] = []

    def done(result: object, error: BaseException | None) -> None:
        told.append(result if error is None else type(error))
        if result == 1:
            runtime.run_blocking(lambda: 3, done)

    runtime.run_blocking(lambda: 1, done)
    runtime.run_blocking(fail, done)
    assert told == []
    assert runtime.run_pending() == 3
    assert told == [1, ValueError, 3]
    assert runtime.run_pending() == 0


def test_unqueued_work_is_done_at_once() -> None:
    told: list[object] = []
    SimulatedRuntime().run_blocking(lambda: 1, lambda result, error: told.append((result, error)))
    assert told == [(1, None)]


def test_a_map_returns_errors_and_tells_progress() -> None:
    runtime: Runtime = SimulatedRuntime()
    progress: list[int] = []
    results = runtime.map_blocking(lambda item: 6 // item, [1, 0, 2], workers=4, on_done=progress.append)
    assert [(item, result, type(error)) for item, result, error in results] == [
        (1, 6, type(None)),
        (0, None, ZeroDivisionError),
        (2, 3, type(None)),
    ]
    assert progress == [1, 0, 2]
