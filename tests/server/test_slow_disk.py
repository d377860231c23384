"""A disk that hangs holds up what waits for it, and nothing else: the broker as clients see it, with two log dirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.names import TopicPartition
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.storage.fs import FileSystem
from ottla.testing.embedded import EmbeddedBroker
from tests.disks.slow_disk import SlowFileSystem
from tests.server.wire import FETCH, PRODUCE, TIMEOUT_S, Wire, fetch, produce, records

METADATA = 3
DURABLE, PLAIN = "durable", "plain"  # the first is on disk before it is acknowledged
SIX_MINUTES_MS = 360_000  # all regular work has its turn, no connection is too old


class TwoDisks:
    """A broker with two log directories, of which one may hang, and a partition of each topic in both."""

    def __init__(self, root: Path) -> None:
        self.dirs = [str(root / "slow"), str(root / "quick")]
        self.broker = EmbeddedBroker({"log.dirs": ",".join(self.dirs)}, root, wrap_files=self._wrap)
        self.broker.start()
        for topic, config in ((DURABLE, {"flush.messages": 1}), (PLAIN, {})):
            self.broker.create_topic(topic, partitions=2, config=config)

    def _wrap(self, files: FileSystem) -> FileSystem:
        self.files = SlowFileSystem(files)
        return self.files

    def partition(self, topic: str, directory: str) -> int:
        """The topic's partition in that directory."""
        logs = self.broker.broker.logs
        homes = self.broker.call(
            lambda: {number: logs.logs[TopicPartition(topic, number)].dir.path for number in (0, 1)}
        )
        (number,) = (number for number, home in homes.items() if home == directory)
        return number

    def hang(self) -> None:
        self.files.hold(self.dirs[0])


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[TwoDisks]:
    disks = TwoDisks(tmp_path)
    yield disks
    disks.files.release()
    disks.broker.close()


def append(wire: Wire, topic: str, partition: int, acks: int = 1) -> int:
    """One record; its offset."""
    response = wire.ask(PRODUCE, 9, produce(topic, records(b"value"), acks=acks, partition=partition))
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == 0
    return int(answer.base_offset)


def fetched_bytes(wire: Wire, topic: str, partition: int, offset: int) -> int:
    (answer,) = wire.ask(FETCH, 12, fetch(topic, offset, partition=partition)).responses[0].partitions
    assert answer.error_code == 0
    return len(answer.records or b"")


def test_while_one_disk_hangs_the_broker_serves_everything_else(disks: TwoDisks) -> None:
    slow, quick = (disks.partition(DURABLE, directory) for directory in disks.dirs)
    plain_slow, plain_quick = (disks.partition(PLAIN, directory) for directory in disks.dirs)
    with Wire(disks.broker) as waiting, Wire(disks.broker) as reading, Wire(disks.broker) as other:
        assert append(other, PLAIN, plain_slow) == 0
        disks.hang()
        waiting.send(PRODUCE, 9, produce(DURABLE, records(b"value"), acks=-1, partition=slow))
        assert disks.files.wait_until_held()
        reading.send(FETCH, 12, fetch(DURABLE, partition=slow, max_wait_ms=60_000))
        for number in range(5):
            other.ping()
            assert append(other, DURABLE, quick, acks=-1) == number
            assert append(other, PLAIN, plain_quick) == number
            assert fetched_bytes(other, DURABLE, quick, number) > 0
            assert fetched_bytes(other, PLAIN, plain_quick, number) > 0
            assert fetched_bytes(other, PLAIN, plain_slow, 0) > 0, "what is in memory is served"
            assert len(other.ask(METADATA, 12, MetadataRequest(topics=None)).topics) == 2
        for wire in (waiting, reading):
            wire.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                wire.socket.recv(1)
            wire.socket.settimeout(TIMEOUT_S)
        disks.files.release()
        assert waiting.receive(PRODUCE, 9)[1].responses[0].partition_responses[0].base_offset == 0
        assert len(reading.receive(FETCH, 12)[1].responses[0].partitions[0].records) > 0
        assert append(other, DURABLE, slow) == 1


def test_regular_work_that_meets_a_hanging_disk_does_not_stop_the_broker(disks: TwoDisks) -> None:
    """Retention, checkpoints and flushes become due for both directories while one hangs."""
    slow, quick = (disks.partition(DURABLE, directory) for directory in disks.dirs)
    plain_slow, plain_quick = (disks.partition(PLAIN, directory) for directory in disks.dirs)
    with Wire(disks.broker) as other:
        for topic, number in ((DURABLE, slow), (PLAIN, plain_slow)):
            assert append(other, topic, number) == 0
        disks.hang()
        disks.broker.clock.advance(SIX_MINUTES_MS)
        assert disks.files.wait_until_held()
        other.ping()
        assert append(other, DURABLE, quick) == 0
        assert append(other, PLAIN, plain_quick) == 0
        assert fetched_bytes(other, PLAIN, plain_quick, 0) > 0
        disks.files.release()
        assert append(other, DURABLE, slow) == 1
