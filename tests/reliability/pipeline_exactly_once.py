"""kill -9 of a pipeline's driver: whatever the moment, each committed record is in the table once, and nothing else.

Producers run transactions, some of which they abort, while a driver lands the topic in a table. It is killed at random
moments and started again. In the end a last run goes to the end, and the table holds what was committed, each row
once; the quarantine table likewise. In the full count there is a Spark driver, too, which takes longer to start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from ottla.spark.pipeline.config import Pipeline, load
from ottla.spark.pipeline.targets.choice import quarantine_sink, table_sink
from ottla.testing.embedded import EmbeddedBroker
from tests.reliability.pipeline_load import PARTITIONS, TOPIC, TransactionalLoad
from tests.reliability.scenarios import Case
from tests.spark.table_rows import table_rows

TABLES = ("delta", "iceberg", "parquet")
KILLS = 30
_PRODUCERS = 2
_LONGEST_LIFE_S = 0.4
_SPARK_STARTS_S = 180.0
_LAST_RUN_S = 300.0

Kill = Callable[[Path, Random], None]


def cases(seed: int, kills: int = KILLS, drivers: tuple[str, ...] = ("plain", "spark")) -> Iterator[Case]:
    for driver in drivers:
        with closing(_SparkDrivers() if driver == "spark" else _PlainDrivers()) as chosen:
            for form in TABLES:
                name = f"{driver} {form}"
                yield Case(driver, name, partial(_land, chosen, form, kills, Random(f"{seed} {name}")))


def _land(drivers: _PlainDrivers | _SparkDrivers, form: str, kills: int, rng: Random) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-pipeline-") as directory, EmbeddedBroker() as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        file = _write_file(Path(directory), broker, form)
        loads = [
            TransactionalLoad(broker.bootstrap, f"p{number}", f"{rng.random()}")
            for number in range(_PRODUCERS)
        ]
        for load_ in loads:
            load_.start()
        try:
            for _ in range(kills):
                drivers.live_and_die(file, rng)
            for load_ in loads:
                load_.finish()
            drivers.run_to_the_end(file)
        finally:
            for load_ in loads:
                load_.stopping.set()
        _check(load(file), loads)


def _write_file(place: Path, broker: EmbeddedBroker, form: str) -> Path:
    file = place / "pipeline.toml"
    file.write_text(f"""
[source]
topics = ["{TOPIC}"]
bootstrap = "{broker.bootstrap}"
group = "pipeline"
[decode]
value = "json"
schema = "name string not null, day date"
[sink]
format = "{form}"
path = "lake/rows"
partition_by = ["day"]
[run]
trigger = "20 ms"
checkpoint = "checkpoint"
max_records = 1000
""")
    return file


def _check(pipeline: Pipeline, loads: list[TransactionalLoad]) -> None:
    table = table_rows(table_sink(pipeline))
    assert table is not None, "no table was made"
    committed = Counter(name for one in loads for name in one.committed)
    assert committed, "the producers committed nothing"
    _same(Counter(table.column("name").to_pylist()), committed)
    aside = table_rows(quarantine_sink(pipeline))
    bad = Counter(value for one in loads for value in one.committed_bad)
    _same(Counter(aside.column("bytes").to_pylist() if aside is not None else []), bad)
    if pipeline.sink.format == "parquet":
        # The bare directory, as a reader sees it who knows nothing of commits.
        bare = pq.read_table(pipeline.sink.path, columns=["name"])
        _same(Counter(bare.column("name").to_pylist()), committed)


def _same(found: Counter[Any], expected: Counter[Any]) -> None:
    missing, extra = expected - found, found - expected
    assert not missing, f"{missing.total()} rows are missing, such as {list(missing)[:3]}"
    assert not extra, f"{extra.total()} rows too many, such as {list(extra)[:3]}"


class _PlainDrivers:
    """Drivers whose tasks run in their own process, forked from one that has loaded everything."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.reliability.pipeline_driver"]
        self._nursery = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def live_and_die(self, file: Path, rng: Random) -> None:
        driver = self._start("run", file)
        time.sleep(rng.random() * _LONGEST_LIFE_S)  # the moment is of the essence, and chosen by the seed
        os.kill(driver, signal.SIGKILL)
        assert self._answer("ended") == signal.SIGKILL, "the driver ended before it was killed"

    def run_to_the_end(self, file: Path) -> None:
        self._start("once", file)
        assert self._answer("ended") == 0, "the last run failed"

    def _start(self, word: str, file: Path) -> int:
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(f"{word} {file}\n")
        self._nursery.stdin.flush()
        return self._answer("pid")

    def _answer(self, word: str) -> int:
        assert self._nursery.stdout is not None
        found, _, number = self._nursery.stdout.readline().strip().partition(" ")
        assert found == word, f"{word} was expected, not {found}"
        return int(number)

    def close(self) -> None:
        self._nursery.kill()
        self._nursery.wait()
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.stdout.close()


class _SparkDrivers:
    """`ottla pipeline run`, with Spark's JVM and workers behind it."""

    def __init__(self) -> None:
        self._driver: subprocess.Popen[str] | None = None

    def live_and_die(self, file: Path, rng: Random) -> None:
        with (file.parent / "driver.log").open("w+") as log:
            driver = self._start(file, log)
            if rng.random() < 0.2:
                time.sleep(rng.random() * 5)
            else:
                self._wait_for_batch(driver, file.parent / "driver.log")
                time.sleep(rng.random() * 3)
            driver.kill()
            assert driver.wait() == -signal.SIGKILL, (
                f"it ended by itself:\n{(file.parent / 'driver.log').read_text()}"
            )

    def _start(self, file: Path, log: object, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), *more]
        self._driver = subprocess.Popen(command, stdout=log, stderr=log, text=True)  # type: ignore[call-overload]
        return self._driver

    def _wait_for_batch(self, driver: subprocess.Popen[str], log: Path) -> None:
        deadline = time.monotonic() + _SPARK_STARTS_S
        while "batch" not in log.read_text():
            assert driver.poll() is None, f"it ended by itself:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"no batch came:\n{log.read_text()}"
            time.sleep(0.02)

    def run_to_the_end(self, file: Path) -> None:
        with (file.parent / "last.log").open("w+") as log:
            status = self._start(file, log, "--once").wait(_LAST_RUN_S)
        assert status == 0, (file.parent / "last.log").read_text()

    def close(self) -> None:
        if self._driver is not None and self._driver.poll() is None:
            self._driver.kill()
            self._driver.wait()
