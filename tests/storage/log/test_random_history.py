"""Random histories of one log beside a model that is a plain list: appends, rolls, cuts, stops, kills, retention."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ottla.records.compression.codec import Codec
from ottla.records.record import read_batches, read_records
from ottla.storage.log import reader as log_reader
from ottla.storage.log import retention, truncation
from ottla.storage.log.log import Log
from ottla.storage.log.truncation import no_point_on_disk
from ottla.storage.log.validation import Origin
from ottla.testing.disk import SimulatedDisk
from ottla.testing.runtime import SimulatedRuntime
from tests.storage.world import World, batch, marker, read_all

CONFIG: dict[str, Any] = {
    "internal_segment_bytes": 2000,
    "segment_index_bytes": 240,
    "index_interval_bytes": 100,
    "retention_ms": 5000,
    "segment_ms": 100_000,
}


class Model:
    """What the log must hold: (first offset, epoch, [(timestamp, value)]) for each batch."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, list[tuple[int, bytes]]]] = []
        self.start = 0
        self.end = 0

    def records(self) -> list[tuple[int, int, bytes]]:
        return [
            (first + number, timestamp, value)
            for first, _, records in self.batches
            for number, (timestamp, value) in enumerate(records)
            if first + number >= self.start
        ]

    def truncate(self, offset: int) -> None:
        if offset >= self.end:
            return
        cut = next((first for first, _, records in self.batches if first + len(records) > offset), offset)
        self.end = min(cut, offset)
        self.batches = [entry for entry in self.batches if entry[0] < self.end]
        self.start = min(self.start, self.end)


class History:
    """One seeded run; every step is checked against the model."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.runtime = SimulatedRuntime(seed)
        disk = SimulatedDisk(now_ms=self.runtime.now_ms)
        disk.make_dir("/data")
        self.world = World(disk, "/data", self.runtime)
        self.model = Model()
        self.log: Log = self.world.load(**CONFIG)
        self.epoch = 0
        self.done: list[str] = []

    def moves(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            (30, self.append), (10, self.follow), (4, self.roll), (5, self.truncate), (1, self.begin_anew),
            (3, self.stop), (4, self.kill), (3, self.retain), (3, self.raise_start), (5, self.flush), (6, self.wait),
        ]  # fmt: skip

    def run(self, steps: int) -> None:
        moves = self.moves()
        for _ in range(steps):
            move = self.random.choices([m for _, m in moves], [weight for weight, _ in moves])[0]
            self.done.append(move.__name__)
            move()
            self.check()

    def values(self) -> list[tuple[int, bytes]]:
        count = self.random.choice([1, 1, 2, 5])
        time = self.runtime.now_ms() + self.random.randrange(-200, 200)
        value = b"%d" % len(self.done) * self.random.choice([1, 10, 30])
        return [(time + number, value) for number in range(count)]

    def batch(self, records: list[tuple[int, bytes]], **fields: Any) -> bytes:
        codec = self.random.choice([Codec.NONE, Codec.NONE, Codec.LZ4])
        return batch(len(records), timestamp=records[0][0], value=records[0][1], codec=codec, **fields)

    def append(self) -> None:
        records = self.values()
        if self.random.random() < 0.1:
            self.epoch += 1
        info = self.log.append_as_leader(self.batch(records), self.epoch)
        assert info.first_offset == self.model.end
        self.model.batches.append((self.model.end, self.epoch, records))
        self.model.end += len(records)

    def follow(self) -> None:
        data = b""
        for _ in range(self.random.randrange(1, 5)):
            records = self.values()
            data += self.batch(records, base_offset=self.model.end, leader_epoch=self.epoch)
            self.model.batches.append((self.model.end, self.epoch, records))
            self.model.end += len(records)
        self.log.append_as_follower(data)

    def roll(self) -> None:
        self.log.roll()

    def truncate(self) -> None:
        low = self.log.segments.first.base_offset
        offset = self.random.randrange(low, self.model.end + 3)
        truncation.truncate_to(self.log, offset, no_point_on_disk)
        self.model.truncate(offset)

    def begin_anew(self) -> None:
        offset = self.random.randrange(self.model.end + 100)
        truncation.truncate_fully_and_start_at(self.log, offset, no_point_on_disk)
        self.model.batches, self.model.start, self.model.end = [], offset, offset

    def stop(self) -> None:
        start = self.log.start_offset
        self.log.close()
        self.log = self.world.load(clean=True, start_offset=start, **CONFIG)

    def kill(self) -> None:
        start, point = self.log.start_offset, self.log.recovery_point
        self.log.abandon()
        self.log = self.world.load(
            start_offset=start, recovery_point=self.random.choice([0, point]), **CONFIG
        )

    def retain(self) -> None:
        self.log.raise_high_watermark(self.random.randrange(self.model.end + 1))
        retention.apply(self.log, self.runtime.now_ms())
        self.log.delete_due_files(all_of_them=self.random.random() < 0.5)
        self.model.start = max(self.model.start, self.log.start_offset)

    def raise_start(self) -> None:
        self.log.raise_high_watermark(self.model.end)
        self.model.start = self.random.randrange(self.model.start, self.model.end + 1)
        self.log.raise_start_offset(self.model.start)

    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.model.end

    def wait(self) -> None:
        self.runtime.advance(self.random.randrange(2000))

    def check(self) -> None:
        log, model = self.log, self.model
        assert (log.start_offset, log.end_offset) == (model.start, model.end)
        assert log.start_offset <= log.last_stable_offset <= log.high_watermark <= log.end_offset
        assert log.recovery_point <= log.end_offset
        expected = model.records()
        assert [(record.offset, record.timestamp, record.value) for record in read_all(log)] == expected
        if expected:
            self.check_lookups(expected)
            epochs = {epoch for first, epoch, records in model.batches if first + len(records) > model.start}
            assert {epoch for epoch, _ in log.epochs.entries} == epochs

    def check_lookups(self, expected: list[tuple[int, int, bytes]]) -> None:
        offset = self.random.randrange(self.model.start, self.model.end)
        assert [record.offset for record in read_all(self.log, offset)] == [
            r[0] for r in expected if r[0] >= offset
        ]
        time = self.random.choice(expected)[1] + self.random.randrange(-3, 4)
        found = log_reader.find_timestamp(self.log, time)
        assert (found[1] if found else None) == next((r[0] for r in expected if r[1] >= time), None)


class TransactionHistory(History):
    """Producers with transactions; their state and the indexes of aborted ones are checked against the batches."""

    def moves(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            (30, self.produce), (20, self.end_transaction), (5, self.append), (4, self.roll), (6, self.truncate),
            (1, self.begin_anew), (3, self.stop), (6, self.kill), (4, self.follow),
        ]  # fmt: skip

    def produce(self) -> None:
        producer_id, records = self.random.randrange(4), self.values()
        producer = self.log.producers.producers.get(producer_id)
        open_txn = producer is not None and producer.txn_first_offset >= 0
        data = self.batch(
            records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=producer.last_sequence + 1 if producer else 0,
            transactional=open_txn or self.random.random() < 0.7,
        )
        if self.random.random() < 0.3:  # as a follower
            data = self.at_end(data)
            self.log.append_as_follower(data)
        else:
            self.log.append_as_leader(data, self.epoch)
        self.model.batches.append((self.model.end, self.epoch, records))
        self.model.end += len(records)

    def at_end(self, data: bytes) -> bytes:
        return self.model.end.to_bytes(8, "big") + data[8:12] + self.epoch.to_bytes(4, "big") + data[16:]

    def end_transaction(self) -> None:
        producer_id = self.random.randrange(4)
        data = marker(producer_id, commit=self.random.random() < 0.4, timestamp=self.runtime.now_ms())
        self.log.append_as_leader(data, self.epoch, Origin.COORDINATOR)
        value = read_all(self.log, self.model.end)[0].value
        assert value is not None
        self.model.batches.append((self.model.end, self.epoch, [(self.runtime.now_ms(), value)]))
        self.model.end += 1

    def check(self) -> None:
        super().check()
        sequences: dict[int, int] = {}
        begun: dict[int, int] = {}
        aborted = []
        for segment in self.log.segments:
            data = self.world.read(f"{segment.base_offset:020d}.log")
            for position, header in read_batches(data):
                producer_id = header.producer_id
                if header.is_control:
                    first = begun.pop(producer_id, None)
                    sequences.setdefault(producer_id, -1)
                    is_abort = next(read_records(data, position)).key == bytes(4)
                    if first is not None and is_abort:
                        aborted.append((producer_id, first, header.base_offset))
                elif producer_id >= 0:
                    sequences[producer_id] = header.base_sequence + header.last_offset_delta
                    if header.is_transactional:
                        begun.setdefault(producer_id, header.base_offset)
        producers = self.log.producers.producers
        assert {number: producer.last_sequence for number, producer in producers.items()} == sequences
        assert {n: p.txn_first_offset for n, p in producers.items() if p.txn_first_offset >= 0} == begun
        assert [txn[:3] for segment in self.log.segments for txn in segment.txn_index.entries] == aborted
        self.log.raise_high_watermark(self.log.end_offset)
        assert self.log.first_unstable_offset == min(begun.values(), default=None)
        listed = log_reader.aborted_in(self.log, self.log.start_offset, self.log.end_offset)
        assert [txn[:3] for txn in listed] == aborted


@pytest.mark.parametrize("kind", [History, TransactionHistory])
@pytest.mark.parametrize("seed", range(20))
def test_a_random_history_ends_as_the_model_says(kind: type[History], seed: int) -> None:
    history = kind(seed)
    try:
        history.run(60)
    except BaseException:
        print(f"seed {seed}: {' '.join(history.done)}")
        raise
