"""Import and export: every row once, in its place and order, in directories that verify finds nothing wrong with."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ottla.cli.spark.check import Output
from ottla.cli.spark.import_options import SourceOptions
from ottla.cli.spark.move import run_export, run_import
from ottla.cluster.sqlite import SqliteStore
from ottla.errors import ConfigError, CorruptRecordError
from ottla.logtools.verify.data_dir import verify
from ottla.records.compression.codec import Codec
from ottla.spark.jobs.import_topic import ImportOptions
from ottla.storage.checkpoint import read_topic_id
from tests.spark.jobs.damaged import make_healthy
from tests.spark.jobs.helping import FS, ROWS, Here, records, target_at, tree

START_MS = 1_700_000_000_000
SMALL = {"internal.segment.bytes": "6000", "index.interval.bytes": "300"}


def rows(count: int, seed: int = 1) -> list[dict[str, object]]:
    rng = Random(f"rows {seed}")
    return [
        {
            "key": None if rng.random() < 0.2 else b"key %d" % rng.randrange(50),
            "value": None if rng.random() < 0.1 else rng.randbytes(rng.randrange(200)),
            "timestamp": START_MS + number + rng.randrange(-500, 500),
            "headers": rng.choice([None, [], [{"key": "h", "value": b"1"}, {"key": "none", "value": None}]]),
        }
        for number in range(count)
    ]


def write(path: Path, given: list[dict[str, object]], row_group_size: int = 150) -> str:
    pq.write_table(pa.Table.from_pylist(given, schema=ROWS), path, row_group_size=row_group_size)
    return str(path)


def as_record(row: dict[str, object]) -> tuple[object, ...]:
    headers = [(header["key"], header["value"]) for header in row["headers"] or []]  # type: ignore[attr-defined]
    return (row["timestamp"], row["key"], row["value"], headers)


def murmur2(data: bytes) -> int:
    """Written down a second time, from the algorithm's definition."""
    mix, mask = 0x5BD1E995, 0xFFFFFFFF
    state = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * mix & mask
        word = (word ^ word >> 24) * mix & mask
        state = (state * mix & mask) ^ word
    if rest := data[whole:]:
        state = (state ^ int.from_bytes(rest, "little")) * mix & mask
    state = (state ^ state >> 13) * mix & mask
    return state ^ state >> 15


def test_the_hash_here_is_the_one_of_kafkas_own_test() -> None:
    # From the values that Kafka's UtilsTest expects, which are signed.
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert {key: murmur2(key) - (murmur2(key) >> 31 << 32) for key in known} == known


def run(spark: SparkSession, source: str, into: Path, **options: object) -> None:
    chosen = ImportOptions(str(into), "orders", **options)  # type: ignore[arg-type]
    run_import(Here(spark=spark), SourceOptions(source), chosen, Output(None))


@pytest.fixture(scope="module")
def imported(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, object]]]:
    """A new data directory of 1000 rows; not to be changed."""
    root = tmp_path_factory.mktemp("imported")
    given = rows(1000)
    source = root / "rows"
    source.mkdir()
    write(source / "a.parquet", given[:600])
    write(source / "b.parquet", given[600:])
    run(spark, str(source), root / "data", partitions=3, codec=Codec.LZ4, batch_bytes=1000, config=SMALL)
    assert sorted(path.name for path in root.iterdir()) == ["data", "rows"]
    return root / "data", given


def test_every_row_is_there_in_its_partition_and_in_order(
    imported: tuple[Path, list[dict[str, object]]],
) -> None:
    path, given = imported
    found = records(path)
    assert sum(map(len, found.values())) == len(given)
    for number in range(3):
        log = found[f"orders-{number}"]
        assert [record[0] for record in log] == list(range(len(log)))
        keyed = [row for row in given if row["key"] is not None]
        mine = [row for row in keyed if (murmur2(row["key"]) & 0x7FFFFFFF) % 3 == number]  # type: ignore[arg-type]
        assert [record[1:] for record in log if record[2] is not None] == [as_record(row) for row in mine]
    without_key = [record[1:] for log in found.values() for record in log if record[2] is None]
    assert sorted(without_key, key=repr) == sorted(
        (as_record(row) for row in given if row["key"] is None), key=repr
    )


def test_an_imported_directory_has_several_segments_and_no_finding(
    imported: tuple[Path, list[dict[str, object]]],
) -> None:
    path, _ = imported
    assert list(verify(FS, target_at(path))) == []
    assert len(list(path.glob("orders-0/*.log"))) > 3


def test_the_cluster_knows_an_imported_topic_by_its_id(
    imported: tuple[Path, list[dict[str, object]]],
) -> None:
    path, _ = imported
    store = SqliteStore(str(path / "ottla.db"), "")
    store.open()
    topic = store.load().topics["orders"]
    store.close()
    ids = {read_topic_id(FS, str(path / f"orders-{number}/partition.metadata")) for number in range(3)}
    assert ids == {topic.topic_id}
    assert isinstance(topic.topic_id, uuid.UUID)
    assert topic.config == SMALL
    assert [partition.leader for partition in topic.partitions] == [1, 1, 1]


def test_a_topic_that_is_there_is_refused_or_added_to(
    spark: SparkSession, imported: tuple[Path, list[dict[str, object]]], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    shutil.copytree(imported[0], path)
    before, files = records(path), tree(path)
    source = write(tmp_path / "more.parquet", rows(100, seed=2))
    with pytest.raises(ConfigError, match="--append"):
        run(spark, source, path, partitions=3)
    assert tree(path).keys() - {".lock"} == files.keys()
    run(spark, source, path, append=True)
    after = records(path)
    assert {name: log[: len(before[name])] for name, log in after.items()} == before
    added = [record for name, log in after.items() for record in log[len(before[name]) :]]
    assert len(added) == 100
    assert list(verify(FS, target_at(path))) == []


def test_an_import_that_fails_leaves_nothing(
    spark: SparkSession, imported: tuple[Path, list[dict[str, object]]], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    shutil.copytree(imported[0], path)
    before = {name: data for name, data in tree(path).items() if not name.endswith(".snapshot")}
    table = pa.table({"value": ["a", "b"], "partition": pa.array([0, 7], pa.int32())})
    pq.write_table(table, tmp_path / "bad.parquet")
    for options in ({"append": True}, {"partitions": 2}):
        topic = "orders" if "append" in options else "other"
        chosen = ImportOptions(str(path), topic, **options)
        source = SourceOptions(str(tmp_path / "bad.parquet"))
        with pytest.raises(ConfigError, match="a row asks for 7"):
            run_import(Here(spark=spark), source, chosen, Output(None))
    # To see where the logs end, they were opened and closed: that leaves snapshots.
    assert {name for name in tree(path) if not name.endswith(".snapshot")} == before.keys()
    assert records(path) == records(imported[0])
    with pytest.raises(ConfigError, match="a row asks for 7"):
        run(spark, str(tmp_path / "bad.parquet"), tmp_path / "new", partitions=2)
    assert not list(tmp_path.glob("new*"))


def test_rows_of_any_format_come_through_a_query(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("".join(f"{number},text {number}\n" for number in range(50)))
    source = SourceOptions(
        str(tmp_path / "rows.csv"),
        "csv",
        sql="select _c0 as key, _c1 as value from source where _c0 > 9",
    )
    report = tmp_path / "report.parquet"
    run_import(Here(spark=spark), source, ImportOptions(str(tmp_path / "data"), "t", 1), Output(str(report)))
    found = records(tmp_path / "data")["t-0"]
    assert [(record[2], record[3]) for record in found] == [
        (b"%d" % number, b"text %d" % number) for number in range(10, 50)
    ]
    assert list(verify(FS, target_at(tmp_path / "data"))) == []
    assert pq.read_table(report)["end_offset"].to_pylist() == [40]


def test_an_export_holds_what_the_plain_reader_reads_and_comes_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = make_healthy(tmp_path / "data", partitions=2)
    out = tmp_path / "out"
    assert run_export(
        Here(spark=spark), str(path), str(out), Output(None), topics=["orders"], skip_corrupt=False
    )
    expected = records(path)
    table = pq.read_table(out)
    assert set(table.schema.names) == {
        "key", "value", "offset", "timestamp", "timestampType", "headers", "topic", "partition",
    }  # fmt: skip
    for number in range(2):
        # Control records are not data.
        data = [record for record in expected[f"orders-{number}"] if len(record[2] or b"") != 4]
        mine = [row for row in table.to_pylist() if int(row["partition"]) == number]
        assert [(row["offset"], row["key"], row["value"]) for row in mine] == [
            (record[0], record[2], record[3]) for record in data
        ]
    back = tmp_path / "back"
    source = SourceOptions(str(out), keep_partitions=True)
    run_import(Here(spark=spark), source, ImportOptions(str(back), "orders", 2), Output(None))
    for number in range(2):
        data = [record[1:] for record in expected[f"orders-{number}"] if len(record[2] or b"") != 4]
        assert [record[1:] for record in records(back)[f"orders-{number}"]] == data


def test_an_export_stops_at_damage_or_leaves_it_out(spark: SparkSession, tmp_path: Path) -> None:
    path = make_healthy(tmp_path / "data", partitions=1)
    log = sorted(path.glob("orders-0/*.log"))[1]
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    out = tmp_path / "out"
    here, report = Here(spark=spark), tmp_path / "files.parquet"
    with pytest.raises(CorruptRecordError):
        run_export(here, str(path), str(out), Output(None), topics=[], skip_corrupt=False)
    assert not list(tmp_path.glob("out*"))
    assert not run_export(here, str(path), str(out), Output(str(report)), topics=[], skip_corrupt=True)
    assert sum(pq.read_table(report)["damaged"].to_pylist()) == 1
