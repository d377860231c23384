"""Pipelines on a real Spark cluster (a master, two workers, one of them killed) and through Spark Connect."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.spark.pipeline.config import load
from ottla.spark.pipeline.targets.choice import quarantine_sink, table_sink
from ottla.testing.embedded import EmbeddedBroker
from tests.interop.spark_cluster import SparkProcess, start_connect, start_master, start_worker
from tests.spark.pipeline.helpers import orders, produce
from tests.spark.table_rows import table_rows

RECORDS = 60_000
BATCH = 6_000
_RUNS_S = 600.0


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        running.create_topic("orders", 2)
        produce(running, "orders", [*orders(0, RECORDS // 2), b"bad"], 0)
        produce(running, "orders", orders(RECORDS // 2, RECORDS), 1)
        yield running


def write_file(place: Path, broker: EmbeddedBroker, transform: str) -> Path:
    file = place / "pipeline.toml"
    file.write_text(f"""
[source]
topics = ["orders"]
bootstrap = "{broker.bootstrap}"
[decode]
value = "json"
schema = "id long, item string, price double"
{transform}
[sink]
format = "delta"
path = "lake/rows"
[run]
checkpoint = "checkpoint"
max_records = {BATCH}
""")
    return file


def check(file: Path) -> None:
    pipeline = load(file)
    table = table_rows(table_sink(pipeline))
    assert table is not None
    assert sorted(table.column("id").to_pylist()) == list(range(RECORDS))
    assert quarantine_sink(pipeline).row_count() == 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[SparkProcess]]]:
    processes: list[SparkProcess] = []
    try:
        master, address = start_master(tmp_path)
        processes.append(master)
        processes += [start_worker(tmp_path, f"worker{number}", address) for number in range(2)]
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.parametrize(
    "transform", ["", '[transform]\nsql = "select * from source"\n'], ids=["plain", "sql"]
)
def test_a_pipeline_on_a_cluster_lives_through_the_death_of_a_worker(
    transform: str, broker: EmbeddedBroker, cluster: tuple[str, list[SparkProcess]], tmp_path: Path
) -> None:
    address, workers = cluster
    file = write_file(tmp_path, broker, transform)
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), "--master", address]
    log = tmp_path / "driver.log"
    with log.open("wb") as out:
        driver = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + _RUNS_S
        while "batch 1:" not in log.read_text():
            assert driver.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        workers[0].kill()
        assert driver.wait(_RUNS_S) == 0, log.read_text()
    finally:
        driver.kill()
        driver.wait()
    assert f"{RECORDS + 1:,} records read" in log.read_text()
    check(file)


def test_a_pipeline_runs_through_spark_connect(broker: EmbeddedBroker, tmp_path: Path) -> None:
    (tmp_path / "shaping_connect.py").write_text("def shaped(frame):\n    return frame.where('id >= 0')\n")
    file = write_file(tmp_path, broker, '[transform]\npython = "shaping_connect:shaped"\n')
    server, address = start_connect(tmp_path)
    try:
        command = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), "--remote", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RUNS_S)
        assert done.returncode == 0, done.stderr + server.log_text()[-4000:]
        sql = "select count(distinct id) as n from rows"
        command = [sys.executable, "-m", "ottla", "pipeline", "show", str(file), "--json", "--sql", sql]
        asked = subprocess.run(
            [*command, "--remote", address], capture_output=True, text=True, timeout=_RUNS_S
        )
        assert asked.stdout == f'{{"n": {RECORDS}}}\n', asked.stderr
    finally:
        server.kill()
    check(file)
