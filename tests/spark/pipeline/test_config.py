"""A pipeline's file: every key of it, and mistakes told with their place."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tools.pipeline_keys import with_keys

from ottla.errors import ConfigError
from ottla.spark.pipeline.config import load
from ottla.spark.pipeline.example import example_text
from ottla.spark.pipeline.keys import SECTIONS

COMPLETE = """\
[source]
topics = ["orders"]                    # or pattern = "orders.*"
bootstrap = "127.0.0.1:9092"           # or path = "data"
starting = "earliest"                  # latest, a time, or offsets
isolation = "read_committed"
group = "orders-to-lake"               # progress is committed here, so lag is visible

[decode]
value = "json"                         # raw, utf8, json, csv, avro, confluent-avro
schema = "id long, item string, price double, at timestamp"
on_error = "quarantine"                # fail, drop

[transform]                            # optional
sql = "select *, date(at) as day from source where price > 0"

[[expect]]                             # optional
name = "price is positive"
check = "price > 0"

[sink]
format = "delta"                       # iceberg, parquet, topic, console
path = "lake/orders"
partition_by = ["day"]
evolve_schema = true

[run]
trigger = "available_now"              # or "10 seconds"
checkpoint = "lake/_checkpoints/orders"
"""


def test_the_complete_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(COMPLETE)
    pipeline = load(file)
    assert pipeline.source.topics == ("orders",)
    assert pipeline.source.group == "orders-to-lake"
    assert pipeline.decode.schema is not None
    assert pipeline.decode.schema.names == ["id", "item", "price", "at"]
    assert [(one.name, one.check) for one in pipeline.expectations] == [("price is positive", "price > 0")]
    assert pipeline.sink.path == str(tmp_path / "lake/orders")
    assert pipeline.decode.quarantine == str(tmp_path / "lake/orders_quarantine")
    assert pipeline.sink.partition_by == ("day",)
    assert pipeline.sink.evolve_schema
    assert pipeline.interval_s is None
    assert pipeline.checkpoint == tmp_path / "lake/_checkpoints/orders"


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("bootstrap =", "bootstap =", 3, "[source] bootstap: there is no such key; did you mean bootstrap?"),
        ("[sink]", "[snk]", 20, "[snk]: there is no section [snk]; did you mean sink?"),
        ('"delta"', '"dleta"', 21, "did you mean delta?"),
        ("evolve_schema = true", 'evolve_schema = "yes"', 24, "true or false is expected, not 'yes'"),
        ('topics = ["orders"]', 'topics = "orders"', 2, "a list of texts is expected"),
        ("price double", "price duble", 10, "column price: there is no type duble"),
        ("price double", "ID long", 10, "the names id and ID differ only in case"),
        ("price double", "price map<string, int>", 10, "price: a map<string, int> cannot be read from json"),
        ('"available_now"', '"10 moons"', 27, 'write "available_now", or a pause such as "10 seconds"'),
        ('check = "price > 0"', "", 16, "a check is missing"),
        ('value = "json"', 'value = "avro"', 10, 'value = "avro" has no use for it'),
        ("[[expect]]", "[expect]", 16, "write [[expect]], with two brackets"),
        ('checkpoint = "lake/_checkpoints/orders"', "", 26, "name a directory of this pipeline's own"),
        ('bootstrap = "127.0.0.1:9092"', "", 1, "name a broker (bootstrap) or a data directory (path)"),
        (
            'path = "lake/orders"',
            'path = "s3://bucket/orders"',
            None,
            "other kinds of storage are not offered",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(
    old: str, new: str, line: int | None, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "orders.toml"
    assert old in COMPLETE
    file.write_text(COMPLETE.replace(old, new))
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert told in str(raised.value)
    if line is not None:
        assert f"orders.toml:{line}: " in str(raised.value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10 seconds", 10), ("1 second", 1), ("500 ms", 0.5), ("2 minutes", 120), ("3s", 3)]
)
def test_a_trigger_may_be_a_pause(text: str, seconds: float, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(COMPLETE.replace("available_now", text))
    assert load(file).interval_s == seconds


def test_the_example_is_a_pipeline_with_every_key_in_it(tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(example_text())
    assert load(file).sink.format == "delta"
    for keys in SECTIONS.values():
        assert all(f"{name} = " in example_text() for name in keys)
    # Without their #, the keys that stand aside are right too.
    every = "\n".join(
        line.removeprefix("# ") if " = " in line or line.startswith("# [") else line
        for line in example_text().splitlines()
    )
    every = (
        every.replace('pattern = "orders.*"', "").replace("python = ", "# ").replace("schema_file = ", "# ")
    )
    every = every.replace("registry = ", "# ").replace("schemas = ", "# ")
    file.write_text("\n".join(line for line in every.splitlines() if line.startswith("[") or " = " in line))
    assert load(file).sink.compact_every == 20


def test_the_page_lists_every_key() -> None:
    page = Path("docs/pipelines.md").read_text()
    assert with_keys(page) == page, "run `make docs`"
    assert "KEYS" not in page
    assert textwrap.indent(COMPLETE, "    ").replace("    \n", "\n") in page
