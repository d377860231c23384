"""How the commands that talk to a broker behave: one suite for every broker.

A test module gives a fixture `bootstrap`, the address of a broker that makes no topics by itself, and inherits
from the classes here.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from typer.testing import CliRunner, Result

from ottla.cli.main import app

DEADLINE_S = 60
START_MS = 1_700_000_000_000
_numbers = itertools.count()


class Ottla:
    """The command line, with one broker to talk to."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *args: object, typed: str | None = None) -> Result:
        """In this process: quick, but without a real standard input."""
        environment = {"OTTLA_BOOTSTRAP": self.bootstrap}
        words = [str(arg) for arg in args]
        return CliRunner().invoke(app, words, prog_name="ottla", env=environment, input=typed)

    def ok(self, *args: object, typed: str | None = None) -> str:
        """What it prints, when all goes well."""
        done = self(*args, typed=typed)
        assert done.exit_code == 0, done.output
        return done.stdout

    def lines(self, *args: object) -> list[Any]:
        return [json.loads(line) for line in self.ok(*args).splitlines()]

    def start(self, *args: object, **streams: Any) -> subprocess.Popen[bytes]:
        """In a process of its own, with pipes."""
        environment = {**os.environ, "OTTLA_BOOTSTRAP": self.bootstrap}
        words = [sys.executable, "-m", "ottla", *map(str, args)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen(words, env=environment, **pipes)


def _new_name() -> str:
    """One that no test had before."""
    return f"clients-{os.getpid()}-{next(_numbers)}"


class Behaviours:
    @pytest.fixture
    def ottla(self, bootstrap: str) -> Ottla:
        return Ottla(bootstrap)

    @pytest.fixture
    def new_topic(self) -> str:
        """A name for a topic that is not there."""
        return _new_name()

    @pytest.fixture
    def topic(self, ottla: Ottla) -> Iterator[str]:
        """A topic with three partitions, for one test."""
        name = _new_name()
        ottla.ok("topics", "create", name, "--partitions", 3)
        yield name
        ottla.ok("topics", "delete", name, "--yes", "--if-exists")

    @pytest.fixture
    def send(self, ottla: Ottla, topic: str, tmp_path: Path) -> Any:
        """Sends what it is given, as a file, to the topic."""

        def send(data: str | bytes, *options: object, partition: int | None = 0) -> None:
            file = tmp_path / "input"
            file.write_bytes(data.encode() if isinstance(data, str) else data)
            where = () if partition is None else ("--partition", partition)
            # The client library takes half a second to get a producer's id.
            ottla.ok("produce", topic, file, *where, "--no-idempotent", *options)

        return send


class Topics(Behaviours):
    def test_a_topic_is_there_as_soon_as_create_returns(self, ottla: Ottla, topic: str) -> None:
        assert topic in ottla.ok("topics", "list").splitlines()
        (row,) = [row for row in ottla.lines("topics", "list", "--json") if row["topic"] == topic]
        assert row == {"topic": topic, "partitions": 3, "replicas": 1, "internal": False}
        assert re.search(rf"^{topic} +3 +1$", ottla.ok("topics", "list", "--long"), re.MULTILINE)

    def test_describe_shows_partitions_offsets_and_what_was_configured(
        self, ottla: Ottla, topic: str
    ) -> None:
        ottla.ok("configs", "set", "topic", topic, "retention.ms=86400000")
        (described,) = ottla.lines("topics", "describe", topic, "--json")
        assert described["configs"] == {"retention.ms": "86400000"}
        assert re.fullmatch(r"[A-Za-z0-9_-]{22}", described["id"])
        assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
        node = described["partitions"][0]["leader"]
        assert described["partitions"][1] == {
            "partition": 1,
            "leader": node,
            "replicas": [node],
            "isr": [node],
            "earliest": 0,
            "latest": 0,
        }
        text = ottla.ok("topics", "describe", topic)
        assert text.startswith(
            f"{topic}  partitions 3, replicas 1, id {described['id']}\n  retention.ms=86400000\n"
        )
        assert re.search(r"^ +2 +\d+ +\d+ +\d+ +0 +0$", text, re.MULTILINE)

    def test_describe_tells_of_a_topic_that_is_not_there_and_shows_the_others(
        self, ottla: Ottla, topic: str
    ) -> None:
        done = ottla("topics", "describe", "no-such-topic", topic)
        assert done.exit_code == 1
        assert "ottla: no-such-topic: Broker: Unknown topic or partition" in done.stderr
        assert "`ottla topics list`" in done.stderr
        assert done.stdout.startswith(topic)

    def test_a_topic_is_made_only_once(self, ottla: Ottla, topic: str) -> None:
        done = ottla("topics", "create", topic)
        assert done.exit_code == 1
        assert "already exists" in done.stderr
        assert "--if-not-exists" in done.stderr
        assert ottla.ok("topics", "create", topic, "--if-not-exists") == ""

    def test_a_topic_is_made_with_configs_or_not_at_all(self, ottla: Ottla, new_topic: str) -> None:
        done = ottla("topics", "create", new_topic, "--config", "cleanup.policy=burn")
        assert done.exit_code == 1
        assert "cleanup.policy" in done.stderr
        assert new_topic not in ottla.ok("topics", "list").splitlines()
        ottla.ok("topics", "create", new_topic, "-c", "cleanup.policy=compact", "-c", "segment.ms=60000")
        (described,) = ottla.lines("topics", "describe", new_topic, "--json")
        assert described["configs"] == {"cleanup.policy": "compact", "segment.ms": "60000"}
        ottla.ok("topics", "delete", new_topic, "--yes")

    def test_validate_only_makes_nothing(self, ottla: Ottla, new_topic: str, topic: str) -> None:
        assert (
            ottla.ok("topics", "create", new_topic, "--validate-only") == f"{new_topic}: could be created\n"
        )
        assert new_topic not in ottla.ok("topics", "list").splitlines()
        ottla.ok("topics", "add-partitions", topic, "--total", 5, "--validate-only")
        assert len(ottla.lines("topics", "offsets", topic, "--json")) == 3

    def test_delete_asks_first(self, ottla: Ottla, topic: str) -> None:
        for answer in ("n\n", ""):
            done = ottla("topics", "delete", topic, typed=answer)
            assert done.exit_code == 1
            assert f"Delete {topic} with all records" in done.stderr
            assert "nothing was deleted" in done.stderr
            assert topic in ottla.ok("topics", "list").splitlines()
        assert ottla.ok("topics", "delete", topic, typed="y\n").endswith(f"{topic}: deleted\n")
        assert topic not in ottla.ok("topics", "list").splitlines()
        assert ottla("topics", "delete", topic, "--yes").exit_code == 1
        assert ottla.ok("topics", "delete", topic, "--yes", "--if-exists") == ""

    def test_partitions_can_be_added_but_not_taken_away(self, ottla: Ottla, topic: str) -> None:
        assert ottla.lines("topics", "add-partitions", topic, "--total", 4, "--json") == [
            {"topic": topic, "widened": True}
        ]
        assert len(ottla.lines("topics", "offsets", topic, "--json")) == 4
        done = ottla("topics", "add-partitions", topic, "--total", 2)
        assert done.exit_code == 1
        assert done.stderr.startswith(f"ottla: {topic}: ")

    def test_offsets_are_found_by_end_and_by_time(self, ottla: Ottla, topic: str, send: Any) -> None:
        for number in range(4):
            send("one\ntwo\n", "--timestamp", START_MS + number * 1000)
        assert ottla.ok("topics", "offsets", topic) == f"{topic}:0:8\n{topic}:1:0\n{topic}:2:0\n"
        at = f"@{START_MS + 1500}"
        assert ottla.ok("topics", "offsets", topic, "--at", at) == f"{topic}:0:4\n{topic}:1:\n{topic}:2:\n"
        (found,) = ottla.lines("topics", "offsets", topic, "--at", "max-timestamp", "-p", 0, "--json")
        assert (found["offset"], found["timestamp"]) in {(6, START_MS + 3000), (7, START_MS + 3000)}
        assert ottla("topics", "offsets", topic, "-p", 3).exit_code == 1
        assert ottla("topics", "offsets", topic, "--at", 3).exit_code == 2


class Configs(Behaviours):
    def test_what_is_set_is_shown_until_it_is_unset(self, ottla: Ottla, topic: str) -> None:
        assert ottla.ok("configs", "show", "topic", topic) == ""
        ottla.ok("configs", "set", "topic", topic, "retention.ms=1000", "cleanup.policy=compact,delete")
        assert (
            ottla.ok("configs", "show", "topic", topic)
            == "cleanup.policy=compact,delete\nretention.ms=1000\n"
        )
        ottla.ok("configs", "unset", "topic", topic, "cleanup.policy")
        assert ottla.ok("configs", "show", "topic", topic) == "retention.ms=1000\n"

    def test_all_settings_come_with_source_and_meaning(self, ottla: Ottla, topic: str) -> None:
        ottla.ok("configs", "set", "topic", topic, "segment.ms=12345")
        rows = {row["key"]: row for row in ottla.lines("configs", "show", "topic", topic, "--all", "--json")}
        assert (rows["segment.ms"]["value"], rows["segment.ms"]["source"]) == ("12345", "topic")
        assert (rows["cleanup.policy"]["value"], rows["cleanup.policy"]["source"]) == ("delete", "default")
        assert rows["cleanup.policy"]["meaning"]
        text = ottla.ok("configs", "show", "topic", topic, "--all")
        assert re.search(r"^cleanup\.policy=delete  # default; \w+", text, re.MULTILINE)

    def test_a_value_that_is_not_allowed_changes_nothing(self, ottla: Ottla, topic: str) -> None:
        done = ottla("configs", "set", "topic", topic, "retention.ms=5", "segment.ms=soon")
        assert done.exit_code == 1
        assert "segment.ms" in done.stderr
        ottla.ok("configs", "set", "topic", topic, "retention.ms=5", "--validate-only")
        assert ottla.ok("configs", "show", "topic", topic) == ""
        assert ottla("configs", "set", "topic", topic, "retention.ms").exit_code == 2
        assert ottla("configs", "show", "topic", "no-such-topic").exit_code == 1

    def test_a_broker_has_settings_too(self, ottla: Ottla) -> None:
        node = ottla.lines("cluster", "--json")[0]["brokers"][0]["id"]
        rows = ottla.lines("configs", "show", "broker", node, "--all", "--json")
        assert {"log.dirs", "num.partitions"} <= {row["key"] for row in rows}
        ottla.ok("configs", "set", "broker", node, "log.cleaner.threads=2")
        assert "log.cleaner.threads=2\n" in ottla.ok("configs", "show", "broker", node)
        ottla.ok("configs", "unset", "broker", node, "log.cleaner.threads")
        assert "log.cleaner.threads" not in ottla.ok("configs", "show", "broker", node)
        done = ottla("configs", "show", "broker", 999)
        assert done.exit_code == 1
        assert "there is no broker 999" in done.stderr


class Cluster(Behaviours):
    def test_the_cluster_shows_its_brokers_and_counts(self, ottla: Ottla, topic: str) -> None:
        (cluster,) = ottla.lines("cluster", "--json")
        (broker,) = cluster["brokers"]
        assert f"{broker['host']}:{broker['port']}" == ottla.bootstrap
        assert broker["leads"] == cluster["partitions"] >= 3
        assert cluster["topics"] >= 1
        assert (cluster["under_replicated"], cluster["without_leader"]) == (0, 0)
        text = ottla.ok("cluster")
        assert text.startswith(f"cluster {cluster['cluster_id']}\n")
        assert f"  {ottla.bootstrap}  " in text


class Records(Behaviours):
    def test_records_go_from_the_beginning_up_to_an_offset(self, ottla: Ottla, topic: str, send: Any) -> None:
        for partition in range(2):
            send("a\nb\nc\nd\n", partition=partition)
        text = ottla.ok("records", "delete", topic, "--before", 3, "--partition", 0, "--yes")
        assert text == f"{topic}-0: begins at offset 3\n"
        assert ottla.ok("topics", "offsets", topic, "--at", "earliest", "-p", 0, "-p", 1) == (
            f"{topic}:0:3\n{topic}:1:0\n"
        )
        assert ottla.ok("consume", topic, 0) == "d\n"

    def test_the_last_ones_and_those_since_a_time_can_be_kept(
        self, ottla: Ottla, topic: str, send: Any
    ) -> None:
        for number in range(4):
            send("one\ntwo\n", "--timestamp", START_MS + number * 1000)
        before = f"@{START_MS + 1000}"
        assert ottla.lines("records", "delete", topic, "--before", before, "--yes", "--json") == [
            {"topic": topic, "partition": 0, "earliest": 2}
        ]
        ottla.ok("records", "delete", topic, "--before", -1, "--yes")
        assert ottla.ok("topics", "offsets", topic, "--at", "earliest", "-p", 0) == f"{topic}:0:7\n"
        ottla.ok("records", "delete", topic, "--yes")
        assert ottla.ok("topics", "offsets", topic, "--at", "earliest", "-p", 0) == f"{topic}:0:8\n"
        done = ottla("records", "delete", topic, "--yes")
        assert (done.exit_code, done.stderr) == (0, "ottla: there is nothing to delete\n")

    def test_delete_says_what_goes_and_asks(self, ottla: Ottla, topic: str, send: Any) -> None:
        send("a\nb\nc\n")
        done = ottla("records", "delete", topic, "--before", 2, typed="\n")
        assert done.exit_code == 1
        assert f"{topic}-0: offsets 0 to 1 of 0 to 2" in done.stderr
        assert "nothing was deleted" in done.stderr
        done = ottla("records", "delete", topic, "--before", 4, "--yes")
        assert done.exit_code == 1
        assert f"{topic}-0 ends at offset 3" in done.stderr
        assert ottla.ok("consume", topic) == "a\nb\nc\n"


class ProduceAndConsume(Behaviours):
    def test_a_line_is_a_record(self, ottla: Ottla, topic: str, send: Any) -> None:
        send("one\n\ntwo\r\nthree")
        assert [row["value"] for row in ottla.lines("consume", topic, "--json")] == [
            "one",
            "",
            "two\r",
            "three",
        ]
        assert ottla.ok("consume", topic, "-D", r"|\x21\0") == "one|!\0|!\0two\r|!\0three|!\0"

    def test_the_count_is_told_on_stderr(self, ottla: Ottla, topic: str, tmp_path: Path) -> None:
        file = tmp_path / "lines"
        file.write_text("a\nb\n")
        done = ottla("produce", topic, file, file)
        assert (done.stdout, done.stderr) == ("", f"ottla: 4 records sent to {topic}\n")
        assert ottla("produce", topic, file, "--quiet").stderr == ""

    def test_keys_and_headers_are_cut_out_of_lines_and_put_back(
        self, ottla: Ottla, topic: str, send: Any
    ) -> None:
        send("a:1,b:\tk1|v1\n\tk2|v2|x\n\tv3\n", "--parse-headers", "-K", "|", "-H", "all=1", "-H", "none")
        rows = ottla.lines("consume", topic, "--json")
        assert [(row["key"], row["value"]) for row in rows] == [("k1", "v1"), ("k2", "v2|x"), (None, "v3")]
        everywhere = [{"key": "all", "value": "1"}, {"key": "none", "value": None}]
        assert rows[0]["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": ""}, *everywhere]
        assert rows[1]["headers"] == everywhere
        assert ottla.ok("consume", topic, "--key") == "k1\tv1\nk2\tv2|x\n\tv3\n"
        assert ottla.ok("consume", topic, "--headers", "-K", "|", "--max", 1) == "a:1,b:,all:1,none:\tk1|v1\n"
        assert ottla.ok("consume", topic, "-K", "=", "--null", "-") == "k1=v1\nk2=v2|x\n-=v3\n"

    def test_nulls_have_a_mark(self, ottla: Ottla, topic: str, send: Any) -> None:
        send("k:\n:v\n", "-K", ":", "-Z")
        send("NIL:x\nk:NIL\n", "-K", ":", "--null", "NIL")
        rows = ottla.lines("consume", topic, "--json")
        assert [(row["key"], row["value"]) for row in rows] == [
            ("k", None),
            (None, "v"),
            (None, "x"),
            ("k", None),
        ]
        assert ottla.ok("consume", topic, "--key", "-Z") == "k\tNULL\nNULL\tv\nNULL\tx\nk\tNULL\n"

    def test_json_lines_say_everything_and_come_back(self, ottla: Ottla, topic: str, send: Any) -> None:
        raw = {"base64": base64.b64encode(b"\xff\x00").decode()}
        records: list[dict[str, Any]] = [
            {
                "key": "k",
                "value": "ä",
                "headers": [{"key": "h", "value": raw}],
                "partition": 2,
                "timestamp": 5,
            },
            {"key": raw, "value": None, "headers": [], "partition": 2, "timestamp": START_MS},
        ]
        send("\n\n".join(map(json.dumps, records)), "--json", partition=None)
        shown = ottla.ok("consume", topic, "--json")
        rows = [json.loads(line) for line in shown.splitlines()]
        assert rows == [{"topic": topic, "offset": n, **record} for n, record in enumerate(records)]
        send(shown, "--json", partition=None)
        assert [row["value"] for row in ottla.lines("consume", topic, 2, "--json")] == ["ä", None] * 2

    def test_json_may_be_short(self, ottla: Ottla, topic: str, send: Any) -> None:
        send(
            '{"value": {"a": [1, "ü"]}, "headers": {"x": "y"}}\n{}\n{"value": 7, "headers": [["p", null]]}',
            "--json",
        )
        rows = ottla.lines("consume", topic, 0, "--json")
        assert [row["value"] for row in rows] == ['{"a":[1,"ü"]}', None, "7"]
        assert [row["headers"] for row in rows] == [
            [{"key": "x", "value": "y"}],
            [],
            [{"key": "p", "value": None}],
        ]

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("{", "not JSON"),
            ("[]", "not a JSON object"),
            ('{"partition": "x"}', "partition is not a number"),
            ('{"value": {"base64": "?"}}', "not base64"),
            ('{"headers": [1]}', "headers are written"),
        ],
    )
    def test_a_line_that_cannot_be_read_is_named_and_those_before_are_sent(
        self, ottla: Ottla, topic: str, tmp_path: Path, line: str, told: str
    ) -> None:
        file = tmp_path / "lines"
        file.write_text('{"value": "good"}\n' + line + '\n{"value": "after"}\n')
        done = ottla("produce", topic, file, "--json")
        assert done.exit_code == 1
        assert f"record 2: {told}" in done.stderr
        assert "1 record acknowledged, 0 refused, 0 unknown" in done.stderr
        assert ottla.ok("consume", topic) == "good\n"

    def test_a_record_may_be_any_bytes(self, ottla: Ottla, topic: str, send: Any) -> None:
        send(b"one\x00two\n\x00", "--delimiter", r"\0")
        send(b"\x00\x00\x00\x02a\n\xff\xff\xff\xff\x00\x00\x00\x00", "--binary")
        send(b"a\nb\n" * 1000, "--whole-file", "--key", "file", "-z", "gzip")
        sizes = ottla.ok("consume", topic, "--format", "%o %K %S,")
        assert sizes == "0 -1 3,1 -1 4,2 -1 2,3 -1 -1,4 -1 0,5 4 4000,"
        done = CliRunner().invoke(
            app, ["consume", topic, "--offset", "2:5", "--binary", "-b", ottla.bootstrap]
        )
        assert done.stdout_bytes == b"\x00\x00\x00\x02a\n\xff\xff\xff\xff\x00\x00\x00\x00"

    def test_binary_input_that_ends_too_early_is_told(self, ottla: Ottla, topic: str, tmp_path: Path) -> None:
        file = tmp_path / "input"
        file.write_bytes(b"\x00\x00\x00\x01a\x00\x00\x00\x05b")
        done = ottla("produce", topic, file, "--binary")
        assert done.exit_code == 1
        assert "the input ends in the middle of a record" in done.stderr
        assert ottla.ok("consume", topic) == "a\n"

    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_every_codec_and_large_records(self, ottla: Ottla, topic: str, send: Any, codec: str) -> None:
        ottla.ok("configs", "set", "topic", topic, "max.message.bytes=10000000")
        values = ["small", "x" * 3_000_000, "y" * 10_000]
        send("\n".join(values), "--compression", codec)
        assert ottla.ok("consume", topic) == "".join(f"{value}\n" for value in values)

    @pytest.mark.parametrize(
        "options", [("--acks", 0), ("--acks", 1), ("--idempotent",), ("--no-idempotent",)]
    )
    def test_acks_and_idempotence(
        self, ottla: Ottla, topic: str, send: Any, options: tuple[object, ...]
    ) -> None:
        send("a\nb\n", *options)
        # With acks=0 they may still be on their way.
        assert ottla.ok("consume", topic, 0, "--follow", "--max", 2) == "a\nb\n"

    def test_keys_choose_the_partition_that_kafkas_own_clients_choose(
        self, ottla: Ottla, topic: str, send: Any
    ) -> None:
        send("a:1\nb:2\nc:3\nkey:4\n", "-K", ":", partition=None)
        rows = ottla.lines("consume", topic, "--json")
        # As kafka-python's copy of that hash says, too.
        assert {row["key"]: row["partition"] for row in rows} == {"a": 1, "b": 2, "c": 1, "key": 1}

    def test_a_record_that_is_refused_ends_with_1(self, ottla: Ottla, topic: str, tmp_path: Path) -> None:
        ottla.ok("configs", "set", "topic", topic, "max.message.bytes=1000")
        file = tmp_path / "lines"
        file.write_text("x" * 2000)
        done = ottla("produce", topic, file)
        assert done.exit_code == 1
        assert "too large" in done.stderr.lower()
        assert "0 records acknowledged, 1 refused, 0 unknown" in done.stderr
        file.write_text("a\n")
        done = ottla("produce", topic, file, "--partition", 7)
        assert done.exit_code == 1
        assert "Unknown partition" in done.stderr

    def test_a_topic_that_is_not_there(self, ottla: Ottla, new_topic: str, tmp_path: Path) -> None:
        file = tmp_path / "lines"
        file.write_text("a\n")
        done = ottla("produce", new_topic, file)
        assert done.exit_code == 1
        assert f"`ottla topics create {new_topic}`" in done.stderr
        done = ottla("consume", new_topic)
        assert done.exit_code == 1
        assert "`ottla topics list`" in done.stderr


class Reading(Behaviours):
    @pytest.fixture(scope="class")
    @classmethod
    def filled(cls, bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> str:
        """Partition 0 has 0 to 9, a second apart; partition 1 has 10 and 11; partition 2 is empty. Only to read."""
        ottla, name = Ottla(bootstrap), _new_name()
        rows = [{"value": str(n), "timestamp": START_MS + n * 1000, "partition": n // 10} for n in range(12)]
        file = tmp_path_factory.mktemp("reading") / "rows"
        file.write_text("\n".join(map(json.dumps, rows)))
        ottla.ok("topics", "create", name, "--partitions", 3)
        ottla.ok("produce", name, file, "--json", "--no-idempotent")
        return name

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ((), range(12)),
            ((0,), range(10)),
            ((1, 2), (10, 11)),
            (("--from", "latest"), ()),
            (("--from", 8), (8, 9)),
            (("--from", -1), (9, 11)),
            (("--from", -100), range(12)),
            (("--from", f"@{START_MS + 8500}"), (9, 10, 11)),
            (("--from", "2023-11-14T22:13:28.500Z"), (9, 10, 11)),
            (("--from", "-1d"), ()),
            (("--to", 2), (0, 1, 10, 11)),
            (("--to", -2), range(8)),
            (("--to", f"@{START_MS + 1000}"), (0,)),
            (("--from", f"@{START_MS + 8000}", "--to", f"@{START_MS + 11000}"), (8, 9, 10)),
            ((0, "--offset", "3:5"), (3, 4)),
            (("--offset", "9"), (9,)),
            ((0, "--max", 3), (0, 1, 2)),
            (("--isolation", "read_uncommitted"), range(12)),
        ],
    )
    def test_it_reads_what_lies_between_two_places(
        self, ottla: Ottla, filled: str, options: tuple[object, ...], expected: Any
    ) -> None:
        printed = ottla.ok("consume", filled, *options).split()
        assert sorted(printed, key=int) == [str(n) for n in expected]
        assert [n for n in printed if int(n) < 10] == sorted((n for n in printed if int(n) < 10), key=int)

    def test_a_format_shows_what_it_names(self, ottla: Ottla, filled: str) -> None:
        shown = ottla.ok("consume", filled, 1, "--max", 1, "--format", r"%t %p %o %T [%k] %s %h %% \x41\\\n")
        assert shown == f"{filled} 1 0 {START_MS + 10_000} [] 10  % A\\\n"

    @pytest.mark.parametrize(
        "options",
        [
            ("--from", "sometime"),
            ("--from", "--5"),
            ("--offset", "1", "--from", "2"),
            ("--follow", "--to", "5"),
            ("--json", "--key"),
            ("--format", "%q"),
            ("--format", "%"),
            ("-K", r"\q"),
        ],
    )
    def test_wrong_usage_ends_with_2_before_anything_is_read(
        self, ottla: Ottla, options: tuple[object, ...]
    ) -> None:
        done = ottla("consume", "no-such-topic", *options)
        assert (done.exit_code, done.stdout) == (2, "")

    def test_an_offset_that_is_gone_is_told(self, ottla: Ottla, topic: str, send: Any) -> None:
        send("0\n1\n2\n3\n4\n5\n6\n")
        ottla.ok("records", "delete", topic, "--before", 4, "-p", 0, "--yes")
        done = ottla("consume", topic, "--offset", "2:6")
        assert (done.exit_code, done.stdout.split()) == (0, ["4", "5"])
        assert done.stderr == f"ottla: {topic}-0 begins at offset 4\n"

    def test_a_partition_that_is_not_there_is_told(self, ottla: Ottla, filled: str) -> None:
        done = ottla("consume", filled, 7)
        assert done.exit_code == 1
        assert f"{filled} has no partition 7" in done.stderr


class Pipes(Behaviours):
    """Real processes with real pipes and signals."""

    def test_lines_are_sent_and_followed_as_they_come(self, ottla: Ottla, topic: str) -> None:
        with (
            ottla.start("consume", topic, "--follow", "--from", "earliest") as reader,
            ottla.start("produce", topic, "-") as writer,
        ):
            assert writer.stdin is not None
            assert reader.stdout is not None
            for line in (b"first\n", b"second\n"):
                writer.stdin.write(line)
                writer.stdin.flush()
                assert reader.stdout.readline() == line
            assert writer.communicate(timeout=DEADLINE_S)[1] == f"ottla: 2 records sent to {topic}\n".encode()
            assert writer.returncode == 0
            reader.send_signal(signal.SIGINT)
            assert reader.communicate(timeout=DEADLINE_S) == (b"", b"")
            assert reader.returncode == 130

    def test_ctrl_c_sends_what_was_read_and_says_how_much(self, ottla: Ottla, topic: str) -> None:
        # Two records fill a batch and go at once; the third would wait a minute for a fourth.
        waiting = ("-X", "batch.num.messages=2", "-X", "linger.ms=60000", "--partition", 0)
        with (
            ottla.start("consume", topic, "--follow", "--max", 2) as reader,
            ottla.start("produce", topic, *waiting) as writer,
        ):
            assert writer.stdin is not None
            assert writer.stderr is not None
            writer.stdin.write(b"a\nb\nc\n")
            writer.stdin.flush()
            assert reader.communicate(timeout=DEADLINE_S)[0] == b"a\nb\n"
            writer.send_signal(signal.SIGINT)
            assert writer.stderr.read() == f"ottla: 3 records sent to {topic}\n".encode()
            assert writer.wait(DEADLINE_S) == 130
        assert ottla.ok("consume", topic) == "a\nb\nc\n"

    def test_a_reader_that_has_seen_enough_ends_it_quietly(self, ottla: Ottla, topic: str, send: Any) -> None:
        send("".join(f"{n}\n" for n in range(200_000)))
        with ottla.start("consume", topic) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == b"0\n"
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(DEADLINE_S) == 141

    def test_progress_is_shown_on_a_terminal(self, ottla: Ottla, topic: str, tmp_path: Path) -> None:
        file = tmp_path / "lines"
        file.write_bytes(b"x\n" * 1000)
        assert b"1,000" in self.seen_on_a_terminal(ottla, "produce", topic, file)
        assert b"records read: 1,000" in self.seen_on_a_terminal(ottla, "consume", topic)
        assert self.seen_on_a_terminal(ottla, "consume", topic, "--quiet") == b""

    def seen_on_a_terminal(self, ottla: Ottla, *args: object) -> bytes:
        """What is written to stderr where that is a terminal, and stdout is not."""
        ours, theirs = os.openpty()
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            try:
                process = ottla.start(
                    *args, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, stderr=theirs
                )
            finally:
                os.close(theirs)
            seen = b""
            with contextlib.suppress(OSError):  # it ends so when nobody can write to it any more
                while part := terminal.read(1 << 16):
                    seen += part
            assert process.wait(DEADLINE_S) == 0
            return seen

    def test_to_follow_ends_when_nobody_reads_though_nothing_comes(self, ottla: Ottla, topic: str) -> None:
        with ottla.start("consume", topic, "--follow") as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(DEADLINE_S) == 141


class Groups(Behaviours):
    @pytest.fixture
    def group(self, ottla: Ottla, topic: str, send: Any) -> Iterator[str]:
        """A group that has committed offset 2 of the four in partition 0."""
        send("a\nb\nc\nd\n")
        name = _new_name()
        ottla.ok("groups", "reset", name, "--to", 2, "--topic", f"{topic}:0")
        yield name
        ottla.ok("groups", "delete", name, "--yes", "--if-exists")

    @pytest.fixture
    def reader(self, ottla: Ottla, group: str, topic: str) -> Iterator[Consumer]:
        """A member of the group that has its partitions."""
        config = {
            "bootstrap.servers": ottla.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "log_level": 0,
        }
        consumer = Consumer({**config, "enable.auto.commit": False})
        consumer.subscribe([topic])
        deadline = time.monotonic() + DEADLINE_S
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        yield consumer
        consumer.close()

    def test_groups_are_listed(self, ottla: Ottla, group: str) -> None:
        assert group in ottla.ok("groups", "list").splitlines()
        (row,) = [row for row in ottla.lines("groups", "list", "--json") if row["group"] == group]
        assert row["state"] == "empty"
        assert group in ottla.ok("groups", "list", "--state", "Empty")
        assert group not in ottla.ok("groups", "list", "--state", "stable")
        assert ottla("groups", "list", "--state", "sleepy").exit_code == 2
        assert re.search(rf"^{group} +empty +classic$", ottla.ok("groups", "list", "--long"), re.MULTILINE)

    def test_describe_shows_offsets_and_lag(self, ottla: Ottla, group: str, topic: str) -> None:
        (described,) = ottla.lines("groups", "describe", group, "--json")
        assert (described["state"], described["members"], described["lag"]) == ("empty", 0, 2)
        (partition,) = described["partitions"]
        assert partition == {
            "topic": topic, "partition": 0, "committed": 2, "end": 4, "lag": 2,
            "member": None, "instance": None, "client": None, "host": None,
        }  # fmt: skip
        assert re.search(rf"{topic} +0 +2 +4 +2 +- +-", ottla.ok("groups", "describe", group))

    def test_describe_shows_who_reads_what(self, ottla: Ottla, group: str, reader: Consumer) -> None:
        (described,) = ottla.lines("groups", "describe", group, "--json")
        assert (described["state"], described["members"], described["assignor"]) == ("stable", 1, "range")
        partitions = described["partitions"]
        assert [row["partition"] for row in partitions] == [0, 1, 2]
        assert {(row["instance"], row["client"]) for row in partitions} == {(None, "reader")}
        assert {row["member"][:7] for row in partitions} == {"reader-"}
        refused = ottla("groups", "reset", group, "--to", "latest")
        assert refused.exit_code == 1
        assert "has 1 member " in refused.stderr
        assert ottla("groups", "delete", group, "--yes").exit_code == 1

    def test_a_dry_run_changes_nothing(self, ottla: Ottla, group: str, topic: str) -> None:
        (row,) = ottla.lines("groups", "reset", group, "--to", "latest", "--dry-run", "--json")
        assert row == {"group": group, "topic": topic, "partition": 0, "before": 2, "after": 4, "done": False}
        assert "dry run" in ottla("groups", "reset", group, "--to", "latest", "-n").stderr
        assert ottla.lines("groups", "describe", group, "--json")[0]["lag"] == 2

    @pytest.mark.parametrize(
        ("place", "offset"),
        [("earliest", 0), ("latest", 4), ("3", 3), ("99", 4), ("-1", 3), ("@0", 0), ("-0s", 4)],
    )
    def test_offsets_are_set_to_a_place(self, ottla: Ottla, group: str, place: str, offset: int) -> None:
        ottla.ok("groups", "reset", group, f"--to={place}")
        assert ottla.lines("groups", "describe", group, "--json")[0]["partitions"][0]["committed"] == offset

    @pytest.mark.parametrize(("shift", "offset"), [(1, 3), (-1, 1), (0, 2), (99, 4), (-99, 0)])
    def test_offsets_are_shifted(self, ottla: Ottla, group: str, shift: int, offset: int) -> None:
        ottla.ok("groups", "reset", group, f"--shift={shift}")
        assert ottla.lines("groups", "describe", group, "--json")[0]["partitions"][0]["committed"] == offset

    def test_offsets_are_set_to_a_time(self, ottla: Ottla, topic: str, group: str) -> None:
        times = [record["timestamp"] for record in ottla.lines("consume", topic, 0, "--json")]
        ottla.ok("groups", "reset", group, f"--to=@{times[-1] + 1}")
        assert ottla.lines("groups", "describe", group, "--json")[0]["lag"] == 0
        ottla.ok("groups", "reset", group, f"--to=@{times[0]}")
        assert ottla.lines("groups", "describe", group, "--json")[0]["lag"] == 4

    def test_what_makes_no_sense_is_said(self, ottla: Ottla, topic: str, group: str) -> None:
        for wrong in ((), ("--to", "latest", "--shift", 1), ("--to", "max-timestamp"), ("--to", "soon")):
            assert ottla("groups", "reset", group, *wrong).exit_code == 2
        nowhere = ottla("groups", "reset", group, "--shift", 1, "--topic", f"{topic}:1")
        assert (nowhere.exit_code, "no offset" in nowhere.stderr) == (1, True)
        nothing = ottla("groups", "reset", _new_name(), "--to", "latest")
        assert (nothing.exit_code, "--topic" in nothing.stderr) == (1, True)
        assert ottla("groups", "reset", group, "--to", "latest", "--topic", "no-such-topic").exit_code == 1
        away = ottla("groups", "delete", group, "--yes", "--bootstrap", "localhost:1", "--timeout", 1)
        assert away.exit_code == 1

    def test_members_without_a_partition_are_shown(
        self, ottla: Ottla, group: str, topic: str, reader: Consumer
    ) -> None:
        """One partition less than members: somebody has nothing to do."""
        config = {
            "bootstrap.servers": ottla.bootstrap,
            "group.id": group,
            "client.id": "other",
            "log_level": 0,
            "partition.assignment.strategy": "range",
        }
        others = [Consumer(config) for _ in range(3)]
        try:
            for other in others:
                other.subscribe([topic])
            deadline = time.monotonic() + DEADLINE_S
            idle: list[Any] = []
            while len(idle) != 1:
                assert time.monotonic() < deadline
                for consumer in (reader, *others):
                    consumer.poll(0.02)
                (described,) = ottla.lines("groups", "describe", group, "--json")
                idle = described["idle"] if described["state"] == "stable" else []
            assert described["members"] == 4
            assert idle[0]["member"] not in {row["member"] for row in described["partitions"]}
            lines = ottla.ok("groups", "describe", group).splitlines()
            assert any(line.split()[:6] == ["-"] * 5 + [idle[0]["member"]] for line in lines)
        finally:
            for other in others:
                other.close()

    def test_a_group_is_deleted_once(self, ottla: Ottla, group: str) -> None:
        assert ottla.ok("groups", "delete", group, "--yes") == f"{group}: deleted\n"
        assert ottla("groups", "delete", group, "--yes").exit_code == 1
        assert ottla("groups", "describe", group).exit_code == 1


class Transactions(Behaviours):
    @pytest.fixture
    def producer(self, ottla: Ottla, topic: str) -> Producer:
        """One whose transactional id is the topic's name, with a record in an open transaction."""
        config = {"bootstrap.servers": ottla.bootstrap, "transactional.id": topic, "log_level": 0}
        producer = Producer(config)
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce(topic, "x", partition=0)
        assert producer.flush(DEADLINE_S) == 0
        return producer

    def listed(self, ottla: Ottla, name: str, *options: str) -> list[Any]:
        rows = ottla.lines("transactions", "list", "--json", *options)
        return [row for row in rows if row["transactional_id"] == name]

    def described(self, ottla: Ottla, name: str) -> Any:
        (row,) = ottla.lines("transactions", "describe", name, "--json")
        return row

    @pytest.mark.usefixtures("producer")
    def test_an_open_transaction_is_listed_and_described(self, ottla: Ottla, topic: str) -> None:
        (row,) = self.listed(ottla, topic)
        assert (row["coordinator"], row["state"]) == (1, "Ongoing")
        assert self.listed(ottla, topic, "--state", "Ongoing") == [row]
        assert self.listed(ottla, topic, "--state", "Empty", "--state", "CompleteCommit") == []
        assert self.listed(ottla, topic, "--transactional-id-pattern", f"(?i:{topic.upper()})") == [row]
        assert self.listed(ottla, topic, "--pattern", f"{topic}.+") == []
        refused = ottla("transactions", "list", "--pattern", "(")
        assert refused.exit_code == 1
        assert "INVALID_REGULAR_EXPRESSION" in refused.stderr
        assert re.search(rf"^{topic} +1 +\d+ +Ongoing$", ottla.ok("transactions", "list"), re.MULTILINE)
        found = self.described(ottla, topic)
        assert found["partitions"] == [f"{topic}-0"]
        assert found["producer_id"] == row["producer_id"]
        assert (found["state"], found["timeout_ms"]) == ("Ongoing", 60_000)
        assert 0 <= found["age_ms"] < 1000 * DEADLINE_S
        assert re.search(
            rf"^partitions +{topic}-0$", ottla.ok("transactions", "describe", topic), re.MULTILINE
        )

    def test_a_transaction_that_has_ended_is_described(
        self, ottla: Ottla, topic: str, producer: Producer
    ) -> None:
        producer.commit_transaction(DEADLINE_S)
        deadline = time.monotonic() + DEADLINE_S
        while (found := self.described(ottla, topic))["state"] != "CompleteCommit":
            assert time.monotonic() < deadline, found  # Kafka writes its markers after it has answered
        assert found["partitions"] == []

    @pytest.mark.usefixtures("producer")
    def test_a_transaction_is_aborted_in_one_partition(self, ottla: Ottla, topic: str, send: Any) -> None:
        send("after\n")
        assert ottla.ok("consume", topic, 0) == ""
        refused = ottla("transactions", "abort", topic, 0, "--start-offset", 5, "--yes")
        assert refused.exit_code == 1
        assert "open ones begin at 0 (producer" in refused.stderr
        abort = ("transactions", "abort", topic, 0, "--start-offset", 0)
        assert ottla(*abort, typed="n\n").exit_code == 1
        assert ottla.ok("consume", topic, 0) == ""
        assert f"in {topic}-0" in ottla.ok(*abort, typed="y\n")
        assert ottla.ok("consume", topic, 0) == "after\n"
        assert "none is open there" in ottla(*abort, "--yes").stderr

    def test_what_is_not_there_is_told(self, ottla: Ottla, new_topic: str) -> None:
        unknown = ottla("transactions", "describe", new_topic)
        assert unknown.exit_code == 1
        assert new_topic in unknown.stderr
        assert ottla("transactions", "list", "--state", "Sleepy").exit_code == 1
        gone = ottla("transactions", "abort", new_topic, 0, "--start-offset", 0, "--yes")
        assert gone.exit_code == 1
        assert new_topic in gone.stderr
