"""Directories of real Kafka brokers are taken over and given back; those that must not be touched are refused."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cluster.adopt import Adopted, adopt, check_adopted, release, unknown_partitions
from ottla.cluster.config_changes import Alteration, TopicAlterations, alter_configs
from ottla.cluster.image import ClusterImage
from ottla.cluster.kraft_log import METADATA_DIR, read_kraft_metadata
from ottla.cluster.outcome import Command
from ottla.cluster.sqlite import SqliteStore
from ottla.errors import BrokerError, LogDirLockedError, StorageError
from ottla.storage import checkpoint
from ottla.storage.fs import RealFileSystem
from tests import corpus
from tests.cluster.making import CONFIG, make, register

FS = RealFileSystem()
KRAFT = [name for name in corpus.NAMES if "2.8" not in name]
NEWEST = "kafka-4.2.0-stopped"


def take(*paths: Path) -> Adopted:
    return adopt(FS, [str(path) for path in paths], random.Random(3).randrange)


def image_of(path: Path, *commands: Command) -> ClusterImage:
    store = SqliteStore(str(path / "ottla.db"), "none")
    store.open()
    for command in commands:
        store.update(command)
    image = store.load()
    store.close()
    return image


def snapshot(path: Path) -> dict[str, bytes]:
    """Every file, but for ottla's own and the lock."""
    own = {"ottla.db", ".lock"}
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name not in own
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return corpus.unpack(NEWEST, tmp_path)


@pytest.mark.parametrize("name", KRAFT)
def test_topics_keep_names_ids_partitions_and_settings(name: str, tmp_path: Path) -> None:
    data = corpus.unpack(name, tmp_path)
    before = snapshot(data)
    taken = take(data)
    image = image_of(data)
    assert {f"{t.name}-{n}" for t in image.topics.values() for n in range(len(t.partitions))} == set(
        corpus.expected(name)
    )
    assert set(taken.new_topics) == set(image.topics)
    for topic in image.topics.values():
        assert checkpoint.read_topic_id(FS, f"{data}/{topic.name}-0/partition.metadata") == topic.topic_id
        assert all(p.replicas == p.isr == (1,) for p in topic.partitions)
    identity = checkpoint.read_properties(FS, f"{data}/meta.properties")
    assert image.cluster_id == taken.survey.cluster_id == identity["cluster.id"]
    assert image.topics["compacted"].config["cleanup.policy"] == "compact"
    assert image.topics["append-time"].config["message.timestamp.type"] == "LogAppendTime"
    assert image.topics["__consumer_offsets"].config["segment.bytes"] == "104857600"
    assert snapshot(data) == before


def test_a_setting_that_ottla_would_refuse_is_left_out_and_told(tmp_path: Path) -> None:
    taken = take(corpus.unpack("kafka-3.9.1-stopped", tmp_path))
    topic = taken.survey.topics["wide"]
    assert topic.config == {"file.delete.delay.ms": "0", "index.interval.bytes": "600"}
    assert "at least 1048576" in topic.left_out["segment.bytes"]
    assert any(note.startswith("wide: segment.bytes=3000 is not taken over") for note in taken.survey.notes)


def test_settings_of_all_brokers_are_taken_over(data: Path) -> None:
    take(data)
    assert image_of(data).broker_configs == {None: {"min.insync.replicas": "1"}}


def test_the_broker_leads_on_in_its_epoch_unless_it_was_killed(data: Path) -> None:
    newest, _ = checkpoint.read_epochs(FS, f"{data}/txn-0/leader-epoch-checkpoint")[-1]
    assert newest > 0
    take(data)
    [partition] = image_of(data, register(1)).topics["txn"].partitions
    assert (partition.leader, partition.leader_epoch) == (1, newest)
    [partition] = image_of(data, register(1, clean=False)).topics["txn"].partitions
    assert (partition.leader, partition.leader_epoch) == (1, newest + 1)


@pytest.mark.parametrize("missing", ["txn-0/leader-epoch-checkpoint", METADATA_DIR])
def test_the_epoch_is_found_in_the_log_and_in_the_controllers(data: Path, missing: str) -> None:
    """Where one does not know it, the other does."""
    newest, _ = checkpoint.read_epochs(FS, f"{data}/txn-0/leader-epoch-checkpoint")[-1]
    gone = data / missing
    if gone.is_dir():
        shutil.rmtree(gone)
    else:
        gone.unlink()
    take(data)
    assert image_of(data).topics["txn"].partitions[0].leader_epoch == newest


def test_producer_ids_are_far_from_those_that_kafka_gives_out(data: Path) -> None:
    take(data)
    store = SqliteStore(str(data / "ottla.db"), "")
    store.open()
    assert store.allocate_producer_ids() >= 1 << 48
    store.close()


def test_doing_it_again_changes_nothing_that_was_done_since(data: Path) -> None:
    take(data)
    change = TopicAlterations("txn", [Alteration("flush.ms", "5")])
    image = image_of(data, register(1), lambda image: alter_configs(image, [change], CONFIG))
    again = take(data)
    assert again.new_topics == []
    assert image_of(data) == image


def test_partitions_that_come_later_fill_their_holes(data: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.move(data / "wide-0", moved)
    taken = take(data)
    assert taken.survey.topics["wide"].holes == [0]
    assert any("wide: partition 0 does not lie here" in note for note in taken.survey.notes)
    hole, there = image_of(data, register(1)).topics["wide"].partitions
    assert (hole.leader, hole.replicas, there.leader) == (-1, (), 1)
    shutil.move(moved, data / "wide-0")
    assert take(data).new_topics == ["wide"]
    filled, same = image_of(data, register(1)).topics["wide"].partitions
    assert (filled.leader, filled.replicas) == (1, (1,))
    assert same.leader_epoch == there.leader_epoch


def test_several_log_directories_are_one_broker(data: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(data / "meta.properties", second)
    shutil.move(data / "wide-1", second)
    taken = take(data, second)
    assert not any(topic.holes for topic in taken.survey.topics.values())
    assert len(image_of(data).topics["wide"].partitions) == 2
    assert not (second / "ottla.db").exists()


def test_the_brokers_of_one_place_are_taken_over_together(data: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "node.2").mkdir(parents=True)
    shutil.move(data, place / "node.1")
    identity = (place / "node.1/meta.properties").read_text()
    (place / "node.2/meta.properties").write_text(identity.replace("node.id=1", "node.id=2"))
    shutil.move(place / "node.1/wide-1", place / "node.2")
    assert take(place).survey.node_ids == [1, 2]
    assert [p.replicas for p in image_of(place).topics["wide"].partitions] == [(1,), (2,)]


def test_without_a_controllers_log_topics_come_without_settings(data: Path) -> None:
    shutil.rmtree(data / METADATA_DIR)
    taken = take(data)
    assert "no controller's log" in taken.survey.notes[0]
    assert image_of(data).topics["compacted"].config == {}


def test_a_damaged_controllers_log_is_told_and_what_it_still_says_is_taken(data: Path) -> None:
    log = data / METADATA_DIR / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    taken = take(data)
    assert any("controller's log is damaged" in note for note in taken.survey.notes)
    assert set(image_of(data).topics) == set(taken.survey.topics)
    assert image_of(data).topics["codec-none"].config["index.interval.bytes"] == "600"


def test_a_torn_controllers_log_counts_up_to_its_last_whole_batch(data: Path) -> None:
    log = data / METADATA_DIR / "00000000000000000000.log"
    whole = read_kraft_metadata(FS, [str(data)])
    log.write_bytes(log.read_bytes() + log.read_bytes()[:70])
    assert read_kraft_metadata(FS, [str(data)]) == whole


def test_a_snapshot_stands_for_the_records_before_it(data: Path) -> None:
    metadata_dir = data / METADATA_DIR
    log = metadata_dir / "00000000000000000000.log"
    whole = read_kraft_metadata(FS, [str(data)])
    # As a snapshot it is read whole; the log below its offset does not count any more, damaged or not.
    shutil.copy(log, metadata_dir / "00000000000000100000-0000000001.checkpoint")
    log.write_bytes(b"")
    (metadata_dir / "00000000000000200000-0000000001.checkpoint.part").write_bytes(b"half")
    assert read_kraft_metadata(FS, [str(data)]) == whole


def test_a_partition_without_its_id_gets_it_from_the_controller_or_a_new_one(data: Path) -> None:
    known = checkpoint.read_topic_id(FS, f"{data}/wide-0/partition.metadata")
    os.unlink(data / "wide-0/partition.metadata")
    os.unlink(data / "wide-1/partition.metadata")
    (data / "mine-0").mkdir()
    taken = take(data)
    assert any(note.startswith("mine: had no id") for note in taken.survey.notes)
    assert image_of(data).topics["wide"].topic_id == known
    for name in ("wide-0", "mine-0"):
        written = checkpoint.read_topic_id(FS, f"{data}/{name}/partition.metadata")
        assert written == image_of(data).topics[name[:-2]].topic_id


def test_directories_on_their_way_out_are_left_alone(data: Path) -> None:
    marked = data / f"old-0.{'a' * 32}-delete"
    marked.mkdir()
    taken = take(data)
    assert "old" not in image_of(data).topics
    assert set(taken.survey.left_alone) == {str(marked), str(data / METADATA_DIR)}


def spoil_identity(data: Path) -> None:
    (data / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=x\n")


def spoil_partition(data: Path) -> None:
    other = (data / "txn-0/partition.metadata").read_text()
    (data / "wide-1/partition.metadata").write_text(other)


def spoil_store(data: Path) -> None:
    store = SqliteStore(str(data / "ottla.db"), "another")
    store.open()
    store.close()


def spoil_topic(data: Path) -> None:
    store = SqliteStore(
        str(data / "ottla.db"), checkpoint.read_properties(FS, f"{data}/meta.properties")["cluster.id"]
    )
    store.open()
    store.update(register(1))
    store.update(make("wide"))
    store.close()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: (data / "meta.properties").unlink(), "it is not the data directory of a Kafka broker"),
        (lambda data: (data / "meta.properties").write_text("version=1\n"), "names no cluster and node"),
        (spoil_identity, "ZooKeeper"),
        (spoil_partition, "different topic ids"),
        (lambda data: (data / "pictures").mkdir(), "not a partition's directory"),
        (spoil_store, "is that of cluster another"),
        (spoil_topic, "deleted and made anew"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    data: Path, spoil: object, message: str
) -> None:
    assert callable(spoil)
    spoil(data)
    before = snapshot(data)
    with pytest.raises(BrokerError, match=message):
        take(data)
    assert snapshot(data) == before


def test_two_clusters_or_two_copies_are_not_mixed(data: Path, tmp_path: Path) -> None:
    other = corpus.unpack("kafka-3.9.1-stopped", tmp_path)
    with pytest.raises(StorageError, match="several clusters"):
        take(data, other)
    copy = tmp_path / "copy"
    shutil.copytree(data, copy)
    with pytest.raises(StorageError, match="and in"):
        take(data, copy)


HOLD = """
import sys
from ottla.storage.fs import RealFileSystem
lock = RealFileSystem().lock(sys.argv[1])
print(lock, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("what", [take, lambda data: release(FS, [str(data)])])
def test_directories_in_use_are_refused(data: Path, what: object) -> None:
    assert callable(what)
    command = [sys.executable, "-c", HOLD, str(data / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(LogDirLockedError, match="in use"):
            what(data)
        holder.stdin.close()
    what(data)


# -- giving back


def test_what_ottla_added_is_removed_and_the_rest_is_as_it_was(data: Path) -> None:
    before = snapshot(data)
    take(data)
    (data / "broker.pid").write_text("1\n")
    (data / "ottla.db-wal").touch()
    released = release(FS, [str(data)])
    assert set(released.removed) == {f"{data}/broker.pid", f"{data}/ottla.db"}
    assert snapshot(data) == before
    assert (released.stray, released.empty, released.changed) == ([], [], [])
    assert release(FS, [str(data)]).removed == []


def test_what_kafka_will_not_find_as_it_was_is_named(data: Path) -> None:
    take(data)
    change = TopicAlterations("txn", [Alteration("flush.ms", "5")])
    image_of(data, register(1), lambda image: alter_configs(image, [change], CONFIG))
    shutil.copytree(data / "empty-0", data / "empty-1")  # a partition more
    (data / "mine-0").mkdir()
    shutil.rmtree(data / "wide-1")
    checkpoint.write_topic_id(
        FS, f"{data}/trimmed-0/partition.metadata", make("x")(image_of(data)).image.topics["x"].topic_id
    )
    released = release(FS, [str(data)])
    assert released.stray == ["empty-1", "mine-0", "trimmed-0"]
    assert released.empty == ["trimmed-0", "wide-1"]
    assert released.changed == ["txn"]


def test_a_damaged_store_is_removed_too(data: Path) -> None:
    (data / "ottla.db").write_bytes(b"no database at all" * 100)
    assert release(FS, [str(data)]).removed == [f"{data}/ottla.db"]


def test_a_directory_that_nobody_adopted_is_not_served(data: Path) -> None:
    with pytest.raises(StorageError, match=f"16 partitions .* run `ottla adopt {data}`"):
        check_adopted(FS, [str(data)], ClusterImage("x"))
    take(data)
    check_adopted(FS, [str(data)], image_of(data))


def test_partitions_that_nobody_adopted_are_found(data: Path) -> None:
    (data / f"old-0.{'a' * 32}-stray").mkdir()
    found = unknown_partitions(FS, [str(data), f"{data}/nowhere"], ClusterImage("x"))
    assert {os.path.basename(path) for path in found} == set(corpus.expected(NEWEST))
    take(data)
    assert unknown_partitions(FS, [str(data)], image_of(data)) == []
