"""Small text files: the format Kafka writes, damage, and that a file is replaced whole or not at all."""

from __future__ import annotations

import errno
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptCheckpointError
from ottla.names import TopicPartition
from ottla.storage import checkpoint
from ottla.testing.crash import crash_states
from ottla.testing.disk import SimulatedDisk
from tests.disks.faults import Fault, FaultyFileSystem
from tests.storage.world import World

OFFSETS = {TopicPartition("a", 1): 7, TopicPartition("b", 0): 2**62}


def test_offsets_are_a_version_a_count_and_a_line_each(any_world: World) -> None:
    path = f"{any_world.root}/recovery-point-offset-checkpoint"
    checkpoint.write_offsets(any_world.fs, path, OFFSETS)
    assert any_world.fs.read_bytes(path) == b"0\n2\na 1 7\nb 0 4611686018427387904\n"
    assert checkpoint.read_offsets(any_world.fs, path) == OFFSETS


def test_a_missing_checkpoint_is_an_empty_one(any_world: World) -> None:
    path = f"{any_world.root}/none"
    assert checkpoint.read_offsets(any_world.fs, path) == {}
    assert checkpoint.read_epochs(any_world.fs, path) == []
    assert checkpoint.read_topic_id(any_world.fs, path) is None
    assert checkpoint.read_properties(any_world.fs, path) == {}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"0",
        b"x\n0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n1\na 1\n",
        b"0\n1\na b 7\n",
        b"0\n0\na 1 7\n",
        b"0\n1\na 1 7 8\n",
        b"\xff\xfe",
    ],
    ids=[
        "empty",
        "no count",
        "no number",
        "version",
        "too few",
        "no offset",
        "no partition",
        "too many",
        "field",
        "bytes",
    ],
)
def test_a_damaged_offset_checkpoint_is_refused(world: World, text: bytes) -> None:
    world.write("c", text)
    with pytest.raises(CorruptCheckpointError):
        checkpoint.read_offsets(world.fs, f"{world.path}/c")


def test_epochs_are_pairs(any_world: World) -> None:
    path = f"{any_world.root}/leader-epoch-checkpoint"
    checkpoint.write_epochs(any_world.fs, path, [(0, 0), (3, 100)])
    assert any_world.fs.read_bytes(path) == b"0\n2\n0 0\n3 100\n"
    assert checkpoint.read_epochs(any_world.fs, path) == [(0, 0), (3, 100)]


@settings(max_examples=30)
@given(st.uuids())
def test_a_topic_id_comes_back(topic_id: uuid.UUID) -> None:
    disk = SimulatedDisk()
    checkpoint.write_topic_id(disk, "/partition.metadata", topic_id)
    assert checkpoint.read_topic_id(disk, "/partition.metadata") == topic_id


def test_a_topic_id_is_read_as_kafka_writes_it(world: World) -> None:
    world.write("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert checkpoint.read_topic_id(world.fs, f"{world.path}/partition.metadata") == uuid.UUID(int=1)


@pytest.mark.parametrize(
    "text", [b"", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", b"version: 0\ntopic_id: AAAA", b"nonsense"]
)
def test_a_damaged_topic_id_is_refused(world: World, text: bytes) -> None:
    world.write("partition.metadata", text)
    with pytest.raises(CorruptCheckpointError):
        checkpoint.read_topic_id(world.fs, f"{world.path}/partition.metadata")


def test_properties_skip_comments_and_keep_the_rest(world: World) -> None:
    world.write("meta.properties", b"#\n#Wed\nversion=1\ncluster.id = a=b\n")
    assert checkpoint.read_properties(world.fs, f"{world.path}/meta.properties") == {
        "version": "1",
        "cluster.id": "a=b",
    }
    checkpoint.write_properties(world.fs, f"{world.path}/other", {"b": "2", "a": "1"})
    assert world.read("other") == b"a=1\nb=2\n"


def test_the_marker_of_a_clean_stop_is_consumed(any_world: World) -> None:
    assert not checkpoint.consume_clean_shutdown(any_world.fs, any_world.root)
    checkpoint.write_clean_shutdown(any_world.fs, any_world.root)
    assert (
        any_world.fs.read_bytes(f"{any_world.root}/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'
    )
    assert checkpoint.consume_clean_shutdown(any_world.fs, any_world.root)
    assert not checkpoint.consume_clean_shutdown(any_world.fs, any_world.root)


def test_after_a_power_cut_there_is_the_old_file_or_the_new_one() -> None:
    disk = SimulatedDisk()
    checkpoint.replace_file(disk, "/c", b"old" * 500)
    history = disk.record()
    checkpoint.replace_file(disk, "/c", b"new" * 600)
    seen = {state.disk().read_bytes("/c") for state in crash_states(history, seed=1)}
    assert seen == {b"old" * 500, b"new" * 600}
    done = crash_states(history, seed=1, points=[len(history.operations)])
    assert {state.disk().read_bytes("/c") for state in done} == {b"new" * 600}


@pytest.mark.parametrize("kind", ["create", "truncate", "pwrite", "sync", "rename"])
def test_a_write_that_fails_leaves_the_old_file(kind: str) -> None:
    disk = SimulatedDisk()
    checkpoint.replace_file(disk, "/c", b"old")
    dry = FaultyFileSystem(SimulatedDisk())
    checkpoint.replace_file(dry, "/c", b"new")
    point = next(point for point in dry.seen if point.kind == kind)
    with pytest.raises(OSError, match="No space"):
        checkpoint.replace_file(FaultyFileSystem(disk, Fault(point, error=errno.ENOSPC)), "/c", b"new")
    assert disk.read_bytes("/c") == b"old"
    checkpoint.replace_file(disk, "/c", b"new")
    assert disk.read_bytes("/c") == b"new"
