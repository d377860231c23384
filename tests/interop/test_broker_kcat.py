"""kcat, as Debian has it, on `ottla serve`."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop import apt
from tests.interop.serving import OttlaServer

_numbers = itertools.count()


class Kcat(NamedTuple):
    """The program, with one broker to talk to."""

    servers: str

    def command(self, *arguments: str) -> list[str]:
        return ["kcat", "-b", self.servers, *arguments]

    def __call__(self, *arguments: str, typed: bytes = b"") -> bytes:
        """What it prints; a failure of the program is one of the test."""
        done = subprocess.run(self.command(*arguments), input=typed, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def read(self, topic: str, *options: str) -> list[dict[str, Any]]:
        """Records of the first partition up to its end, as JSON."""
        out = self("-C", "-q", "-e", "-J", "-t", topic, "-p", "0", *options)
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module")
def kcat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kcat]:
    if not shutil.which("kcat"):
        apt.install(("kcat",))
    with OttlaServer(tmp_path_factory.mktemp("kcat") / "data", "--set", "num.partitions=2") as server:
        yield Kcat(server.servers)


@pytest.fixture
def topic() -> str:
    """A name; the broker makes the topic when it first hears of it."""
    return f"topic-{next(_numbers)}"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("is_idempotent", [False, True], ids=["plain", "idempotent"])
def test_lines_that_are_sent_come_back(kcat: Kcat, topic: str, codec: str, is_idempotent: bool) -> None:
    lines = [f"key {number}|hodnota č. {number}" for number in range(500)]
    options = ("-X", f"enable.idempotence={str(is_idempotent).lower()}", "-z", codec)
    headers = ("-H", "one=1", "-H", "two=2")
    kcat("-P", "-t", topic, "-p", "0", "-K", "|", *options, *headers, typed="\n".join(lines).encode())
    read = kcat.read(topic, "-o", "beginning")
    assert [f"{one['key']}|{one['payload']}" for one in read] == lines
    assert [one["offset"] for one in read] == list(range(500))
    assert read[0]["headers"] == ["one", "1", "two", "2"]


def test_reading_begins_and_ends_where_it_is_told(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-p", "0", typed="\n".join(map(str, range(100))).encode())
    values = [one["payload"] for one in kcat.read(topic, "-o", "90", "-c", "5")]
    assert values == ["90", "91", "92", "93", "94"]
    assert [one["payload"] for one in kcat.read(topic, "-o", "-3")] == ["97", "98", "99"]


def test_time_finds_records_and_offsets(kcat: Kcat, topic: str) -> None:
    for part in ("one\ntwo\n", "three\n"):
        kcat("-P", "-t", topic, "-p", "0", "-X", "linger.ms=0", typed=part.encode())
    first, second, third = kcat.read(topic, "-o", "beginning")
    assert third["ts"] > first["ts"]
    assert kcat("-Q", "-t", f"{topic}:0:{third['ts']}") == f"{topic} [0] offset 2\n".encode()
    assert kcat("-Q", "-t", f"{topic}:0:{first['ts']}") == f"{topic} [0] offset 0\n".encode()
    later = kcat.read(topic, "-o", f"s@{first['ts'] + 1}")
    assert [one["payload"] for one in later] in (["two", "three"], ["three"])
    assert later == [one for one in (second, third) if one["ts"] > first["ts"]]
    before = kcat.read(topic, "-o", f"s@{first['ts']}", "-o", f"e@{third['ts']}")
    assert before == [first, second]


def test_the_list_shows_brokers_topics_and_partitions(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, typed=b"so that it is there")
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    assert listed["brokers"] == [{"id": 1, "name": kcat.servers}]
    (shown,) = listed["topics"]
    assert shown["topic"] == topic
    assert [(one["partition"], one["leader"]) for one in shown["partitions"]] == [(0, 1), (1, 1)]
    everything = json.loads(kcat("-L", "-J"))
    assert topic in [one["topic"] for one in everything["topics"]]


def test_a_file_goes_through_whole(kcat: Kcat, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 3000)
    kcat("-P", "-t", topic, "-p", "0", str(file))
    assert kcat("-C", "-q", "-e", "-t", topic, "-p", "0", "-o", "0", "-f", "%s") == file.read_bytes()


def test_who_waits_at_the_end_gets_the_next_record_at_once(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-p", "0", typed=b"before")
    # Only the append can end this wait in time.
    options = ("-X", "fetch.wait.max.ms=250000", "-X", "socket.timeout.ms=260000", "-c", "2", "-u", "-q")
    command = kcat.command("-C", "-t", topic, "-p", "0", "-o", "beginning", *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "before\n"
        kcat("-P", "-t", topic, "-p", "0", typed=b"after")
        assert waiting.communicate(timeout=200)[0] == "after\n"
