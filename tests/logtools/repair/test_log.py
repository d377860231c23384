"""Repair: everything good is kept, nothing goes without a copy, and what is mended is healthy."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from ottla.cli.log import repair as log_repair
from ottla.config import LogConfig
from ottla.errors import CorruptRecordError, LogDirLockedError, OffsetOutOfRangeError
from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.listing import list_partition, resolve
from ottla.logtools.offline import compact, first_offset_at, measure, reindex, trim
from ottla.logtools.repair.checkpoints import apply_checkpoints, plan_checkpoints
from ottla.logtools.repair.log import bound_by, repair_log
from ottla.logtools.repair.plan import RepairPlan, Step, plan_repair
from ottla.logtools.verify.data_dir import surroundings
from ottla.logtools.writing import data_dir_of, locked
from ottla.names import TopicPartition
from ottla.records import batch
from ottla.records.record import Record, read_batches
from ottla.storage import losses
from ottla.storage.fs import RealFile, RealFileSystem
from ottla.testing.runtime import START_MS, SimulatedRuntime
from tests.logtools.making import ORDERS, check, defects, open_manager

FS = RealFileSystem()
SECOND, LAST = (f"{base:020d}" for base in (42, 130))


def plan_for(path: Path, *, skip_corrupt: bool = False) -> RepairPlan:
    partition = list_partition(FS, str(path))
    return plan_repair(FS, partition, surroundings(FS, partition), lambda _: None, skip_corrupt=skip_corrupt)


def mend(path: Path, *, skip_corrupt: bool = False) -> RepairPlan:
    """Repair one log; the plan has all steps that were done, and what is left."""
    steps: list[Step] = []
    plan = repair_log(
        FS, list_partition(FS, str(path)), skip_corrupt=skip_corrupt, now_ms=START_MS, tell=steps.extend
    )
    bound_by(FS, plan)
    plan.steps = steps
    return plan


def read(path: Path) -> dict[int, Record]:
    found = dump_records(FS, list_partition(FS, str(path)), Query())
    return {f[1].offset: f[1] for f in found if not isinstance(f, FoundDamage)}


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def batch_at(path: Path, number: int) -> tuple[int, batch.BatchHeader]:
    return list(read_batches(path.read_bytes()))[number]


def flip(path: Path, position: int, bits: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= bits
    path.write_bytes(data)


def test_nothing_is_changed_by_planning(log_dir: Path) -> None:
    flip(log_dir / f"{SECOND}.log", 450)
    flip(log_dir / f"{SECOND}.index", 3)
    before = contents(log_dir)
    plan = plan_for(log_dir, skip_corrupt=True)
    assert {step.action for step in plan.steps} == {"quarantine", "rebuild"}
    assert contents(log_dir) == before


def test_a_healthy_log_needs_nothing(log_dir: Path) -> None:
    before = contents(log_dir)
    assert mend(log_dir, skip_corrupt=True).steps == []
    assert contents(log_dir) == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_a_damaged_file_beside_the_log_is_rebuilt_as_it_was_and_kept_aside(
    log_dir: Path, suffix: str
) -> None:
    path = log_dir / f"{LAST}{suffix}"
    before = path.read_bytes()
    flip(path, 5)
    damaged = path.read_bytes()
    plan = mend(log_dir)
    assert [step.file for step in plan.steps] == [str(path)]
    assert check(log_dir) == []
    if suffix in (".txnindex", ".snapshot"):
        assert path.read_bytes() == before
    assert path.with_name(path.name + ".quarantine").read_bytes() == damaged


def test_the_epoch_checkpoint_is_rebuilt_from_the_batches(log_dir: Path) -> None:
    path = log_dir / "leader-epoch-checkpoint"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"1 52", b"1 5x"))
    mend(log_dir)
    assert path.read_bytes() == before


def test_a_torn_tail_is_copied_and_cut(log_dir: Path) -> None:
    path = log_dir / f"{LAST}.log"
    records = read(log_dir)
    position, header = batch_at(path, -1)
    path.write_bytes(path.read_bytes()[:-9])
    torn = path.read_bytes()[position:]
    plan = mend(log_dir)
    assert plan.steps[0].action == "cut"
    assert path.stat().st_size == position
    assert (log_dir / f"{LAST}.quarantine").read_bytes() == torn
    # The checkpoints of the data directory were moved back too, and what is lost is on record.
    assert [(f.code, f.offset) for f in defects(log_dir.parent)] == [("lost-records", header.base_offset)]
    losses.acknowledge(FS, str(log_dir), START_MS)
    assert defects(log_dir.parent) == []
    assert set(records) - set(read(log_dir)) == {header.base_offset}


def test_bad_batches_stay_until_they_may_be_skipped(log_dir: Path) -> None:
    path = log_dir / f"{SECOND}.log"
    position, _ = batch_at(path, 3)
    flip(path, position + 70)
    before = path.read_bytes()
    plan = mend(log_dir)
    assert plan.steps == []
    assert [finding.position for finding in plan.needs_skip] == [position]
    assert path.read_bytes() == before


def test_bad_batches_are_set_aside_and_what_follows_is_kept(log_dir: Path) -> None:
    path = log_dir / f"{SECOND}.log"
    records = read(log_dir)
    places = [batch_at(path, number) for number in (1, 4)]
    for position, header in places:
        flip(path, position + header.size - 1)
    bad = b"".join(path.read_bytes()[position : position + header.size] for position, header in places)
    mend(log_dir, skip_corrupt=True)
    gone = {offset for _, h in places for offset in range(h.base_offset, h.last_offset + 1)}
    assert read(log_dir) == {offset: record for offset, record in records.items() if offset not in gone}
    assert (log_dir / f"{SECOND}.quarantine").read_bytes() == bad
    listed = [json.loads(line) for line in (log_dir / f"{SECOND}.quarantine.json").read_text().splitlines()]
    assert [(line["position"], line["size"]) for line in listed] == [(p, h.size) for p, h in places]
    assert [f.code for f in defects(log_dir)] == ["lost-records"] * 2
    record = losses.read(FS, str(log_dir)).open
    assert {o for loss in record for o in range(loss.first_offset, loss.end_offset)} == gone
    assert {(loss.position, loss.kept_in) for loss in record} == {
        (p, f"{SECOND}.quarantine") for p, _ in places
    }
    losses.acknowledge(FS, str(log_dir), START_MS)
    assert {(f.level, f.code) for f in check(log_dir)} == {("note", "gap"), ("note", "lost-records")}
    # The storage engine opens it, also without having been told of a clean stop, and gives up nothing.
    (log_dir.parent / ".kafka_cleanshutdown").unlink()
    manager = open_manager(log_dir.parent)
    log = manager.get(ORDERS)
    assert log is not None
    assert log.end_offset == 156
    manager.close()
    assert read(log_dir) == {offset: record for offset, record in records.items() if offset not in gone}


@pytest.mark.parametrize("shift", [-20, 3, 1 << 33])
def test_a_wrong_base_offset_is_put_right_where_the_neighbours_leave_one_value(
    log_dir: Path, shift: int
) -> None:
    path = log_dir / f"{SECOND}.log"
    records, before = read(log_dir), path.read_bytes()
    position, header = batch_at(path, 4)
    data = bytearray(before)
    batch.patch_offsets(data, position, header.base_offset + shift, header.leader_epoch)
    path.write_bytes(data)
    plan = mend(log_dir)
    assert plan.steps[0].action == "patch"
    assert path.read_bytes() == before
    assert read(log_dir) == records
    assert defects(log_dir.parent) == []


def test_a_wrong_leader_epoch_is_put_right_by_the_checkpoint(log_dir: Path) -> None:
    path = log_dir / f"{LAST}.log"
    before = path.read_bytes()
    position, _ = batch_at(path, 4)
    flip(path, position + 15, 0x70)
    assert mend(log_dir).steps[0].action == "patch"
    assert path.read_bytes() == before
    assert defects(log_dir.parent) == []


class Recording(RealFileSystem):
    """Remembers every byte that was ever in a file below `root`, and says when some are nowhere any more."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lost: list[str] = []

    def _kept(self, data: bytes) -> bool:
        return any(data in file.read_bytes() for file in self.root.iterdir() if file.is_file())

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        outer = self

        class File(RealFile):
            def truncate(self, size: int) -> None:
                gone = Path(path).read_bytes()[size:]
                super().truncate(size)
                if gone.strip(b"\0") and not outer._kept(gone):
                    outer.lost.append(f"truncate {path}")

        opened = super().open(path, write=write, create=create)
        return File(path, os.dup(opened._fd))

    def rename(self, source: str, target: str) -> None:
        gone = Path(target).read_bytes() if Path(target).exists() else b""
        super().rename(source, target)
        if target.endswith((".quarantine", ".json", "checkpoint")):
            return
        if target.endswith(".log"):  # rewritten without its bad batches: piece by piece it must be somewhere
            kept = Path(target).read_bytes()
            missing = [gone[at : at + 61] for at in batch_starts(gone) if gone[at : at + 61] not in kept]
            self.lost += [f"rename {target}" for piece in missing if not self._kept(piece)]
        elif not self._kept(gone.rstrip(b"\0")):
            self.lost.append(f"rename {target}")

    def unlink(self, path: str) -> None:
        gone = Path(path).read_bytes()
        super().unlink(path)
        if not self._kept(gone.rstrip(b"\0")):
            self.lost.append(f"unlink {path}")


def batch_starts(data: bytes) -> list[int]:
    starts, at = [], 0
    while at + 61 <= len(data):
        starts.append(at)
        at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
    return starts


@pytest.mark.slice
@pytest.mark.parametrize("seed", range(2))
def test_any_damage_is_mended_and_no_byte_is_destroyed(pristine: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    names = sorted(
        path.name for path in (pristine / "orders-0").iterdir() if path.name != "partition.metadata"
    )
    good = read(pristine / "orders-0")
    for turn in range(40):
        data_dir = tmp_path / str(turn)
        shutil.copytree(pristine, data_dir)
        log_dir = data_dir / "orders-0"
        path = log_dir / rng.choice(names)
        position, bits = rng.randrange(path.stat().st_size), rng.randrange(1, 256)
        flip(path, position, bits)
        what = (seed, path.name, position, bits)
        fs = Recording(log_dir)
        partition = list_partition(fs, str(log_dir))
        bound_by(fs, repair_log(fs, partition, skip_corrupt=True, now_ms=START_MS))
        assert fs.lost == [], what
        assert {f.code for f in defects(data_dir)} <= {"lost-records"}, what
        left = read(log_dir)
        assert all(good[offset] == record for offset, record in left.items()), what
        assert len(good) - len(left) <= 4, what
        shutil.rmtree(data_dir)


def test_checkpoints_keep_every_entry_that_can_be_true(data_dir: Path) -> None:
    path = data_dir / "recovery-point-offset-checkpoint"
    path.write_text("0\n9\norders 0 156\norders 1 999\ngone 3 7\nbroken\norders -1 5\n")
    ends = {TopicPartition("orders", number): 156 for number in (0, 1)}
    planned = plan_checkpoints(FS, str(data_dir), ends)
    assert [step.file for step, _ in planned] == [str(path)]
    before = path.read_bytes()
    apply_checkpoints(FS, planned, ends, START_MS)
    assert path.read_text() == "0\n3\ngone 3 7\norders 0 156\norders 1 156\n"
    lost = losses.read(FS, str(data_dir / "orders-1")).open
    assert [(loss.first_offset, loss.end_offset) for loss in lost] == [(156, 999)]
    assert (data_dir / "recovery-point-offset-checkpoint.quarantine").read_bytes() == before
    assert {f.code for f in defects(data_dir)} == {"lost-records", "missing-partition"}
    assert plan_checkpoints(FS, str(data_dir), ends) == []


def test_a_log_is_cut_and_a_checkpoint_that_cannot_be_read_written_anew_in_one_go(
    data_dir: Path, log_dir: Path
) -> None:
    (data_dir / "replication-offset-checkpoint").write_bytes(b"0\n1\norders 0 1\xff\n")
    last = log_dir / f"{LAST}.log"
    last.write_bytes(last.read_bytes()[:-10])
    target = resolve(FS, str(data_dir))
    assert not log_repair.run(FS, target, write=True, skip_corrupt=False, as_json=False)
    assert [f.code for f in defects(data_dir)] == ["lost-records"]
    losses.acknowledge(FS, str(log_dir), START_MS)
    assert log_repair.run(FS, target, write=True, skip_corrupt=False, as_json=False)
    assert defects(data_dir) == []


def test_the_lock_of_another_process_is_respected_and_given_back(data_dir: Path) -> None:
    class Held(RealFileSystem):
        def lock(self, path: str) -> RealFile | None:
            return None

    with pytest.raises(LogDirLockedError, match="in use by a running broker"), locked(Held(), str(data_dir)):
        pass
    (data_dir / ".lock").unlink(missing_ok=True)
    with locked(FS, data_dir_of(FS, str(data_dir / "orders-0"))):
        assert (data_dir / ".lock").exists()
    assert not (data_dir / ".lock").exists()
    assert data_dir_of(FS, str(data_dir.parent / "alone-0")) is None


# -- one log offline


def test_reindex_gives_the_files_that_the_engine_wrote(log_dir: Path) -> None:
    before = contents(log_dir)
    for name in before:
        if name.endswith((".index", ".timeindex", ".txnindex")):
            (log_dir / name).unlink()
    partition = list_partition(FS, str(log_dir))
    changed = reindex(FS, partition, interval=200, write=False)
    assert len(changed) == 12
    assert reindex(FS, partition, interval=200, write=True) == changed
    assert contents(log_dir) == before


def test_reindex_refuses_a_damaged_log(log_dir: Path) -> None:
    flip(log_dir / f"{SECOND}.log", 500)
    with pytest.raises(CorruptRecordError, match=r"repair.*first"):
        reindex(FS, list_partition(FS, str(log_dir)), interval=200, write=True)


def test_trim_drops_what_lies_below_and_above(data_dir: Path, log_dir: Path) -> None:
    records = read(log_dir)
    partition = list_partition(FS, str(log_dir))
    trim(FS, partition, SimulatedRuntime(), before=50, after=100)
    held = measure(FS, partition)
    assert (held.start_offset, held.end_offset) == (50, 102)
    assert {o: r for o, r in read(log_dir).items() if o >= 50} == {
        o: r for o, r in records.items() if 50 <= o < 102
    }
    assert (data_dir / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 50\n"
    assert "orders 0 102" in (data_dir / "recovery-point-offset-checkpoint").read_text()
    assert defects(data_dir) == []


def test_trim_refuses_a_damaged_log_and_an_offset_past_its_end(log_dir: Path) -> None:
    partition = list_partition(FS, str(log_dir))
    before = contents(log_dir)
    with pytest.raises(OffsetOutOfRangeError, match="past the log's end"):
        trim(FS, partition, SimulatedRuntime(), before=1000, after=None)
    flip(log_dir / f"{SECOND}.log", 500)
    with pytest.raises(CorruptRecordError, match=r"repair.*first"):
        trim(FS, partition, SimulatedRuntime(), before=50, after=None)
    assert contents(log_dir).keys() == before.keys()


def test_the_first_offset_of_a_time_is_found(log_dir: Path) -> None:
    partition = list_partition(FS, str(log_dir))
    first = min(r.offset for r in read(log_dir).values() if r.timestamp >= START_MS + 100)
    assert first_offset_at(FS, partition, START_MS + 100) == first
    assert first_offset_at(FS, partition, START_MS + 10_000_000) is None


def test_compact_keeps_the_newest_record_of_each_key(data_dir: Path, log_dir: Path) -> None:
    records = read(log_dir)
    config = LogConfig(cleanup_policy=frozenset({"compact"}))
    cleaned_to = compact(FS, list_partition(FS, str(log_dir)), SimulatedRuntime(), config)
    assert cleaned_to == 130
    assert (data_dir / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 130\n"
    left = read(log_dir)
    assert defects(data_dir) == []
    assert {o: records[o] for o in left} == left
    assert len(left) < len(records)
    assert {o for o in records if o >= 130} <= set(left)
