"""Write the corpus anew with real Kafka: `python -m tests.corpus.make [name ...]`.

One scenario is played on each version twice, once ended by a clean stop and once by `kill -9`. A copy of what
was left is then opened by the same Kafka, and all it reads becomes `expected.json.gz`.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.corpus import HERE
from tests.interop.client import KafkaClient, record
from tests.interop.dump import dump_log_segments
from tests.interop.kafka import NEWEST, KafkaBroker, run_tool

VERSIONS = ("4.2.0", "3.9.1", "2.8.2")
ENDS = ("stopped", "killed")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_FORMATS = {"magic0": "0.9.0", "magic1": "0.10.0"}
FILE_TIME_S = 1_700_000_000
# Records begin this long before now: near enough to the markers' times that segments do not roll by age.
RECORDS_BEGIN_MS = 2 * 3_600_000
CLEAN_TIMEOUT_S = 60.0
# The longest a broker allows by default: the open transaction must outlive the scenario.
TRANSACTION_TIMEOUT_MS = "900000"
WORDS = (
    b"castle process trial metamorphosis ottla milena josefine amerika burrow penal colony judgment".split()
)

BROKER = {"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": "2000000"}
DECODERS = {"__consumer_offsets-0": "--offsets-decoder", "__transaction_state-0": "--transaction-log-decoder"}
COMPACT: dict[str, str] = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}


class Scenario:
    """What is done to one broker; every topic gets its records in two rounds with a restart between them."""

    def __init__(self, version: str, client: KafkaClient, rng: random.Random) -> None:
        self.version = version
        self.client = client
        self.rng = rng
        self.clock = int(time.time() * 1000) - RECORDS_BEGIN_MS

    def create_topics(self) -> None:
        for codec in CODECS:
            self._create(f"codec-{codec}")
        self._create("large", segment=500_000)
        self._create("txn")
        self._create("compacted", COMPACT)
        self._create("compacted-txn", COMPACT | {"delete.retention.ms": "1"})
        self._create("append-time", {"message.timestamp.type": "LogAppendTime"})
        self._create("trimmed")
        self._create("empty")
        self._create("wide", partitions=2)
        if self.version.startswith("2."):
            for name, release in OLD_FORMATS.items():
                for codec in ("none", "gzip", "snappy", "lz4"):
                    self._create(f"{name}-{codec}", {"message.format.version": release})
                old: dict[str, str] = {"message.format.version": release}
                self._create(f"{name}-compacted", COMPACT | old)
            self._create(
                "magic1-append-time",
                {"message.format.version": "0.10.0", "message.timestamp.type": "LogAppendTime"},
            )
            self._create("upgraded", {"message.format.version": "0.9.0"})

    def play(self, round_: int) -> None:
        if self.version.startswith("2."):
            self._upgrade(round_)
        for codec in CODECS:
            idempotent = str(codec not in ("gzip", "lz4")).lower()
            self._fill(f"codec-{codec}", codec, 8, enable_idempotence=idempotent)
        self._fill_large()
        self._fill("append-time", "gzip", 6)
        self._fill("trimmed", "none", 8)
        self.client.call("delete_records", topic="trimmed", offset=13 + 50 * round_)
        self._fill("wide", "lz4", 2)
        self._fill("wide", "none", 3, partition=1)
        self._transactions("txn", round_)
        self._compacted("compacted", "gzip")
        self._transactions("compacted-txn", round_)
        if self.version.startswith("2."):
            self._old_formats(round_)
        offset = 20 + round_
        self.client.call(
            "commit_offset", group="readers", topic="codec-none", offset=offset, metadata="so far"
        )
        self.client.call("commit_offset", group=f"readers-{round_}", topic="wide", partition=1, offset=5)
        self.client.call("join_group", group=f"members-{round_}", topic="large", consumer={})
        if self.version.startswith("4."):
            protocol = {"group.protocol": "consumer"}
            self.client.call("join_group", group=f"new-members-{round_}", topic="large", consumer=protocol)

    def leave_transaction_open(self) -> None:
        producer = _transactional("left-open")
        self.client.call("begin", producer=producer)
        self.client.produce("txn", self._records(5), producer)
        self.client.produce("txn", self._records(3), _plain("none"))
        self.client.produce("codec-none", self._records(4), _plain("none"))

    def _old_formats(self, round_: int) -> None:
        for name in OLD_FORMATS:
            for codec in ("none", "gzip", "snappy", "lz4"):
                self._fill(f"{name}-{codec}", codec, 6, headers=False)
            self._compacted(f"{name}-compacted", "snappy" if round_ else "none", headers=False)
        self._fill("magic1-append-time", "lz4", 3, headers=False)
        # By now the broker has heard of the new format, through ZooKeeper.
        self._fill("upgraded", "lz4", 3, headers=round_ == 1)

    def _upgrade(self, round_: int) -> None:
        self._fill("upgraded", "gzip" if round_ else "none", 3, headers=False)
        release = "0.10.0" if round_ == 0 else "2.8"
        self.client.call("configure", topic="upgraded", configs={"message.format.version": release})

    def _create(
        self, topic: str, configs: dict[str, str] | None = None, *, segment: int = 3000, partitions: int = 1
    ) -> None:
        # 4.x keeps segment.bytes at 1 MiB or more and has an internal name for less.
        name = "internal.segment.bytes" if self.version.startswith("4.") else "segment.bytes"
        settings = {name: str(segment), "index.interval.bytes": "600", "file.delete.delay.ms": "0"}
        self.client.call("create", topic=topic, partitions=partitions, configs=settings | (configs or {}))

    def _fill(
        self,
        topic: str,
        codec: str,
        batches: int,
        partition: int = 0,
        headers: bool = True,
        enable_idempotence: str = "false",
    ) -> None:
        producer = _plain(codec, enable_idempotence)
        for _ in range(batches):
            records = self._records(self.rng.randint(1, 20), headers)
            self.client.produce(topic, records, producer, partition)

    def _fill_large(self) -> None:
        """Batches of more than one block in every codec."""
        for codec in CODECS:
            values = [b" ".join(self.rng.choices(WORDS, k=300)) * 20 for _ in range(3)]
            records = [record(b"%d" % i, value, self._tick()) for i, value in enumerate(values)]
            self.client.produce("large", records, {**_plain(codec), "batch.size": "400000"})

    def _transactions(self, topic: str, round_: int) -> None:
        """Two interleaved producers, commits and aborts, data outside of transactions between them."""
        one, two = _transactional(f"{topic}-one"), _transactional(f"{topic}-two", "lz4")
        for turn, (first, second) in enumerate(
            [("commit", "abort"), ("abort", "commit"), ("commit", "commit")]
        ):
            self.client.call("begin", producer=one)
            self.client.produce(topic, self._keyed(4), one)
            self.client.call("begin", producer=two)
            self.client.produce(topic, self._keyed(3), two)
            self.client.produce(topic, self._keyed(2), _plain("none"))
            self.client.produce(topic, self._keyed(3), one)
            place = {"topic": "codec-gzip", "offset": 10 * round_ + turn}
            self.client.call("send_offset", producer=one, group=f"group-of-{topic}", **place)
            self.client.call(first, producer=one)
            self.client.produce(topic, self._keyed(2), two)
            self.client.call(second, producer=two)
        self._settle(one)
        self._settle(two)

    def _settle(self, producer: dict[str, str]) -> None:
        """Wait until the last transaction's markers are written: a new producer of that id waits for them."""
        self.client.call("close", producer=producer)
        self.client.call("begin", producer=producer)
        self.client.call("abort", producer=producer)
        self.client.call("close", producer=producer)

    def _compacted(self, topic: str, codec: str, headers: bool = True) -> None:
        for _ in range(12):
            self.client.produce(topic, self._keyed(6, headers), _plain(codec))

    def _keyed(self, count: int, headers: bool = True) -> list[dict[str, Any]]:
        """Few keys, so that compaction has work; some values are tombstones."""
        records = self._records(count, headers)
        for one in records:
            one["key"] = record(b"key-%d" % self.rng.randint(0, 9), None)["key"]
        return records

    def _records(self, count: int, headers: bool = True) -> list[dict[str, Any]]:
        return [
            record(
                None if self.rng.random() < 0.2 else b"key-%d" % self.rng.randint(0, 99),
                None
                if self.rng.random() < 0.1
                else b" ".join(self.rng.choices(WORDS, k=self.rng.randint(0, 12))),
                self._tick(),
                self._headers() if headers else [],
            )
            for _ in range(count)
        ]

    def _headers(self) -> list[tuple[str, bytes | None]]:
        values = (b"", b"x", None, "ž".encode(), b"\x00\xff")
        return [
            ("h\u00e9ader" if n else "", self.rng.choice(values))
            for n in range(self.rng.choice((0, 0, 1, 3)))
        ]

    def _tick(self) -> int:
        """Mostly forwards, sometimes back, as producers' clocks do."""
        self.clock += 1000
        return self.clock - (self.rng.randint(0, 8000) if self.rng.random() < 0.2 else 0)


def _plain(codec: str, enable_idempotence: str = "false") -> dict[str, str]:
    return {"compression.type": codec, "enable.idempotence": enable_idempotence}


def _transactional(name: str, codec: str = "none") -> dict[str, str]:
    return {
        "transactional.id": name,
        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "compression.type": codec,
    }


def wait_until_cleaned(data_dir: Path, topics: list[str]) -> None:
    """Wait until the cleaner's checkpoint names every one of the topics."""
    deadline = time.monotonic() + CLEAN_TIMEOUT_S
    checkpoint = data_dir / "cleaner-offset-checkpoint"
    while True:
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        cleaned = {line.split(" ")[0] for line in lines[2:]}
        if cleaned.issuperset(topics):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"not cleaned: {set(topics) - cleaned}")
        time.sleep(0.05)


def make(version: str, end: str) -> None:
    rng = random.Random(f"{version} {end}")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary) / "work"
        with KafkaBroker(version, work, BROKER) as broker, broker.client() as client:
            scenario = Scenario(version, client, rng)
            scenario.create_topics()
            scenario.play(0)
            compacted = [path.name[:-2] for path in broker.data_dir.glob("*compacted*-0")]
            wait_until_cleaned(broker.data_dir, compacted)
            broker.stop()
            print(f"{version}: first round done", file=sys.stderr)
        with KafkaBroker(version, work, BROKER) as broker, broker.client() as client:
            scenario.client = client
            scenario.play(1)
            scenario.leave_transaction_open()
            if end == "killed":
                broker.kill()
            else:
                broker.stop()
        shutil.copytree(work, Path(temporary) / "copy")
        expected = read_all(version, Path(temporary) / "copy")
        for partition, batches in dumped_batches(work / "data", list(expected)).items():
            expected[partition]["batches"] = batches
        for partition, option in DECODERS.items():
            expected[partition]["decoded"] = decoded(work / "data" / partition, option)
        save(f"kafka-{version}-{end}", work / "data", expected)


def read_all(version: str, work: Path) -> dict[str, dict[str, Any]]:
    """Open the directory with Kafka, cleaning switched off, and read every partition."""
    partitions: dict[str, dict[str, Any]] = {}
    quiet = {"log.cleaner.enable": "false"}
    with KafkaBroker(version, work, quiet) as broker, broker.client() as client:
        for topic, count in sorted(client.call("topics")["topics"].items()):
            for partition in range(count):
                partitions[f"{topic}-{partition}"] = read_partition(client, topic, partition)
    return partitions


def read_partition(client: KafkaClient, topic: str, partition: int) -> dict[str, Any]:
    everything = client.consume(topic, partition, "read_uncommitted")
    committed = client.consume(topic, partition, "read_committed")
    by_offset = {found["offset"]: found for found in everything["records"]}
    assert all(found == by_offset[found["offset"]] for found in committed["records"])
    stamps = sorted({found["timestamp"] for found in everything["records"] if found["timestamp"] >= 0})
    asked = [stamp + more for stamp in stamps[:: max(1, len(stamps) // 6)] for more in (0, 1)]
    times = client.call("times", topic=topic, partition=partition, timestamps=asked)["times"]
    return {
        "start": everything["start"],
        "end": everything["end"],
        "last_stable": committed["end"],
        "records": everything["records"],
        "committed": [found["offset"] for found in committed["records"]],
        "times": times,
    }


def dumped_batches(data: Path, partitions: list[str]) -> dict[str, list[dict[str, Any]]]:
    files = {name: sorted((data / name).glob("*.log")) for name in partitions}
    dumps = dump_log_segments([path for paths in files.values() for path in paths])
    return {
        name: [{"file": path.name, **batch} for path in paths for batch in dumps.files[str(path)].batches]
        for name, paths in files.items()
    }


def decoded(directory: Path, option: str) -> list[Any]:
    """The records of an internal topic as the newest Kafka's decoder prints them: offset, key, value."""
    files = ",".join(map(str, sorted(directory.glob("*.log"))))
    text = run_tool(NEWEST, "kafka.tools.DumpLogSegments", "--files", files, option).stdout
    found = re.findall(r"^\| offset: (\d+) .*? key: (.*?) payload: (.*)$", text, re.MULTILINE)
    return [
        [int(offset), json.loads(key), None if value == "<DELETE>" else json.loads(value)]
        for offset, key, value in found
    ]


def save(name: str, data: Path, expected: dict[str, dict[str, Any]]) -> None:
    target = HERE / name
    target.mkdir(exist_ok=True)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(data.rglob("*")):
            info = archive.gettarinfo(str(path), str(path.relative_to(data)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = FILE_TIME_S
            with path.open("rb") if path.is_file() else io.BytesIO() as file:
                archive.addfile(info, file if path.is_file() else None)
    (target / "data.tar.gz").write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))
    text = json.dumps(expected, separators=(",", ":"))
    (target / "expected.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main() -> None:
    wanted = set(sys.argv[1:])
    for version in VERSIONS:
        for end in ENDS:
            if not wanted or f"kafka-{version}-{end}" in wanted:
                make(version, end)


if __name__ == "__main__":
    main()
