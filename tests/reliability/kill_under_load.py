"""kill -9 under load: a broker is killed and started again while producers go on, and nothing acknowledged is lost.

Real clients and raw producers, idempotent and not, with acks=1 and acks=all, write to one broker process. It is killed
at some moment, sometimes again while it recovers; now and then it is stopped instead. After each restart all partitions
are read: every record that had been acknowledged is there, at its offset, in order, once if its producer is idempotent;
offsets have no holes; and what was read before is still the same.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.records.compression.codec import Codec
from ottla.storage import losses
from tests.reliability.child import Child
from tests.reliability.client_load import AiokafkaLoad, ConfluentLoad, KafkaPythonLoad, quiet_clients
from tests.reliability.ledger import Entry, check, summary
from tests.reliability.load import Load, RawLoad
from tests.reliability.reading import read_partition
from tests.reliability.scenarios import Case
from tests.server.wire import Wire

LIVES = 10  # data directories;
KILLS = 5  # each of them lives through so many
ACKS_BEFORE_KILL = 100  # of each producer, since the last start
PROGRESS_S = 120.0
_STOPPED = 0.2  # the share of kills that have a clean stop before them, under the same load
_KILLED_AGAIN = 0.3  # the share of kills that are followed by one before the broker is up
_CREATE_TOPICS = 19
# Segments as small as Kafka allows, so that they roll, and checkpoints all the time.
SETTINGS = (
    "log.segment.bytes=1048576",
    "log.initial.task.delay.ms=100",
    "log.flush.offset.checkpoint.interval.ms=100",
    "log.flush.start.offset.checkpoint.interval.ms=100",
    "replica.high.watermark.checkpoint.interval.ms=100",
)
# The last one is on disk before it is acknowledged.
TOPICS = {"ack": {}, "all": {}, "flushed": {"flush.messages": "1"}}
PARTITIONS = 8


def cases(seed: int, lives: int = LIVES, kills: int = KILLS) -> Iterator[Case]:
    for number in range(lives):
        yield Case("life", f"life {number}", partial(_live, Random(f"{seed} {number}"), kills))


def _live(rng: Random, kills: int) -> None:
    quiet_clients()
    with tempfile.TemporaryDirectory(prefix="ottla-kill-") as directory:
        broker = Child(
            Path(directory) / "data", *(word for setting in SETTINGS for word in ("--set", setting))
        )
        life = _Life(broker, rng)
        try:
            broker.start()
            make_topics(broker)
            life.begin()
            for _ in range(kills):
                if rng.random() < _STOPPED:
                    life.go_through(broker.stop)
                life.go_through(broker.kill)
            life.end()
            lost = list(Path(directory).rglob(losses.FILE))
            assert not lost, f"nothing is lost, but something is on record: {lost}"
        finally:
            life.give_up()
            broker.close()


def make_topics(broker: Child) -> None:
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=PARTITIONS,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
        )
        for name, config in TOPICS.items()
    ]
    with Wire(broker) as wire:
        answer = wire.ask(_CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
    assert all(topic.error_code == 0 for topic in answer.topics), [t.error_message for t in answer.topics]


def all_loads(broker: Child) -> list[Load]:
    """Each has a partition of its own, except for two that share one."""
    loads: list[Load] = []
    clients: tuple[Callable[..., Load], ...] = (ConfluentLoad, KafkaPythonLoad, AiokafkaLoad)
    for number, client in enumerate(clients):
        loads.append(client(broker, "ack", number, is_idempotent=False))
        loads.append(client(broker, "all", number, is_idempotent=True))
    for topic in TOPICS:
        loads.append(RawLoad(broker, topic, 3, is_idempotent=False, acks=1))
        loads.append(RawLoad(broker, topic, 4, is_idempotent=True, acks=1, codec=Codec.ZSTD))
        loads.append(RawLoad(broker, topic, 5, is_idempotent=True, acks=-1))
    loads.append(RawLoad(broker, "flushed", 0, is_idempotent=True, acks=-1))
    loads.append(ConfluentLoad(broker, "flushed", 0, is_idempotent=True))
    return loads


class _Life:
    """A broker's data directory from the first start to the last."""

    def __init__(self, broker: Child, rng: Random) -> None:
        self._broker = broker
        self._rng = rng
        self._loads = all_loads(broker)
        self._read: dict[tuple[str, int], list[Entry]] = {}  # what was read last

    def begin(self) -> None:
        for load in self._loads:
            load.start()

    def go_through(self, end_broker: Callable[[], None]) -> None:
        """Load, the broker's end and its next start; then nothing is missing."""
        self._wait_for_acknowledgements()
        time.sleep(self._rng.random() * 0.5)  # the moment is of the essence, and chosen by the seed
        end_broker()
        acked = {load.name: load.sender.copy().acked for load in self._loads}
        while self._rng.random() < _KILLED_AGAIN:
            self._broker.start_killed(self._rng.random() * 0.8)
        self._broker.start()
        for load in self._loads:
            load.going.clear()  # what is under way goes on; the rest would only slow down the reading
        self._check(lambda load: acked[load.name])
        for load in self._loads:
            load.going.set()

    def end(self) -> None:
        """Everybody stops; now everything that was sent is acknowledged and there."""
        self._wait_for_acknowledgements()
        for load in self._loads:
            load.stopping.set()
        for load in self._loads:
            load.finish()
        self._check(lambda load: load.sender.acked)
        self._broker.stop()
        self._broker.start()
        self._check(lambda load: load.sender.acked)
        print(f"{sum(load.sender.sent for load in self._loads)} records of {len(self._loads)} producers")

    def give_up(self) -> None:
        for load in self._loads:
            load.give_up()

    def _wait_for_acknowledgements(self) -> None:
        """Until the load is back to what it was."""
        reached = {load: len(load.sender.acked) + ACKS_BEFORE_KILL for load in self._loads}
        deadline = time.monotonic() + PROGRESS_S
        while reached:
            reached = {load: count for load, count in reached.items() if len(load.sender.acked) < count}
            for load in self._loads:
                if load.error is not None:
                    raise AssertionError(f"{load.name}: {load.error!r}") from load.error
            assert time.monotonic() < deadline, f"no acknowledgements for {[load.name for load in reached]}"
            time.sleep(0.01)

    def _check(self, acked_of: Callable[[Load], dict[int, int | None]]) -> None:
        """Read everything, and compare it with what had been acknowledged."""
        places: dict[tuple[str, int], list[Load]] = {}
        for load in self._loads:
            places.setdefault((load.topic, load.partition), []).append(load)
        for place, loads in places.items():
            with Wire(self._broker) as wire:
                read = read_partition(wire, *place)
            senders = {load.name: load.sender.copy() for load in loads}
            for load in loads:
                senders[load.name].acked = acked_of(load)
            findings = check(senders, read, earlier=self._read.get(place, ()))
            assert not findings, f"{place[0]}-{place[1]}:\n{summary(findings)}"
            self._read[place] = read
