"""Power loss: disks that a cut may leave at every point of a story are opened, and must hold what was promised.

Nothing that was flushed is missing, what is there is a stretch of what was appended, byte for byte, nothing
fails to open, and the log goes on: an append, a clean stop and another start. From time to time the power is
cut again while the first cut is being recovered from.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any

from ottla.names import TopicPartition
from ottla.storage.log.log import Log
from ottla.storage.log_manager import LogManager
from ottla.storage.losses import Loss
from ottla.testing.crash import CrashState, crash_states
from ottla.testing.disk import SimulatedDisk
from tests.reliability.model import Written, check_log, read_all
from tests.reliability.scenarios import Case, SimulatedRuntime, Writer, open_manager
from tests.reliability.story import TOPICS, Promise, Story

Held = dict[TopicPartition, list[Written]]

ACTIONS = 60  # of a story
SAMPLES = 8  # random states at each point, besides the corners;
STATES_PER_POINT = 8  # of all of them, this many are opened
_SECOND_CUTS = 0.2  # the share of states whose recovery is cut as well


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """The states at every point of one story, or at a `share` of its points."""
    story = _story(seed)
    rng = Random(f"points {seed}")
    points = [point for point in range(len(story.history.operations) + 1) if rng.random() < share]
    return _cases(story, seed, points, STATES_PER_POINT)


def states_at(seed: int, name: str) -> Iterator[Case]:
    """All states at the point of the one of that name."""
    return _cases(_story(seed), seed, [int(name.split(".")[0])], sys.maxsize)


def _story(seed: int) -> Story:
    story = Story(seed)
    story.run(ACTIONS)
    return story


def _cases(story: Story, seed: int, points: list[int], states_per_point: int) -> Iterator[Case]:
    first_operations = [first for first, _ in story.chapters]
    states = crash_states(story.history, seed=seed, samples=SAMPLES, points=points)
    for point, group in groupby(states, key=attrgetter("point")):
        chapter = bisect_right(first_operations, point - 1) - 1
        kind = story.chapters[chapter][1] if chapter >= 0 else "open"
        for state in _some(Random(f"{seed} {point}"), group, states_per_point):
            yield Case(kind, state.name, partial(_check, story, state, seed))


def _some(rng: Random, states: Iterable[CrashState], count: int) -> list[CrashState]:
    found = list(states)
    return found if len(found) <= count else rng.sample(found, count)


def _check(story: Story, state: CrashState, seed: int) -> None:
    rng = Random(f"{seed} {state.name}")
    disk = state.disk(story.runtime.now_ms)
    recovery = disk.record()
    manager, held = _open(story, disk, state)
    if rng.random() < _SECOND_CUTS:
        point = rng.randrange(len(recovery.operations) + 1)
        for second in _some(rng, crash_states(recovery, seed=seed, points=[point]), 2):
            try:
                _open(story, second.disk(story.runtime.now_ms), state)
            except Exception as error:
                raise AssertionError(f"cut again, {second.describe()}: {error!r}") from error
    _use(story, disk, manager, held, rng)


def _open(story: Story, disk: SimulatedDisk, state: CrashState) -> tuple[LogManager, Held]:
    """Recover; what each log holds must be as promised."""
    manager = open_manager(disk, SimulatedRuntime(state.point, story.runtime.now_ms()), TOPICS)
    promises: Any = state.label or ()
    assert set(manager.logs) <= {promise.partition for promise in promises}
    return manager, {promise.partition: hold(story, manager, promise) for promise in promises}


def _use(story: Story, disk: SimulatedDisk, manager: LogManager, held: Held, rng: Random) -> None:
    """The logs go on: an append, a clean stop, another start."""
    runtime = SimulatedRuntime(0, story.runtime.now_ms())
    for partition, log in manager.logs.items():
        writer = Writer(rng, runtime, keyed=log.config.compact)
        writer.leader_epoch = 1000
        held[partition].append(writer.append(log, writer.plain()))
    manager.close()
    manager = open_manager(disk, runtime, TOPICS)
    for partition, log in manager.logs.items():
        assert read_all(log) == held[partition], f"{partition} after a clean stop"
    manager.close()


def hold(story: Story, manager: LogManager, promise: Promise, known: Collection[Loss] = ()) -> list[Written]:
    """What the log holds, which must be as promised. `known`: what was lost earlier, and stays on record when others
    have got the same offsets since."""
    log = manager.get(promise.partition)
    if log is None:
        assert promise.may_be_gone, f"{promise.partition} is gone"
        return []
    assert promise.may_be_there, f"{promise.partition} was deleted and is back"
    assert promise.lowest_start <= log.start_offset <= promise.highest_start, f"{promise}: {log.start_offset}"
    assert log.high_watermark <= log.end_offset
    found = next((f for f in (_held(log, story.versions[v], promise) for v in promise.versions) if f), None)
    assert found, f"{promise}: [{log.start_offset}, {log.end_offset}) {read_all(log)}"
    before, batches = found
    lost = [loss for loss in log.losses if loss not in known]
    assert all(loss.first_offset >= promise.flushed for loss in lost), f"{promise}: {lost}"
    if log.end_offset < promise.flushed:
        raise AssertionError(f"{promise}: records from {log.end_offset} on are lost")
    check_log(log, batches, before, exact=not promise.may_have_gaps)
    return batches


def _held(log: Log, version: list[Written], promise: Promise) -> tuple[list[Written], list[Written]] | None:
    """The batches of the version that the log held once, and those it holds; None if it is not of that version."""
    batches = read_all(log)
    before = [written for written in version if written.last < log.start_offset]
    after = version[len(before) :]
    if promise.may_have_gaps:
        there = set(batches)
        after = [written for written in after if written in there or written.last < promise.flushed]
    return (before, after[: len(batches)]) if batches == after[: len(batches)] else None
