"""Groups whose members are killed, stopped and paused past their timeouts all the time, and whose broker dies.

Members in many processes (group_member.py) join, share a topic's partitions, commit, leave, vanish, fall asleep and
come back; their processes are killed with -9 or stopped for a while, and in one case the broker is killed too. Then all
come to rest: every group becomes stable with all its members, and every partition has one owner. What everybody heard
meanwhile must hold together (group_history.py): one owner for a partition in each generation, no earlier generation
accepted, no commit lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.reliability.child import Child
from tests.reliability.group_history import BEAT, COMMIT, FETCH, SYNC, Event, check, read, summary
from tests.reliability.group_member import TOPIC, Plan
from tests.reliability.scenarios import Case
from tests.server.wire import Wire

MEMBERS = 10  # of a group;
STATIC = 3  # of them have an instance id
PARTITIONS = 20


class Size(NamedTuple):
    """How much fire."""

    groups: int
    processes: int
    seconds: float
    session_ms: int
    rebalance_ms: int
    beat_s: float
    strike_s: float  # between two blows
    calm_s: float  # at most until all is quiet


FULL = Size(100, 20, 120.0, 6_000, 10_000, 1.5, 1.5, 180.0)
SLICE = Size(5, 4, 10.0, 1_000, 2_000, 0.2, 1.0, 240.0)


def cases(seed: int, size: Size = FULL) -> Iterator[Case]:
    for name, broker_dies in (("members die", False), ("the broker dies too", True)):
        yield Case(name, name, partial(_burn, Random(f"{seed} {name}"), size, broker_dies=broker_dies))


def _burn(rng: Random, size: Size, *, broker_dies: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-fire-") as directory:
        settings = ("group.min.session.timeout.ms=100", "group.initial.rebalance.delay.ms=100")
        broker = Child(Path(directory) / "data", *(word for one in settings for word in ("--set", one)))
        fire = _Fire(broker, rng, size, Path(directory))
        try:
            broker.start()
            _make_topic(broker)
            fire.begin()
            fire.rage(broker_dies=broker_dies)
            fire.calm()
            last = fire.read_offsets()
        finally:
            fire.end()
            broker.close()
        events = [*read(sorted(Path(directory).glob("history-*"))), *last]
    _judge(events, fire, size)


def _make_topic(broker: Child) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    with Wire(broker) as wire:
        answer = wire.ask(19, 5, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        assert answer.topics[0].error_code == 0, answer
        wire.ask(10, 3, FindCoordinatorRequest(key="g"))


def _judge(events: list[Event], fire: _Fire, size: Size) -> None:
    findings = check(events, fire.loading)
    assert not findings, summary(findings)
    kinds = Counter(event.kind for event in events if event.code == 0)
    refused = sum(event.code != 0 and event.kind in (BEAT, COMMIT, SYNC) for event in events)
    generations = dict.fromkeys(fire.groups, 0)
    for event in events:
        if event.kind == SYNC and event.code == 0:
            generations[event.group] = max(generations[event.group], event.generation)
    print(
        f"{size.groups} groups of {MEMBERS} members in {size.processes} processes: {dict(fire.blows)}, "
        f"{sum(generations.values()):,} generations, {kinds[SYNC]:,} assignments, {kinds[COMMIT]:,} commits, "
        f"{kinds[BEAT]:,} heartbeats accepted, {refused:,} requests of those who were out refused"
    )
    # Nothing can be wrong where nothing happens.
    assert min(generations.values()) > 1, generations
    assert refused > size.groups
    assert kinds[COMMIT] > size.groups * MEMBERS


class _Fire:
    def __init__(self, broker: Child, rng: Random, size: Size, directory: Path) -> None:
        self._broker = broker
        self._rng = rng
        self._size = size
        self._directory = directory
        self.groups = [f"group-{number}" for number in range(size.groups)]
        everybody = [
            (group, f"{group}-static-{number}" if number < STATIC else None)
            for group in self.groups
            for number in range(MEMBERS)
        ]
        rng.shuffle(everybody)
        self._shares = [everybody[number :: size.processes] for number in range(size.processes)]
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * size.processes
        self._stopped: set[int] = set()
        self._starts = 0
        self.blows: Counter[str] = Counter()
        self.loading: list[tuple[int, int]] = []  # when the broker was not there

    def begin(self) -> None:
        for number in range(self._size.processes):
            self._start(number)

    def _start(self, number: int) -> None:
        self._starts += 1
        size = self._size
        plan = Plan(
            self._broker.port, f"{self._rng.random()}", str(self._directory / f"history-{self._starts}"),
            str(self._directory / "calm"), self._shares[number], PARTITIONS, size.session_ms, size.rebalance_ms,
            size.beat_s,
        )  # fmt: skip
        command = [sys.executable, "-m", "tests.reliability.group_member", plan.text()]
        self._processes[number] = subprocess.Popen(command)

    # -- blows

    def rage(self, *, broker_dies: bool) -> None:
        deadline = time.monotonic() + self._size.seconds
        due: list[tuple[float, int]] = []  # when a process that was stopped goes on
        blows: list[str] = []
        while time.monotonic() < deadline:
            time.sleep(self._size.strike_s * self._rng.uniform(0.5, 1.5))
            for at, number in [entry for entry in due if entry[0] < time.monotonic()]:
                due.remove((at, number))
                self._go_on(number)
            self._check_alive()
            if not blows:
                blows = ["kill", "kill", "stop", *(["broker"] if broker_dies else [])]
                self._rng.shuffle(blows)
            blow = blows.pop()
            number = self._rng.randrange(self._size.processes)
            self.blows[blow] += 1
            if blow == "broker":
                self._kill_broker()
            elif blow == "kill":
                self._kill(number)
                self._start(number)
            elif number not in self._stopped:
                self._signal(number, signal.SIGSTOP)
                self._stopped.add(number)
                due.append(
                    (time.monotonic() + self._size.session_ms / 1000 * self._rng.uniform(1, 2), number)
                )

    def _kill_broker(self) -> None:
        begin_ns = time.monotonic_ns()
        self._broker.kill()
        self._broker.start()
        with Wire(self._broker) as wire:
            while any(found.error_code for found in self._describe(wire)):
                time.sleep(0.05)
        self.loading.append((begin_ns, time.monotonic_ns()))

    def _describe(self, wire: Wire) -> Any:
        wire.socket.settimeout(self._size.calm_s)
        return wire.ask(15, 5, DescribeGroupsRequest(groups=self.groups)).groups

    def _signal(self, number: int, what: signal.Signals) -> None:
        process = self._processes[number]
        assert process is not None
        os.kill(process.pid, what)

    def _go_on(self, number: int) -> None:
        if number in self._stopped:
            self._stopped.remove(number)
            self._signal(number, signal.SIGCONT)

    def _kill(self, number: int) -> None:
        self._stopped.discard(number)
        process, self._processes[number] = self._processes[number], None
        if process is not None:
            process.kill()
            process.wait()

    def _check_alive(self) -> None:
        for process in self._processes:
            assert process is None or process.poll() is None, "a process of members has failed"

    # -- rest

    def calm(self) -> None:
        """No more mischief: all groups must become stable with all their members, each partition with one."""
        (self._directory / "calm").touch()
        for number in range(self._size.processes):
            self._go_on(number)
        deadline = time.monotonic() + self._size.calm_s
        restless = self._restless()
        while restless:
            self._check_alive()
            assert time.monotonic() < deadline, restless
            time.sleep(0.2)
            restless = self._restless()

    def _restless(self) -> dict[str, Any]:
        with Wire(self._broker) as wire:
            found = self._describe(wire)
        restless: dict[str, Any] = {}
        for group in found:
            given = Counter(at for member in group.members for at in member.member_assignment)
            if group.group_state != "Stable" or len(group.members) != MEMBERS:
                restless[group.group_id] = (group.group_state, len(group.members))
            elif given != Counter(range(PARTITIONS)):
                restless[group.group_id] = given
        return restless

    def read_offsets(self) -> list[Event]:
        """What is committed in the end, as one more reader sees it: something in every partition."""
        return [self._offsets_of(group) for group in self.groups]

    def _offsets_of(self, group: str) -> Event:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        deadline = time.monotonic() + self._size.calm_s
        with Wire(self._broker) as wire:
            wire.socket.settimeout(self._size.calm_s)
            while True:
                sent_ns = time.monotonic_ns()
                (found,) = wire.ask(9, 9, request).groups
                received_ns = time.monotonic_ns()
                assert found.error_code == 0, found
                offsets = tuple(
                    (p.partition_index, p.committed_offset) for t in found.topics for p in t.partitions
                )
                if len(offsets) == PARTITIONS:
                    return Event(group, "reader", None, FETCH, 0, sent_ns, received_ns, 0, offsets)
                assert time.monotonic() < deadline, f"{group}: {offsets}"
                time.sleep(0.1)

    def end(self) -> None:
        for number in range(self._size.processes):
            self._kill(number)
