"""Topic to topic exactly once: the driver is killed with -9 at random moments while producers write in transactions.

Some of those are aborted. At the end each committed record of the one topic is in the other, once, and nothing else is.
Two drivers: a streaming query of Spark, and a small process that does what such a query does, which dies and comes
back in a second and so can be killed more often.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from ottla.client.cluster import Cluster
from ottla.client.producing import Producer
from ottla.records import kernel
from ottla.records.batch import HEADER_SIZE
from ottla.spark.options import read_options
from ottla.spark.read import plan
from ottla.testing.embedded import EmbeddedBroker
from tests.reliability.scenarios import Case

KILLS = 30
PARTITIONS = 3
PROGRESS_S = 900.0
_AHEAD = 300  # as many offsets as a batch takes
# Of a driver by itself, one after another: on a busy machine Spark may not wait for its own workers.
_FAILURES = 3
_KILLED_EARLY = 0.15  # the share of drivers that are killed before they have done anything


def cases(seed: int, kills: int = KILLS) -> Iterator[Case]:
    for kind, options in (("driver", ()), ("spark", ("--spark",))):
        yield Case(kind, kind, partial(_live, Random(f"{seed} {kind}"), kills, options))


def _live(rng: Random, kills: int, options: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-once-") as directory, EmbeddedBroker() as broker:
        for topic in ("in", "out"):
            broker.create_topic(topic, PARTITIONS)
        driver = _Driver(broker.bootstrap, Path(directory), options)
        load = _Load(broker, rng.random(), driver)
        load.start()
        try:
            for _ in range(kills):
                driver.start()
                if rng.random() >= _KILLED_EARLY:
                    driver.wait_for_a_batch()
                time.sleep(rng.random() * 0.5)  # the moment is of the essence, and chosen by the seed
                driver.kill()
        finally:
            driver.kill()
            load.stop()
        driver.finish()
        _check(load.committed, _read(broker))


def _check(written: list[bytes], copied: list[bytes]) -> None:
    assert written
    counts = Counter(copied)
    twice = [value for value, count in counts.items() if count > 1]
    missing, strange = set(written) - counts.keys(), counts.keys() - set(written)
    is_same = not (twice or missing or strange)
    assert is_same, (
        f"of {len(written)} records {len(missing)} are missing, {len(twice)} there twice and {len(strange)} never"
        f" committed, such as {sorted(missing)[:3]}, {sorted(twice)[:3]}, {sorted(strange)[:3]}"
    )


def _read(broker: EmbeddedBroker) -> list[bytes]:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": "out",
        "kafka.isolation.level": "read_committed",
    }
    options = read_options(given)
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    return [
        value
        for split in splits
        for batch in plan.read_split(options, split)
        for value in batch.column("value").to_pylist()
    ]


class _Load(threading.Thread):
    """Writes transactions into topic `in`, a quarter of which come to nothing; never far ahead of the driver."""

    def __init__(self, broker: EmbeddedBroker, seed: float, driver: _Driver) -> None:
        super().__init__(daemon=True)
        self._driver = driver
        self._broker = broker
        self._rng = Random(seed)
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self.committed: list[bytes] = []

    def run(self) -> None:
        try:
            with Cluster(self._broker.bootstrap) as cluster:
                producers = [Producer(cluster, f"load-{number}") for number in range(2)]
                number = 0
                while not self._stopping.is_set():
                    time.sleep(0.01)
                    if len(self.committed) < _AHEAD * (10 + self._driver.batches):
                        number += 1
                        self._transaction(self._rng.choice(producers), number)
        except BaseException as error:
            self._error = error
            raise

    def _transaction(self, producer: Producer, number: int) -> None:
        values = [b"%d-%d" % (number, row) for row in range(self._rng.randint(1, 30))]
        by_partition: dict[int, list[bytes]] = {}
        for value in values:
            by_partition.setdefault(self._rng.randrange(PARTITIONS), []).append(value)
        batches = {}
        for partition, chosen in by_partition.items():
            batch = bytearray(HEADER_SIZE)
            kernel.encode_records(batch, [(0, value, value, ()) for value in chosen], 0, None)
            batches["in", partition] = batch, len(chosen)
        producer.send(batches)
        if self._rng.random() < 0.25:
            producer.abort()
        else:
            producer.commit()
            self.committed += values

    def stop(self) -> None:
        self._stopping.set()
        self.join()
        if self._error is not None:
            raise self._error


class _Driver:
    """The process that is killed, and the processes that it starts."""

    def __init__(self, servers: str, directory: Path, options: tuple[str, ...]) -> None:
        self._checkpoint = directory / "checkpoint"
        self._log = directory / "log"
        self._command = [
            *(sys.executable, "-m", "tests.reliability.copying", servers, str(self._checkpoint), *options)
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._command, *more], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait_for_a_batch(self) -> None:
        """Until it has done one since it was started. One that fails is started again, as an operator would do."""
        before = self._commits()
        deadline = time.monotonic() + PROGRESS_S
        failures = 0
        while self._commits() == before:
            assert self._process is not None
            if self._process.poll() is not None:
                failures += 1
                assert failures <= _FAILURES, self._said()
                self.start()
            assert time.monotonic() < deadline, f"no batch is done: {self._said()}"
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):  # it has come to its end
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def finish(self) -> None:
        """Start it once more, and let it come to the end."""
        for _ in range(1 + _FAILURES):
            self.start("--finish")
            assert self._process is not None
            try:
                if self._process.wait(PROGRESS_S) == 0:
                    return
            finally:
                self.kill()
        raise AssertionError(self._said())

    def _commits(self) -> set[str]:
        commits = self._checkpoint / "commits"
        return set(os.listdir(commits)) if commits.exists() else set()

    @property
    def batches(self) -> int:
        """How many it has begun."""
        offsets = self._checkpoint / "offsets"
        return sum(name.isdigit() for name in os.listdir(offsets)) if offsets.exists() else 0

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]
