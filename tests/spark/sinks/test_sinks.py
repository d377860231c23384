"""One behaviour for every table: a batch lands whole and once, columns are added, small files are merged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from ottla.errors import ConfigError, PipelineError
from ottla.names import TopicPartition
from ottla.spark.read.stream import Position
from ottla.spark.sinks.base import Commit, TableSink
from ottla.spark.sinks.delta import DeltaSink
from ottla.spark.sinks.iceberg import IcebergSink
from ottla.spark.sinks.parquet import ParquetSink
from ottla.spark.tables.ddl import parse_schema
from ottla.spark.tables.table_files import TableWriter
from tests.spark.pipeline.helpers import TABLES, KilledHere
from tests.spark.table_rows import table_rows

APP = "0123456789abcdef"
Maker = Callable[..., TableSink]


@pytest.fixture(params=TABLES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    """Opens the test's table; every call is as a process of its own."""

    def opened(partition_by: tuple[str, ...] = (), *, evolve: bool = False) -> TableSink:
        path = str(tmp_path / "lake/rows")
        if request.param == "delta":
            return DeltaSink(path, partition_by, evolve=evolve)
        if request.param == "iceberg":
            catalog = f"sqlite:///{tmp_path}/lake/catalog.db"
            return IcebergSink(path, "default.rows", catalog, partition_by, evolve=evolve)
        return ParquetSink(path, partition_by, evolve=evolve)

    return opened


def written(sink: TableSink, batch: int, rows: pa.Table, app: str = APP) -> Commit:
    """What tasks and driver do before a commit."""
    writer = TableWriter(sink.layout(app, batch))
    writer.write(rows)
    facts = {"rows": rows.num_rows}
    return Commit(app, batch, at(batch + 1), writer.close(), writer.schema, facts)


def at(offset: int) -> Position:
    return Position({TopicPartition("t", 0): offset}, {"t": "its id"})


def table(**columns: list[object]) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def rows_of(sink: TableSink) -> list[dict[str, object]]:
    found = table_rows(sink)
    assert found is not None
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def test_a_batch_lands_with_its_number_and_offsets(make: Maker) -> None:
    sink = make()
    assert sink.last(APP) is None
    assert sink.schema() is None
    sink.commit(written(sink, 0, table(id=[1, 2], s=["a", None])))
    assert rows_of(make()) == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]
    landed = make().last(APP)
    assert landed is not None
    assert (landed.batch, landed.position, landed.facts["rows"]) == (0, at(1), 2)
    assert landed.facts["committed_ms"] > 0
    assert make().last("another") is None
    assert make().row_count() == 2


def test_a_batch_that_is_there_is_not_landed_again(make: Maker) -> None:
    sink = make()
    sink.commit(written(sink, 0, table(id=[1])))
    sink.commit(written(sink, 1, table(id=[2])))
    for batch in (0, 1):
        again = make()
        again.commit(written(again, batch, table(id=[9])))
    assert [row["id"] for row in rows_of(make())] == [1, 2]


def test_of_two_drivers_with_one_batch_only_one_lands_it(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make()
    first.commit(written(first, 0, table(id=[1])))
    mine, other = make(), make()
    commit = written(mine, 1, table(id=[2]))
    rival = written(other, 1, table(id=[3]))
    _overtaken(mine, monkeypatch, lambda: other.commit(rival))
    with contextlib.suppress(PipelineError):  # told, or found out and left alone
        mine.commit(commit)
    assert [row["id"] for row in rows_of(make())] == [1, 3]


def _overtaken(sink: TableSink, monkeypatch: pytest.MonkeyPatch, rival: Callable[[], None]) -> None:
    """Let another driver commit between this one's look at the table and its own commit."""
    done: list[bool] = []

    def first(name: str, owner: object) -> None:
        original = getattr(owner, name)

        def overtaken(*args: object, **kwargs: object) -> object:
            if not done:
                done.append(True)
                rival()
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, overtaken)

    if isinstance(sink, DeltaSink):
        first("_add_columns", sink)
    elif isinstance(sink, IcebergSink):
        first("_commit", sink)
    else:
        assert isinstance(sink, ParquetSink)
        first("append", sink._log)


def test_a_batch_without_rows_moves_the_offsets(make: Maker) -> None:
    sink = make()
    sink.commit(written(sink, 0, table(id=[1])))
    sink.commit(Commit(APP, 1, at(5)))
    landed = make().last(APP)
    assert landed is not None
    assert (landed.batch, landed.position) == (1, at(5))
    assert len(rows_of(make())) == 1


def test_new_columns_are_added_where_that_is_wanted(make: Maker) -> None:
    sink = make(evolve=True)
    sink.commit(written(sink, 0, table(id=[1])))
    sink.commit(written(sink, 1, table(id=[2], s=["x"], deep=[{"a": 1}])))
    sink.commit(written(sink, 2, table(id=[3], s=["y"])))
    assert rows_of(make()) == [
        {"id": 1, "s": None, "deep": None},
        {"id": 2, "s": "x", "deep": {"a": 1}},
        {"id": 3, "s": "y", "deep": None},
    ]


def test_new_fields_inside_of_columns_are_added_where_that_is_wanted(make: Maker) -> None:
    sink = make(evolve=True)
    sink.commit(written(sink, 0, table(id=[1], deep=[{"a": 1, "b": {"c": "x"}}], many=[[{"a": 1}]])))
    wider = table(id=[2], deep=[{"n": 2.5, "b": {"d": [7]}, "a": 2}], many=[[{"a": 2, "b": "y"}, None]])
    sink.commit(written(sink, 1, wider))
    sink.commit(written(sink, 2, table(id=[3], deep=[None], many=[[]])))
    sink.commit(written(sink, 3, table(id=[4], deep=[{"a": 4}], many=[[{"b": "z"}]])))
    expected = [
        {"id": 1, "deep": {"a": 1, "b": {"c": "x", "d": None}, "n": None}, "many": [{"a": 1, "b": None}]},
        {"id": 2, "deep": {"a": 2, "b": {"c": None, "d": [7]}, "n": 2.5}, "many": [{"a": 2, "b": "y"}, None]},
        {"id": 3, "deep": None, "many": []},
        {"id": 4, "deep": {"a": 4, "b": None, "n": None}, "many": [{"a": None, "b": "z"}]},
    ]
    assert rows_of(make()) == expected
    assert "4 files became 1" in make().compact()
    assert rows_of(make()) == expected


def test_new_fields_inside_of_columns_are_refused_where_they_are_not_wanted(make: Maker) -> None:
    sink = make()
    sink.commit(written(sink, 0, table(id=[1], deep=[{"a": 1}])))
    with pytest.raises(
        PipelineError, match=r"has no column for: deep\.b struct<c: string>; evolve_schema = true adds"
    ):
        sink.commit(written(sink, 1, table(id=[2], deep=[{"b": {"c": "x"}}])))
    assert len(rows_of(make())) == 1


def test_new_columns_are_refused_where_they_are_not_wanted(make: Maker) -> None:
    sink = make()
    sink.commit(written(sink, 0, table(id=[1])))
    with pytest.raises(PipelineError, match="has no column for: s string; evolve_schema = true adds"):
        sink.commit(written(sink, 1, table(id=[2], s=["x"])))
    assert len(rows_of(make())) == 1


def test_rows_are_cast_to_the_tables_types_or_refused(make: Maker) -> None:
    sink = make(evolve=True)
    sink.commit(written(sink, 0, table(id=[1], price=[1.5])))
    sink.commit(
        written(sink, 1, pa.table({"id": pa.array([2], pa.int32()), "price": pa.array([3], pa.int64())}))
    )
    assert rows_of(make())[1] == {"id": 2, "price": 3.0}
    with pytest.raises(ConfigError, match="column price is string, but double in the table"):
        written(sink, 2, table(id=[3], price=["cheap"]))


ODD = ["plain", "with space", "a/b", "ü:%41", "quote'\"", "=", None, "x" * 50]


def test_partition_values_of_every_kind_come_back(make: Maker) -> None:
    sink = make(("s", "day"))
    days = pa.array(list(range(len(ODD))), pa.int32()).cast(pa.date32())
    rows = pa.table({"id": pa.array(range(len(ODD))), "s": pa.array(ODD), "day": days})
    sink.commit(written(sink, 0, rows))
    assert [row["s"] for row in rows_of(make(("s", "day")))] == ODD
    assert [row["day"] for row in rows_of(make(("s", "day")))] == days.to_pylist()
    with pytest.raises(ConfigError, match="is partitioned by"):
        make(("day",)).layout(APP, 1)


def test_a_partition_column_that_rows_lack_is_told(make: Maker) -> None:
    with pytest.raises(ConfigError, match="there is no column day"):
        written(make(("day",)), 0, table(id=[1]))


def test_small_files_are_merged_and_rows_stay(make: Maker) -> None:
    sink = make(("s",), evolve=True)
    for batch in range(4):
        rows = table(id=[batch], s=["a"]) if batch < 3 else table(id=[batch], s=["a"], new=[7])
        sink.commit(written(sink, batch, rows))
    before = rows_of(make(("s",)))
    assert "4 files became 1" in make(("s",)).compact()
    assert rows_of(make(("s",))) == before
    assert len(make(("s",)).active_files()) == 1
    landed = make(("s",)).last(APP)
    assert landed is not None
    assert landed.batch == 3
    sink = make(("s",), evolve=True)
    sink.commit(written(sink, 4, table(id=[4], s=["a"])))
    assert len(rows_of(make(("s",)))) == 5


def test_an_entry_of_the_parquet_log_is_finished_by_whoever_opens_the_table(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "rows"), (), evolve=False)
    commit = written(sink, 0, table(id=[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sink._log, "append", _dying_behind(sink._log.append))
        with pytest.raises(KilledHere):
            sink.commit(commit)
    assert list((tmp_path / "rows").glob("*.parquet")) == []
    opened = ParquetSink(str(tmp_path / "rows"), (), evolve=False)
    assert opened.last(APP) is not None
    assert len(list((tmp_path / "rows").glob("*.parquet"))) == 1


def _dying_behind(call: Callable[..., None]) -> Callable[..., None]:
    def dies(*args: object) -> None:
        call(*args)
        raise KilledHere

    return dies


def test_the_parquet_log_is_read_through_its_summaries(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "rows"), (), evolve=False)
    for batch in range(23):
        sink.commit(written(sink, batch, table(id=[batch])))
    for version in range(19):
        (tmp_path / f"rows/_ottla_commits/{version:09d}.json").unlink()
    opened = ParquetSink(str(tmp_path / "rows"), (), evolve=False)
    assert opened.row_count() == 23
    assert len(rows_of(opened)) == 23


def test_a_directory_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/other.parquet").write_bytes(b"")
    with pytest.raises(PipelineError, match="has files that no commit of ottla names"):
        ParquetSink(str(tmp_path / "rows"), (), evolve=False).layout(APP, 0)


EXTREMES = """
id int, b boolean, y byte, s short, l long, f float, d double, t string, x binary, day date, at timestamp,
local timestamp_ntz, n1 decimal(1, 1), n9 decimal(9, 0), n18 decimal(18, 18), n38 decimal(38, 0), n38s decimal(38, 37),
inner struct<n: decimal(20, 5), at: timestamp, l: array<date>>, many array<struct<n: decimal(38, 38)>>, none string
"""


def _extreme(number: int, sign: int, when: datetime) -> dict[str, object]:
    """A row at one end of what every type can hold."""
    least = sign < 0

    def ended(bits: int) -> int:
        return -(2 ** (bits - 1)) if least else 2 ** (bits - 1) - 1

    def nines(precision: int, scale: int) -> Decimal:
        return Decimal((int(least), (9,) * precision, -scale))

    deep = {"n": nines(20, 5), "at": when, "l": [when.date(), None]}
    floats = {"f": sign * 3.4028234663852886e38, "d": sign * 1.7976931348623157e308}
    numbers = {"n1": nines(1, 1), "n9": nines(9, 0), "n18": nines(18, 18), "n38": nines(38, 0)}
    return {
        "id": number,
        "b": least,
        "y": ended(8),
        "s": ended(16),
        "l": ended(64),
        "t": "",
        "x": b"",
        "day": when.date(),
        "at": when,
        "local": when.replace(tzinfo=None),
        "n38s": nines(38, 37),
        **floats,
        **numbers,
        "inner": deep,
        "many": [{"n": nines(38, 38)}, None],
        "none": None,
    }


def test_the_ends_of_every_type_land_as_they_are(make: Maker) -> None:
    rows = [
        _extreme(0, -1, datetime(1, 1, 1, tzinfo=UTC)),
        _extreme(1, 1, datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        # pyiceberg's reader takes a list of structs that is null for an empty one.
        dict.fromkeys(parse_schema(EXTREMES).names) | {"id": 2, "many": []},
    ]
    sink = make()
    sink.commit(written(sink, 0, pa.Table.from_pylist(rows, parse_schema(EXTREMES))))
    assert rows_of(make()) == rows
    # And into a table that is there.
    again = make()
    later = [row | {"id": number} for number, row in enumerate(rows, 3)]
    again.commit(written(again, 1, pa.Table.from_pylist(later, parse_schema(EXTREMES))))
    assert rows_of(make()) == rows + later


@pytest.mark.parametrize("name", ["at", "local", "day", "n18", "l", "t"])
def test_rows_of_every_partition_land_as_they_are(make: Maker, name: str) -> None:
    columns = parse_schema(
        "id int, at timestamp, local timestamp_ntz, day date, n18 decimal(18, 18), l long, t string"
    )
    rows = [
        {column: _extreme(number, sign, when)[column] for column in columns.names} | {"t": "x/%=ä"}
        for number, (sign, when) in enumerate(
            ((-1, datetime(1, 1, 1, tzinfo=UTC)), (1, datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)))
        )
    ]
    rows[0]["n18"] = Decimal("0E-18")
    sink = make((name,))
    sink.commit(written(sink, 0, pa.Table.from_pylist(rows, columns)))
    assert rows_of(make((name,))) == rows
