"""An import that stops anywhere while it puts a topic in its place: all of it is there then, or nothing."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from ottla.cluster.adopt import adopt
from ottla.config import LogConfig
from ottla.errors import BrokerError, ConfigError
from ottla.logtools.findings import DEFECT
from ottla.logtools.verify.data_dir import verify
from ottla.records.compression.codec import Codec
from ottla.runtime import SystemRuntime
from ottla.spark.jobs import import_into
from ottla.spark.jobs.import_into import Destination
from ottla.spark.jobs.import_rows import Packing, SegmentsTodo, pack_rows
from ottla.spark.jobs.import_topic import _end_of
from ottla.spark.jobs.importing import BuiltPartition
from ottla.storage.fs import FileSystem, RealFileSystem
from tests.disks.faults import Fault, FaultyFileSystem
from tests.logtools.making import open_manager
from tests.spark.jobs.damaged import make_healthy
from tests.spark.jobs.helping import FS, records, target_at

CONFIG = LogConfig.from_properties({"internal.segment.bytes": "700"})
ROWS = pa.record_batch(
    {"key": [f"{number}" for number in range(100)], "value": [f"value {number}" for number in range(100)]}
)


@pytest.fixture(scope="module")
def taken_over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that a broker of ottla's has had."""
    path = make_healthy(tmp_path_factory.mktemp("taken over") / "data", partitions=2)
    with closing(SystemRuntime()) as runtime:
        adopt(FS, [str(path)], runtime.randrange)
    return path


def build(to: Destination) -> dict[int, BuiltPartition]:
    packing = Packing(to.topic, len(to.places), Codec.NONE, 200, 0, to.spools)
    spool = pack_rows([ROWS], packing, 0)
    built = {}
    for number, place in to.places.items():
        runs = spool.runs[number]
        todo = SegmentsTodo(place.directory, place.base_offset, place.leader_epoch, runs, CONFIG)
        end = place.base_offset + sum(run.records for run in runs)
        built[number] = BuiltPartition(place, end, todo.build())
    return built


def add_to(fs: FileSystem, path: Path) -> None:
    with (
        closing(SystemRuntime()) as runtime,
        import_into.old_data_dir(fs, str(path), "orders", runtime) as to,
    ):
        to.existing = import_into.existing_topic(to, None)
        for number, directory in to.existing.items():
            to.stage(number, *_end_of(directory))
        import_into._put_behind(to, build(to))  # as if killed: nothing is undone at once


def add_topic(fs: FileSystem, path: Path) -> None:
    with closing(SystemRuntime()) as runtime, import_into.old_data_dir(fs, str(path), "new", runtime) as to:
        import_into.check_new_topic(to)
        for number in range(2):
            to.stage(number)
        import_into.put_new_topic(to, build(to), {}, runtime)


def defects(path: Path) -> list[str]:
    return [str(finding) for finding in verify(FS, target_at(path)) if finding.level == DEFECT]


@pytest.mark.parametrize("change", [add_to, add_topic])
def test_a_fault_anywhere_leaves_all_or_nothing(taken_over: Path, tmp_path: Path, change: object) -> None:
    assert callable(change)
    whole = tmp_path / "whole"
    shutil.copytree(taken_over, whole)
    fs = FaultyFileSystem(FS)
    change(fs, whole)
    assert defects(whole) == []
    before, after = records(taken_over), records(whole)
    assert sum(map(len, after.values())) == sum(map(len, before.values())) + 100
    outcomes = set()
    for point, count in sorted(fs.seen.items()):
        if point.kind not in ("create", "pwrite", "rename", "unlink", "sync_dir"):
            continue
        for nth in {0, count - 1}:
            path = tmp_path / "stopped"
            shutil.copytree(taken_over, path)
            with suppress(OSError, BrokerError):
                change(FaultyFileSystem(FS, Fault(point, nth)), path)
            open_manager(path).close()  # a broker that starts and stops
            found = {name: log for name, log in records(path).items() if not name.endswith("-delete")}
            known = import_into.topics_of(FS, str(path))
            if "new" not in known:  # directories that no topic has are for a broker to set aside
                found = {name: log for name, log in found.items() if not name.startswith("new-")}
            assert strip(found) in (strip(before), strip(after)), (point, nth)
            outcomes.add(strip(found) == strip(before))
            assert defects(path) == [], (point, nth)
            shutil.rmtree(path)
    assert outcomes == {True, False}


@pytest.mark.parametrize("named", [1, 2])
def test_an_import_that_was_killed_before_the_topic_was_known_can_be_done_again(
    taken_over: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    path = tmp_path / "data"
    shutil.copytree(taken_over, path)
    renames: list[str] = []

    class Dying(RealFileSystem):
        def rename(self, source: str, target: str) -> None:
            if source.endswith("-delete") and len(renames) == named:
                raise KeyboardInterrupt
            super().rename(source, target)
            renames.extend([target] if source.endswith("-delete") else [])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        # As if killed: nothing is undone at once.
        killed.setattr(import_into, "remove_flat", lambda fs, path: None)
        killed.setattr(import_into, "register_topic", die)
        with pytest.raises(KeyboardInterrupt):
            add_topic(Dying(), path)
    assert [Path(name).name for name in renames] == ["new-0", "new-1"][:named]
    with (
        closing(SystemRuntime()) as runtime,
        import_into.old_data_dir(FS, str(path), "new", runtime) as to,
        pytest.raises(ConfigError, match="has no topic new; without --append it is made"),
    ):
        import_into.existing_topic(to, None)
    add_topic(FS, path)
    assert "new" in import_into.topics_of(FS, str(path))
    assert sum(len(log) for name, log in records(path).items() if name in ("new-0", "new-1")) == 100
    assert not list(path.glob("new-[01]/import.unfinished"))
    assert defects(path) == []
    with pytest.raises(ConfigError, match="has a topic new already; --append adds to it"):
        add_topic(FS, path)


def test_directories_of_a_topic_that_nobody_knows_are_not_touched(taken_over: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(taken_over, path)
    shutil.copytree(path / "orders-0", path / "new-0")
    with pytest.raises(ConfigError, match=r"has new-0, but ottla\.db does not know the topic; move"):
        add_topic(FS, path)
    assert (path / "new-0").exists()


def strip(found: dict[str, list[tuple[object, ...]]]) -> dict[str, list[object]]:
    """Without times: rows that have none get that of the import."""
    return {name: [(record[0], record[2], record[3]) for record in log] for name, log in found.items()}
