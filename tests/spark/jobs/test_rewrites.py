"""Repair, reindexing, compaction and stats on Spark leave and tell the same as the plain commands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ottla.cli.log import repair as log_repair
from ottla.cli.spark.check import Output, run_repair, run_stats, run_verify
from ottla.cli.spark.rewrite import run_compact, run_reindex
from ottla.config import LogConfig
from ottla.errors import ConfigError, CorruptRecordError, LogDirLockedError
from ottla.logtools import offline
from ottla.logtools.listing import list_partition
from ottla.runtime import SystemRuntime
from tests.spark.jobs.damaged import make_healthy
from tests.spark.jobs.helping import FS, Here, records, target_at, tree

_HOLD = """\
import sys
from ottla.storage.fs import RealFileSystem
lock = RealFileSystem().lock(sys.argv[1] + "/.lock")
print("held" if lock else "not held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_healthy(tmp_path_factory.mktemp("healthy") / "data")


def copies(path: Path, into: Path) -> tuple[Path, Path]:
    """Two copies of the same name, since names are in what is told."""
    made = into / "plain" / path.name, into / "spark" / path.name
    for copy in made:
        shutil.copytree(path, copy)
    return made


def without_times(files: dict[str, bytes]) -> dict[str, bytes]:
    """A loss goes on record with the time of the repair."""
    return {name: re.sub(rb'"found_ms": \d+', b"", data) for name, data in files.items()}


@pytest.mark.parametrize("number", [0, 1])
def test_a_repair_leaves_every_byte_as_the_plain_one_does(
    spark: SparkSession, damaged: list[Path], tmp_path: Path, number: int
) -> None:
    plain, other = copies(damaged[number], tmp_path)
    report = tmp_path / "steps.parquet"
    is_whole = log_repair.run(FS, target_at(plain), write=True, skip_corrupt=True, as_json=False)
    output = Output(str(report))
    assert run_repair(Here(spark=spark), str(other), output, write=True, skip_corrupt=True) == is_whole
    assert without_times(tree(other)) == without_times(tree(plain))
    steps = pq.read_table(report).to_pylist()
    assert len([step for step in steps if step["done"]]) > 5
    assert {step["action"] for step in steps} >= {"rebuild", "quarantine"}


def test_a_repair_that_is_only_asked_for_changes_nothing(
    spark: SparkSession, damaged: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(damaged[0])
    assert not run_repair(Here(spark=spark), str(damaged[0]), Output(None), write=False, skip_corrupt=False)
    told = capsys.readouterr().out
    log_repair.run(FS, target_at(damaged[0]), write=False, skip_corrupt=False, as_json=False)
    plain = capsys.readouterr().out.splitlines()
    assert [line for line in told.splitlines() if line in plain] == plain
    assert tree(damaged[0]) == before


def test_indexes_are_rebuilt_and_a_damaged_log_is_left_alone(
    spark: SparkSession, healthy: Path, tmp_path: Path
) -> None:
    plain, other = copies(healthy, tmp_path)
    for root in (plain, other):
        for lost in (*root.glob("orders-0/*.index"), *root.glob("orders-1/*.snapshot")):
            lost.unlink()
        path = min(root.glob("orders-1/*.timeindex"))
        path.write_bytes(bytes(24))
        log = min(root.glob("orders-2/*.log"))
        log.write_bytes(log.read_bytes()[:-1] + b"\x00")
        min(root.glob("orders-2/*.index")).unlink()
    changed = []
    for name in ("orders-0", "orders-1"):
        changed += offline.reindex(FS, list_partition(FS, str(plain / name)), interval=4096, write=True)
    with pytest.raises(CorruptRecordError):
        offline.reindex(FS, list_partition(FS, str(plain / "orders-2")), interval=4096, write=True)
    report = tmp_path / "files.parquet"
    assert not run_reindex(Here(spark=spark), str(other), Output(str(report)), interval=4096, write=True)
    assert tree(other) == tree(plain)
    rows = pq.read_table(report).to_pylist()
    assert sorted(row["file"] for row in rows if row["done"]) == sorted(
        path.replace(str(plain), str(other)) for path in changed
    )
    assert ["orders-2" in row["file"] for row in rows if row["refused"]] == [True]


def test_compaction_keeps_what_the_plain_one_keeps(
    spark: SparkSession, healthy: Path, tmp_path: Path
) -> None:
    plain, other = copies(healthy, tmp_path)
    config = LogConfig(cleanup_policy=frozenset({"compact"}), retention_ms=-1, retention_bytes=-1)
    with closing(SystemRuntime()) as runtime:
        for name in ("orders-0", "orders-1", "orders-2"):
            offline.compact(FS, list_partition(FS, str(plain / name)), runtime, config)
    done = run_compact(
        Here(spark=spark),
        str(other),
        Output(None),
        topics=["orders"],
        delete_retention_ms=86_400_000,
        write=True,
    )
    assert done
    assert records(other) == records(plain)
    assert records(other) != records(healthy)
    name = "cleaner-offset-checkpoint"
    assert (other / name).read_bytes() == (plain / name).read_bytes()
    assert run_verify(Here(spark=spark), str(other), Output(None))


def test_topics_to_compact_must_be_named(spark: SparkSession, healthy: Path) -> None:
    with pytest.raises(ConfigError, match="--topic"):
        run_compact(
            Here(spark=spark), str(healthy), Output(None), topics=[], delete_retention_ms=0, write=True
        )


def test_stats_count_what_the_plain_reader_reads(spark: SparkSession, healthy: Path, tmp_path: Path) -> None:
    report = tmp_path / "stats.parquet"
    run_stats(Here(spark=spark), str(healthy), Output(str(report)))
    rows = pq.read_table(report).to_pylist()
    expected = records(healthy)
    for name, found in expected.items():
        mine = [row for row in rows if f"/{name}/" in row["file"]]
        assert sum(row["size"] for row in mine) == sum(
            file.stat().st_size for file in (healthy / name).glob("*.log")
        )
        # A marker is a record too, in a batch of its own.
        assert sum(row["records"] for row in mine) == len(found)
        assert max(row["max_timestamp"] for row in mine) == max(record[1] for record in found)
        assert (mine[0]["first_offset"], mine[-1]["last_offset"]) == (found[0][0], found[-1][0])
        assert sum(row["control"] for row in mine) == 12
        assert set(mine[0]["codecs"].split()) == {"none", "gzip", "snappy", "lz4", "zstd"}
        assert all(row["unreadable"] == 0 for row in mine)


def test_a_directory_that_a_broker_holds_is_not_written_to(spark: SparkSession, healthy: Path) -> None:
    before = tree(healthy)
    command = [sys.executable, "-c", _HOLD, str(healthy)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        here, output = Here(spark=spark), Output(None)
        with pytest.raises(LogDirLockedError):
            run_repair(here, str(healthy), output, write=True, skip_corrupt=False)
        with pytest.raises(LogDirLockedError):
            run_reindex(here, str(healthy), output, interval=4096, write=True)
        with pytest.raises(LogDirLockedError):
            run_compact(here, str(healthy), output, topics=["orders"], delete_retention_ms=0, write=True)
        holder.communicate()
    (healthy / ".lock").unlink(missing_ok=True)
    before.pop(".lock", None)
    assert tree(healthy) == before
