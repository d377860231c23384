"""Segment files that something else cuts while the broker sends from them: reads fail, the process and the rest go on.

Records leave from maps of the log. Where a file has become shorter, the system refuses to send (EFAULT); to look into
such a map would end the process with a signal. So the broker runs in a process of its own here.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.records.builder import NewRecord, build_batch
from tests.reliability.child import Child
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce

LIST_OFFSETS, CREATE_TOPICS = 2, 19
MIB = 1 << 20
BATCHES, RECORDS = 24, 500
PARTITIONS = 4
VERSIONS = (0, 2, 3, 4, 11, 12)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Child]:
    dirs = f"log.dirs={tmp_path}/data,{tmp_path}/second"
    child = Child(tmp_path / "data", "--set", dirs)
    child.start()
    try:
        with Wire(child) as wire:
            topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
            answer = wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
            assert answer.topics[0].error_code == 0
            data = bytes(build_batch([NewRecord(1_700_000_000_000, None, os.urandom(500), [])] * RECORDS))
            for partition in range(PARTITIONS):
                for _ in range(BATCHES):
                    wire.ask(PRODUCE, 9, produce("t", data, partition=partition))
        yield child
    finally:
        child.close()


def files_of(directory: Path) -> dict[int, Path]:
    return {int(path.parent.name[2:]): path for path in directory.glob("t-*/*.log")}


def test_a_file_that_is_cut_while_it_is_sent_costs_its_readers_and_nobody_else(
    broker: Child, tmp_path: Path
) -> None:
    chance = random.Random(1)
    cut, whole = files_of(tmp_path / "data"), files_of(tmp_path / "second")
    assert cut
    assert whole
    with contextlib.ExitStack() as stack:
        deaf = []
        for partition in cut:
            for version in VERSIONS:
                wire = stack.enter_context(Wire(broker, receive_buffer_bytes=4096))
                offset = chance.randrange(BATCHES // 2 * RECORDS)
                wire.send(
                    FETCH,
                    version,
                    fetch("t", offset, partition=partition, partition_max_bytes=50 * MIB),
                )
                deaf.append(wire)
        for path in cut.values():
            os.truncate(path, chance.choice([0, 1, 100, 70_000]))
        asking = stack.enter_context(Wire(broker))
        for partition in cut:
            for version in VERSIONS:
                for offset in (0, BATCHES * RECORDS - 1):
                    asking = check_gone(broker, stack, asking, partition, version, offset)
        for partition in whole:
            answer = asking.ask(FETCH, 12, fetch("t", 0, partition=partition)).responses[0].partitions[0]
            assert (answer.error_code, len(answer.records) > MIB // 2) == (ErrorCode.NONE, True)
        for partition in cut:
            find(asking, partition)
        for wire in deaf:
            with contextlib.suppress(EOFError, ConnectionError):
                wire.read_frame()
        asking.ping()
    (line,) = [line for line in broker.log_text().splitlines() if "offline" in line]
    assert "something else has cut it" in line
    with Wire(broker) as wire:
        for partition in whole:
            data = bytes(build_batch([NewRecord(1_700_000_000_000, None, b"more", [])]))
            answer = wire.ask(PRODUCE, 9, produce("t", data, partition=partition))
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    os.kill(broker.pid, 0)


def check_gone(
    broker: Child, stack: contextlib.ExitStack, wire: Wire, partition: int, version: int, offset: int
) -> Wire:
    """Ask for what is gone: an error, or a connection that ends in the middle; the connection to go on with."""
    asked = fetch("t", offset, partition=partition, partition_max_bytes=50 * MIB)
    try:
        answer = wire.ask(FETCH, version, asked).responses[0].partitions[0]
    except (EOFError, ConnectionError):
        return stack.enter_context(Wire(broker))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    return wire


def find(wire: Wire, partition: int) -> None:
    """A lookup by time reads the file too."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=1_700_000_000_000)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])], isolation_level=0
    )
    wire.ask(LIST_OFFSETS, 5, request)
