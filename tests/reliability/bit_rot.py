"""Bit rot: every byte of a 64 KiB segment and of each side file changed in turn.

Whoever reads with its checksum in hand is never told a wrong key, value, header, timestamp or sequence; and `verify`
names the file that was changed. The CRC does not cover a batch's base offset and leader epoch: a change there is
found wherever the neighbours or another file contradict it, which is everywhere but at the log's last batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from random import Random
from typing import NamedTuple

from ottla.config import LogConfig
from ottla.errors import BrokerError
from ottla.logtools.findings import DEFECT, Finding
from ottla.logtools.listing import resolve
from ottla.logtools.verify.data_dir import verify
from ottla.names import TopicPartition
from ottla.records import batch
from ottla.records.builder import build_batch
from ottla.records.compression.codec import Codec
from ottla.records.record import Record, read_batches, read_records
from ottla.storage import layout
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.storage.log.validation import Origin
from ottla.testing.disk import SimulatedDisk
from ottla.testing.history import Image
from tests.reliability.scenarios import LOG_DIR, Case, SimulatedRuntime, Writer, open_manager, with_file

PARTITION = TopicPartition("topic", 0)
SEGMENT_BYTES = 64 << 10
TOPICS = {
    PARTITION.topic: LogConfig(
        internal_segment_bytes=1 << 20, index_interval_bytes=1024, segment_index_bytes=4096
    )
}
_CHANGES = (0x01, 0xFF)
# Nothing beside a log says what these should hold: a number that is still a number may be right.
_NOT_CONTRADICTED = (
    layout.META_PROPERTIES,
    layout.CLEAN_SHUTDOWN,
    layout.LOCK,
    layout.PARTITION_METADATA,
    layout.RECOVERY_POINTS,
    layout.HIGH_WATERMARKS,
    layout.LOG_START_OFFSETS,
)


class Stored(NamedTuple):
    """A healthy directory, and what each batch in it says, by its CRC."""

    image: Image
    batches: dict[int, tuple[batch.BatchHeader, list[Record]]]  # without base offset and leader epoch
    unchanged: set[bytes]
    last_batch: dict[str, int]  # where the last batch of the log begins, in its file
    last_sequences: dict[int, int]  # by producer
    now_ms: int


@cache
def stored(seed: int) -> Stored:
    """One segment of 64 KiB and a small active one, with every codec and with transactions."""
    runtime = SimulatedRuntime(seed)
    disk = SimulatedDisk(now_ms=runtime.now_ms)
    manager = open_manager(disk, runtime, TOPICS)
    log = manager.get_or_create(PARTITION)
    writer = Writer(Random(f"rot {seed}"), runtime)
    number = 0
    while sum(len(written.data) for written in writer.batches) < SEGMENT_BYTES:
        codec = list(Codec)[number % len(Codec)]
        writer.append(log, build_batch(writer.records(80), codec=codec))
        writer.append(log, writer.from_producer(7))
        writer.append(log, writer.from_producer(100 + number % 3, transactional=True))
        if number % 3 == 2:
            ended = writer.open_transactions()[0]
            writer.append(log, writer.marker(ended, is_abort=number % 2 == 0), Origin.COORDINATOR)
        writer.leader_epoch = number // 20
        number += 1
        runtime.advance(10)
    log.roll()
    for _ in range(3):
        writer.append(log, writer.plain())
    log.raise_high_watermark(log.end_offset)
    active = log.segments.active.path(layout.LOG)
    last_batch = log.segments.active.size - len(writer.batches[-1].data)
    manager.close()
    batches = {
        written.header.crc: (written.header._replace(base_offset=0, leader_epoch=0), written.records)
        for written in writer.batches
    }
    unchanged = {written.data for written in writer.batches}
    sequences = {number: producer.last_sequence for number, producer in writer.state().producers.items()}
    return Stored(disk.image(), batches, unchanged, {active: last_batch}, sequences, runtime.now_ms())


def cases(seed: int, share: float = 1.0) -> Iterator[Case]:
    """Every byte of every file, or a `share` of them."""
    rng = Random(f"rot {seed}")
    for path, file in sorted(stored(seed).image.walk()):
        if file is None:
            continue
        name = path.rpartition("/")[2]
        kind = name[20:] if name[:20].isdigit() else name
        wanted = share if kind == layout.LOG else min(1.0, 20 * share)  # side files are small
        for position in range(len(file.data)):
            if rng.random() < wanted:
                change = _CHANGES[(position + seed) % len(_CHANGES)]
                place = f"{path.removeprefix(LOG_DIR + '/')} {position} {change:#x}"
                yield Case(kind, place, partial(_check, seed, path, position, change))


def _bytes_of(image: Image, path: str) -> bytes:
    data = image.contents()[path]
    assert data is not None, path
    return data


def _check(seed: int, path: str, position: int, change: int) -> None:
    healthy = stored(seed)
    data = bytearray(_bytes_of(healthy.image, path))
    data[position] ^= change
    image = with_file(healthy.image, path, bytes(data))
    found = list(verify(SimulatedDisk(image), resolve(SimulatedDisk(image), LOG_DIR)))
    _check_named(healthy, found, path, position)
    _check_reads(healthy, SimulatedDisk(image), Random(f"{seed} {path} {position}"))


def _check_named(healthy: Stored, found: list[Finding], path: str, position: int) -> None:
    """The changed file is named, and a changed batch by its place."""
    if path.endswith(_NOT_CONTRADICTED) or position >= healthy.last_batch.get(path, 1 << 62):
        return
    defects = [finding for finding in found if finding.level == DEFECT]
    named = [finding for finding in defects if finding.file == path]
    assert named, (defects, found)
    assert all(finding.meaning for finding in named)
    if path.endswith(layout.LOG):
        places = [at for at, _ in read_batches(_bytes_of(healthy.image, path))]
        begins = max(at for at in places if at <= position)
        after = min((at for at in places if at > position), default=begins)
        # A wrong base offset may be told by the batch behind it, which it overlaps.
        assert any(finding.position in (begins, after) for finding in named), (begins, named)


def _check_reads(healthy: Stored, disk: SimulatedDisk, rng: Random) -> None:
    """Open it as a broker would and read everything; a batch whose CRC holds says what it said before."""
    runtime = SimulatedRuntime(now_ms=healthy.now_ms)
    try:
        log = open_manager(disk, runtime, TOPICS).logs[PARTITION]
    except BrokerError:
        return  # an error, not a wrong answer
    _check_lookups(healthy, log, rng)
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            part = log_reader.read(log, offset, 1 << 20, isolation=Isolation.LOG_END).slice
            end = offset if part is None else _check_batches(healthy, part.read())
        except BrokerError:
            return
        if end <= offset:
            return
        offset = end


def _check_batches(healthy: Stored, data: bytes) -> int:
    """Check those whose CRC holds, as every client does; returns the offset behind the last one."""
    next_offset = -1
    for position, header in read_batches(data):
        next_offset = header.next_offset
        if data[position : position + header.size] in healthy.unchanged:
            continue
        if batch.compute_crc(data, position, header.size) == header.crc:
            before, records_before = healthy.batches[header.crc]
            assert header._replace(base_offset=0, leader_epoch=0) == before
            records = read_records(data, position)
            assert [record[1:] for record in records] == [record[1:] for record in records_before]
    return next_offset


def _check_lookups(healthy: Stored, log: Log, rng: Random) -> None:
    """What the log says by itself, of times and sequences, is true or not said."""
    timestamps = {record.timestamp for _, records in healthy.batches.values() for record in records}
    for timestamp in rng.sample(sorted(timestamps), 5):
        with suppress(BrokerError):
            found = log_reader.find_timestamp(log, timestamp)
            assert found is None or found.timestamp in timestamps, found
    for header, _ in healthy.batches.values():
        producer = log.producers.producers.get(header.producer_id)
        if producer is not None and not header.is_control:
            last = healthy.last_sequences[header.producer_id]
            assert producer.last_sequence in (-1, last), (header.producer_id, producer.last_sequence, last)
