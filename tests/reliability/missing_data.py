"""Mishaps between a broker's stop and its next start: what is missing below the recovery point is said to be missing.

A broker with several topics (plain, trimmed by DeleteRecords, compacted) is stopped cleanly, or killed. Then one thing
happens to its files: segments, files beside them or whole directories are zeroed, cut, deleted, renamed, copied or
exchanged. A model that knows every record reads what the next broker serves. What was flushed and is not served must be
named by that start, by `verify` before and after it, and by the metric, with all its offsets. If nothing is missing,
nothing may be called so.
"""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import tempfile
import threading
import urllib.request
from array import array
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from ottla.errors import BrokerError
from ottla.logtools.findings import DEFECT, Finding
from ottla.logtools.listing import resolve
from ottla.logtools.verify.data_dir import verify
from ottla.records import kernel
from ottla.records.batch import HEADER_SIZE, parse_header
from ottla.records.record import Record, read_batches, read_records
from ottla.storage import losses
from ottla.storage.find_batch import find_batch
from ottla.storage.fs import RealFileSystem
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.testing.embedded import EmbeddedBroker
from tests.reliability.file_mishaps import CHECKPOINTS, NAMES, Mishap
from tests.reliability.scenarios import Case

FULL_COUNT = 200
FS = RealFileSystem()
# What is cleaned while it is looked at would be gone for a good reason.
QUIET = {"log.index.interval.bytes": "400", "log.cleaner.enable": "false"}
BUSY = {
    **QUIET,
    "log.initial.task.delay.ms": "20",
    "log.retention.check.interval.ms": "20",
    "log.flush.start.offset.checkpoint.interval.ms": "20",
    "log.flush.offset.checkpoint.interval.ms": "20",
}
CLEANING = {
    **BUSY,
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
SMALL = {"internal.segment.bytes": "2500"}
# What verify calls records that are not there.
MISSING = {"missing-records", "missing-partition", "lost-records", "gap"}


class Partition(NamedTuple):
    """A partition as it was when the broker stopped."""

    name: str
    start_offset: int
    flushed_to: int  # the recovery point
    values: dict[int, bytes | None]  # what was served

    @property
    def flushed(self) -> set[int]:
        return {offset for offset in self.values if offset < self.flushed_to}


class World(NamedTuple):
    """A data directory at rest."""

    path: Path
    partitions: dict[str, Partition]
    is_clean: bool


class Start(NamedTuple):
    """What a start said, and what the broker serves."""

    lines: list[str]
    served: dict[str, dict[int, bytes | None]]
    counted: dict[str, int]  # by the metric


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@cache
def world(how: str) -> World:
    path = Path(tempfile.mkdtemp(prefix=f"ottla-missing-{how}-"))
    with EmbeddedBroker(CLEANING, path) as broker:
        broker.create_topic("plain", 2, SMALL)
        broker.create_topic("trimmed", 1, SMALL)
        broker.create_topic("compacted", 1, {**SMALL, "cleanup.policy": "compact"})
        _fill(broker, 0, 120)
        wait_for(lambda: _offset(path, "cleaner-offset-checkpoint", "compacted-0") > 0)
    broker = EmbeddedBroker(BUSY, path)
    broker.start()
    _fill(broker, 120, 240)
    _delete_records(broker)
    wait_for(lambda: all(_offset(path, CHECKPOINTS[0], name) > 150 for name in NAMES))
    wait_for(lambda: _offset(path, CHECKPOINTS[2], "trimmed-0") > 0)
    served = _served(broker)
    starts = {str(tp): log.start_offset for tp, log in broker.broker.logs.logs.items()}
    if how == "clean":
        broker.stop()
    else:
        broker.kill()
    broker.close()
    partitions = {
        name: Partition(name, starts[name], _offset(path, CHECKPOINTS[0], name), served[name])
        for name in NAMES
    }
    return World(path, partitions, how == "clean")


def _fill(broker: EmbeddedBroker, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 10_000, "acks": "all"})
    for number in range(first, end):
        for topic, partition in (("plain", 0), ("trimmed", 0), ("compacted", 0)):
            key = f"{number % 7 if number % 3 else number}"
            producer.produce(topic, f"{topic}-{number}" * 4, key, partition)
        if number < 200:
            producer.produce("plain", f"other-{number}" * 5, partition=1)
        if number % 3 == 0:
            producer.flush()
    producer.flush()


def _delete_records(broker: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([ClientPartition("trimmed", 0, 90)]).values():
        future.result()


def wait_for(condition: Callable[[], bool]) -> None:
    never = threading.Event()
    for _ in range(6000):
        if condition():
            return
        never.wait(0.01)
    raise AssertionError("a minute is over, and it has not come to that")


def _offset(data: Path, checkpoint: str, name: str) -> int:
    topic, _, number = name.rpartition("-")
    file = data / checkpoint
    found = re.search(rf"^{topic} {number} (\d+)$", file.read_text() if file.exists() else "", re.MULTILINE)
    return int(found[1]) if found else 0


def _served(broker: EmbeddedBroker) -> dict[str, dict[int, bytes | None]]:
    return {str(tp): _values(log) for tp, log in broker.broker.logs.logs.items()}


def _values(log: Log) -> dict[int, bytes | None]:
    """What a consumer gets that goes on behind each batch it cannot read."""
    found: dict[int, bytes | None] = {}
    offset = log.start_offset
    while offset < log.end_offset:
        records: list[Record] = []
        with contextlib.suppress(BrokerError, StopIteration):
            read = log_reader.read(log, offset, 1, isolation=Isolation.LOG_END)
            data = read.slice.read() if read.slice is not None else b""
            position, header = next(iter(read_batches(data)))
            if kernel.scan(data, 0, len(data), array("q", bytes(8 * kernel.ROW)), kernel.CHECK_CRC)[0]:
                records = list(read_records(data, position))
            offset = max(offset, header.last_offset)
        found.update((record.offset, record.value) for record in records)
        offset += 1
    return {offset: value for offset, value in found.items() if offset >= log.start_offset}


# -- what must hold


def cases(seed: int, count: int = FULL_COUNT) -> Iterator[Case]:
    for number in range(count):
        how = "clean" if number % 2 else "killed"
        name = f"{how} {number}"
        yield Case(how, name, partial(run, how, Random(f"{seed} {name}")))


def run(how: str, rng: Random) -> None:
    pristine = world(how)
    data = Path(tempfile.mkdtemp(prefix="ottla-missing-")) / "data"
    try:
        shutil.copytree(pristine.path, data)
        mishap = Mishap(data, rng)
        mishap.happen()
        try:
            check(pristine, data, mishap)
        except Exception as error:
            raise AssertionError(f"{how}, {mishap.told}: {error}") from error
    finally:
        shutil.rmtree(data.parent)


def check(pristine: World, data: Path, mishap: Mishap) -> None:
    before = defects(data)
    first = start(data)
    after = defects(data)
    again = start(data)
    told = {name for name in mishap.exchanged if any(f"/{name}:" in line for line in first.lines)}
    # After a kill a log may well be longer than is known: only the one that is too short gives it away.
    assert told == {*mishap.exchanged} or (not pristine.is_clean and told), first.lines
    for partition in pristine.partitions.values():
        if partition.name not in mishap.exchanged:
            check_partition(partition, data, before, after, first, again)


def check_partition(
    partition: Partition, data: Path, before: list[Finding], after: list[Finding], first: Start, again: Start
) -> None:
    name, served = partition.name, first.served[partition.name]
    wrong = {offset for offset, value in served.items() if partition.values.get(offset, value) != value}
    assert not wrong, f"{name}: other records are served at {sorted(wrong)[:5]}"
    on_record = losses.read(FS, f"{data}/{name}").losses
    # Behind a damaged batch, up to the next entry of the index, whole ones cannot be reached before a repair.
    damaged = {loss.file for loss in on_record if loss.position is not None and loss.kept_in is None}
    missing = partition.values.keys() - served.keys() - whole_offsets(data / name, damaged)
    lost = partition.flushed & missing
    said = {offset for loss in on_record for offset in range(loss.first_offset, loss.end_offset)}
    lines = [line for line in first.lines if f"/{name}: records are lost" in line]
    named_before = [finding for finding in before if name in finding.file or name in finding.meaning]
    called_missing = [finding for finding in named_before if finding.code in MISSING]
    if not missing:
        assert not on_record, f"{name}: nothing is lost, but on record are {on_record}"
        assert not lines, f"{name}: nothing is lost, but the start says {lines}"
        assert not called_missing, f"{name}: nothing is lost, but verify says {called_missing}"
        assert not first.counted.get(name), f"{name}: nothing is lost, but the metric counts"
    if lost:
        check_lost(partition, lost, said, before, after, first, again)


def check_lost(
    partition: Partition,
    lost: set[int],
    said: set[int],
    before: list[Finding],
    after: list[Finding],
    first: Start,
    again: Start,
) -> None:
    name = partition.name
    lines = [line for line in first.lines if f"/{name}: records are lost" in line]
    assert lost <= said, f"{name}: {len(lost - said)} of {len(lost)} lost offsets are not on record"
    if not name.startswith("compacted"):
        above = {offset for offset in said if offset >= partition.flushed_to}
        assert said - above == lost, f"{name}: on record are {len(said - lost - above)} that are not lost"
    assert lines, f"{name}: {len(lost)} offsets are lost, and the start says only {first.lines}"
    assert [line for line in again.lines if f"/{name}: records are lost" in line], (
        f"{name}: the next start is silent"
    )
    assert [f for f in before if name in f.file or name in f.meaning], (
        f"{name}: verify is silent before the start"
    )
    assert [f for f in after if f.code == "lost-records" and name in f.file], (
        f"{name}: verify is silent afterwards"
    )
    assert first.counted.get(name, 0) >= len(lost), (
        f"{name}: the metric counts {first.counted} of {len(lost)}"
    )


def whole_offsets(log_dir: Path, names: set[str]) -> set[int]:
    """The offsets of whole batches in some log files, whatever lies between them."""
    found: set[int] = set()
    for name in names & {path.name for path in log_dir.iterdir()}:
        file = FS.open(str(log_dir / name))
        at = find_batch(file, 0, file.size(), 0, 2**62)
        while at is not None:
            header = parse_header(file.pread(HEADER_SIZE, at))
            found.update(range(header.base_offset, header.last_offset + 1))
            at = find_batch(file, at + header.size, file.size(), 0, 2**62)
        file.close()
    return found


def defects(data: Path) -> list[Finding]:
    return [finding for finding in verify(FS, resolve(FS, str(data))) if finding.level == DEFECT]


def start(data: Path) -> Start:
    """Start a broker, look at it, and stop it."""
    handler = _Lines()
    root = logging.getLogger("ottla")
    root.addHandler(handler)
    broker = EmbeddedBroker(QUIET, data, http=True)
    try:
        broker.start()
        served = _served(broker)
        with urllib.request.urlopen(f"http://{broker.broker.http}/metrics") as answer:
            text = answer.read().decode()
    finally:
        broker.close()
        root.removeHandler(handler)
    found = re.findall(r'ottla_log_missing_offsets\{partition="(.*)",topic="(.*)"\} (\S+)', text)
    return Start(
        handler.lines,
        served,
        {f"{topic}-{partition}": int(float(count)) for partition, topic, count in found},
    )
