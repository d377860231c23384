"""Topics that `ottla spark import` builds: Apache Kafka and ottla serve them to Kafka's own client, row for row."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.interop.client import KafkaClient
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.serving import OttlaServer

START_MS = 1_700_000_000_000
PARTITIONS = 3
TIMEOUT_S = 300


def write_rows(path: Path, rng: Random, count: int, size: int = 100) -> dict[bytes, list[dict[str, Any]]]:
    """Rows in Parquet, and what a consumer must see of each key, in order."""
    rows: list[dict[str, Any]] = [
        {
            "key": b"key %d" % rng.randrange(200),
            "value": None if rng.random() < 0.05 else rng.randbytes(rng.randrange(size)),
            "timestamp": START_MS + number,
            "headers": [{"key": "h", "value": b"%d" % number}] if number % 3 else None,
        }
        for number in range(count)
    ]
    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("timestamp", pa.timestamp("ms", "UTC")),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=count // 4)
    by_key: dict[bytes, list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(row["key"], []).append(
            {
                "value": text(row["value"]),
                "timestamp": row["timestamp"],
                "headers": [[h["key"], text(h["value"])] for h in row["headers"] or []],
            }
        )
    return by_key


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def consumed(client: KafkaClient) -> dict[bytes, list[dict[str, Any]]]:
    found: dict[bytes, list[dict[str, Any]]] = {}
    for partition in range(PARTITIONS):
        answer = client.consume("orders", partition)
        records = answer["records"]
        assert [record["offset"] for record in records] == list(range(len(records)))
        assert (answer["start"], answer["end"]) == (0, len(records))
        for record in records:
            seen = {name: record[name] for name in ("value", "timestamp", "headers")}
            found.setdefault(base64.b64decode(record["key"]), []).append(seen)
    return found


def spark(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", "spark", *map(str, arguments), "--master", "local[2]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_kafka_serves_every_row_behind_a_topic_that_it_made(tmp_path: Path, rng: Random) -> None:
    source = tmp_path / "rows.parquet"
    expected = write_rows(source, rng, 20_000)
    broker = KafkaBroker(NEWEST, tmp_path / "work")
    with broker:
        with broker.client() as client:
            client.create("orders", PARTITIONS)
        broker.stop()
    spark("import", "--from", source, "--topic", "orders", "--append", "--into", broker.data_dir)
    with broker, broker.client() as client:
        assert consumed(client) == expected
        [[_, offset, found]] = client.times("orders", [START_MS + 10_000])
        assert offset is not None
        assert found is not None
        assert found >= START_MS + 10_000
        text = broker.log_text()
        broker.stop()
    assert [line for line in text.splitlines() if " ERROR " in line and "orders-" in line] == []
    assert "Found invalid" not in text
    assert "healthy" in spark("verify", broker.data_dir).stdout


def test_ottla_serves_every_row_of_a_new_directory(tmp_path: Path, rng: Random) -> None:
    source, data = tmp_path / "rows.parquet", tmp_path / "data"
    expected = write_rows(source, rng, 20_000)
    spark("import", "--from", source, "--topic", "orders", "--partitions", PARTITIONS, "--into", data)
    with OttlaServer(data) as server, KafkaClient(NEWEST, server.servers, tmp_path / "client.log") as client:
        assert consumed(client) == expected
        client.create("next")
    assert sorted(path.name for path in data.iterdir() if path.is_dir()) == [
        "next-0",
        *(f"orders-{number}" for number in range(PARTITIONS)),
    ]


def test_a_killed_import_leaves_no_topic(tmp_path: Path, rng: Random) -> None:
    source, data = tmp_path / "rows.parquet", tmp_path / "data"
    write_rows(source, rng, 1000)
    arguments = ["--topic", "orders", "--partitions", "3", "--into", str(data)]
    spark("import", "--from", source, "--topic", "first", "--partitions", 1, "--into", data)
    write_rows(source, rng, 200_000, size=1000)
    command = [sys.executable, "-m", "ottla", "spark", "import", "--from", str(source), *arguments]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + TIMEOUT_S
    while not any(path.suffix == ".spool" for path in data.glob("orders-*-delete/*")):
        assert process.poll() is None, "the import was over before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with OttlaServer(data) as server, KafkaClient(NEWEST, server.servers, tmp_path / "client.log") as client:
        assert client.consume("first")["end"] == 1000
        client.create("orders", PARTITIONS)  # the name is free
        assert client.consume("orders")["end"] == 0
