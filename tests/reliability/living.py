"""A story that is checked after every action, and goes on after its power was cut.

What the logs should hold is known batch by batch (model.py). After a cut it is what a legal state of the disk
left: no less than was promised, and that is where the story goes on.
"""

from __future__ import annotations

from random import Random

from ottla.records.batch import patch_offsets
from ottla.storage.indexes.txn_index import AbortedTxn
from ottla.storage.log import reader as log_reader
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Isolation
from ottla.testing.crash import random_crash
from ottla.testing.disk import SimulatedDisk
from tests.reliability import power_loss
from tests.reliability.model import Replay, Written, check_log, replay, split
from tests.reliability.scenarios import open_manager
from tests.reliability.story import TOPICS, Story, Tracked


class Living(Story):
    """`act` by name, then `check`."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.actions |= {
            "power cut": (2, self._cut), "duplicate": (2, self._duplicate), "read": (4, self._read),
            "high watermark": (4, self._raise_high_watermark),
        }  # fmt: skip

    def act(self, name: str) -> None:
        before = {tracked.promise.versions: list(tracked.writer.batches) for tracked in self.tracked.values()}
        super().act(name)
        if name == "compact":
            for old, tracked in zip(before.values(), self.tracked.values(), strict=True):
                check_cleaned(old, tracked.writer.batches)
        self.check()

    def check(self) -> None:
        for tracked in self.tracked.values():
            log, batches = self.log_of(tracked), tracked.writer.batches
            gone = sum(1 for written in batches if written.last < log.start_offset)
            check_log(log, batches[gone:], batches[:gone], exact=not log.config.compact)
            assert log.start_offset <= log.last_stable_offset <= log.high_watermark <= log.end_offset

    def _cut(self, _: Tracked) -> None:
        image = random_crash(self.history, Random(self.rng.random()))
        known = {key: log.losses for key, log in self.manager.logs.items()}
        self.manager.abandon()
        self.runtime.forget_pending()
        self.disk = SimulatedDisk(image, self.runtime.now_ms)
        self.manager = open_manager(self.disk, self.runtime, TOPICS)
        self.history = self.disk.record()
        for tracked in self.tracked.values():
            held = power_loss.hold(self, self.manager, tracked.promise, known[tracked.promise.partition])
            log = self.log_of(tracked)
            start = log.start_offset
            before = [written for written in tracked.writer.batches if written.last < start]
            tracked.writer.batches = [*before, *held]
            self.versions.append(tracked.writer.batches)
            self.promise(
                tracked, versions=(len(self.versions) - 1,), flushed=tracked.promise.flushed, lowest_start=start,
                highest_start=start,
            )  # fmt: skip

    def _duplicate(self, tracked: Tracked) -> None:
        """A producer sends its last batch again."""
        log = self.log_of(tracked)
        mine = [
            w for w in tracked.writer.batches if w.header.producer_id == 7 and w.first >= log.start_offset
        ]
        if not mine or log.config.compact:  # a cleaner may have left another batch than was sent
            return
        again = bytearray(mine[-1].data)
        patch_offsets(again, 0, 0, -1)
        info = log.append_as_leader(again, tracked.writer.leader_epoch)
        assert info.is_duplicate
        assert (info.first_offset, info.last_offset) == (mine[-1].first, mine[-1].last)

    def _raise_high_watermark(self, tracked: Tracked) -> None:
        log = self.log_of(tracked)
        log.raise_high_watermark(self.rng.randint(0, log.end_offset))

    def _read(self, tracked: Tracked) -> None:
        log = self.log_of(tracked)
        offset = self.rng.randint(log.start_offset, log.end_offset)
        isolation, max_bytes = self.rng.choice(list(Isolation)), self.rng.choice([1, 200, 1000])
        found = log_reader.read(log, offset, max_bytes, isolation=isolation)
        assert (found.high_watermark, found.start_offset) == (log.high_watermark, log.start_offset)
        limit = _limit(log, isolation)
        batches = [w for w in tracked.writer.batches if offset <= w.last < limit]
        if found.slice is None:
            assert not batches or offset >= limit
            return
        data = b"".join(written.data for written in batches)
        part = found.slice.read()
        assert data.startswith(part)
        assert len(batches[0].data) <= len(part) <= max(max_bytes, len(batches[0].data))
        if isolation is Isolation.COMMITTED:
            _check_aborted(found.aborted, replay(tracked.writer.batches), list(split(part)), offset)


def _limit(log: Log, isolation: Isolation) -> int:
    if isolation is Isolation.LOG_END:
        return log.end_offset
    return log.high_watermark if isolation is Isolation.HIGH_WATERMARK else log.last_stable_offset


def _check_aborted(listed: list[AbortedTxn], truth: Replay, part: list[Written], offset: int) -> None:
    """Every aborted transaction with records in what was read is listed."""
    end = part[-1].last
    needed = {t.last_offset for t in truth.aborted if t.first_offset <= end and t.last_offset >= offset}
    assert needed <= {txn.last_offset for txn in listed}


def check_cleaned(old: list[Written], new: list[Written]) -> None:
    """Nothing is invented or moved, and the newest value of every key is still there."""
    before, after = _visible(old), _visible(new)
    assert after.items() <= before.items()
    newest = {key: offset for offset, (key, _, _, _) in sorted(before.items())}
    for offset in newest.values():
        assert offset in after or before[offset][1] is None, f"the newest value at {offset} is gone"


def _visible(
    batches: list[Written],
) -> dict[int, tuple[bytes | None, bytes | None, int, tuple[object, ...]]]:
    """Key, value, timestamp and headers by offset, of all records that no abort has undone."""
    aborted = replay(batches).aborted
    found: dict[int, tuple[bytes | None, bytes | None, int, tuple[object, ...]]] = {}
    for written in batches:
        if written.header.is_control:
            continue
        undone = written.header.is_transactional and any(
            txn.producer_id == written.header.producer_id
            and txn.first_offset <= written.first < txn.last_offset
            for txn in aborted
        )
        for record in [] if undone else written.records:
            found[record.offset] = (record.key, record.value, record.timestamp, tuple(record.headers))
    return found
