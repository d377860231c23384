"""A broker whose disk is full: clients learn it at once, it lives, and when there is room it goes on. On a real disk of
a few megabytes, where one can be mounted."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import UnknownError as AioUnknownError
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kafka import KafkaProducer
from kafka.errors import UnknownError

from ottla.errors import BrokerError
from ottla.storage.fs import FileSystem
from ottla.testing.embedded import EmbeddedBroker
from tests.disks.small_disk import SmallFileSystem
from tests.server.wire import wait_until

MIB = 1 << 20
DISK_BYTES = 16 * MIB
LARGE = bytes(200_000)


class SmallDisk:
    """A directory on a disk of its own; or, where nothing can be mounted, one whose log files are counted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(path)]
        self.is_mounted = (
            shutil.which("mount") is not None
            and subprocess.run(mount, check=False, capture_output=True).returncode == 0
        )
        self.files: SmallFileSystem | None = None

    def wrap(self, files: FileSystem) -> FileSystem:
        if self.is_mounted:
            return files
        self.files = SmallFileSystem(files, DISK_BYTES)
        return self.files

    def fill(self) -> None:
        if self.files is not None:
            self.files.capacity_bytes = self.files.used_bytes
        else:
            with suppress(OSError), open(self.path / "filler", "wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass

    def free(self) -> None:
        if self.files is not None:
            self.files.capacity_bytes = DISK_BYTES
        else:
            (self.path / "filler").unlink()

    def close(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path)
    yield disk
    disk.close()


@pytest.fixture
def broker(disk: SmallDisk) -> Iterator[EmbeddedBroker]:
    properties = {"offsets.topic.num.partitions": 1, "log.cleaner.enable": False}
    with EmbeddedBroker(properties, disk.path / "data", http=True, wrap_files=disk.wrap) as broker:
        broker.create_topic("t")
        yield broker


def send(broker: EmbeddedBroker, value: bytes, **options: Any) -> KafkaError | None:
    """What became of one record; an answer is waited for far shorter than a producer would try."""
    told: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 300_000, **options})
    producer.produce("t", value, on_delivery=lambda error, message: told.append((error, message)))
    left = producer.flush(60)
    producer.purge()  # or it would be waited for when the producer goes
    assert left == 0, "it is still being sent again"
    return told[0][0]


def health(broker: EmbeddedBroker) -> str:
    with urllib.request.urlopen(f"http://{broker.broker.http}/healthz", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


def values(broker: EmbeddedBroker) -> list[bytes]:
    with_end = {
        "bootstrap.servers": broker.bootstrap, "group.id": "reader", "enable.auto.commit": False,
        "enable.partition.eof": True,
    }  # fmt: skip
    consumer = Consumer(with_end)
    consumer.assign([TopicPartition("t", 0, 0)])
    found = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        found.append(message.value() or b"")
    consumer.close()
    return found


def commit(broker: EmbeddedBroker, offset: int, timeout_ms: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "socket.timeout.ms": timeout_ms}
    )
    try:
        consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def test_every_client_is_told_at_once_and_what_was_full_goes_on_when_there_is_room(
    broker: EmbeddedBroker, disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    kept = [f"{number}".encode() * 100 for number in range(5)]
    for value in kept:
        assert send(broker, value, **{"enable.idempotence": True}) is None
    commit(broker, 5, 30_000)
    disk.fill()

    refused = send(broker, LARGE)
    assert refused is not None
    assert refused.code() == KafkaError.UNKNOWN
    refused = send(broker, LARGE, **{"enable.idempotence": True})
    assert refused is not None
    assert refused.code() == KafkaError.UNKNOWN
    python = KafkaProducer(bootstrap_servers=broker.bootstrap)
    with pytest.raises(UnknownError, match="disk of the broker is full"):
        python.send("t", LARGE).get(60)
    python.close()
    asyncio.run(_aiokafka_is_told(broker))

    text = health(broker)
    assert text.startswith("ok, but 1 of 1 log directories are full\n")
    for part in (broker.data, "ENOSPC", "t-0"):
        assert part in text
    (line,) = [record.message for record in caplog.records if "directory" in record.message]
    for part in (broker.data, "ENOSPC", "t-0/00000000000000000000.log", "bytes free"):
        assert part in line
    assert values(broker) == kept

    disk.free()
    wait_until(lambda: health(broker) == "ok\n")
    assert "takes records again" in caplog.text
    assert send(broker, LARGE, **{"enable.idempotence": True}) is None
    commit(broker, 15, 30_000)
    broker.create_topic("another")
    assert values(broker) == [*kept, LARGE]
    broker.restart()
    assert values(broker) == [*kept, LARGE]


async def _aiokafka_is_told(broker: EmbeddedBroker) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
    await producer.start()
    try:
        with pytest.raises(AioUnknownError):
            await producer.send_and_wait("t", LARGE)
    finally:
        await producer.stop()


def test_groups_and_topics_live_through_a_full_disk(broker: EmbeddedBroker, disk: SmallDisk) -> None:
    assert send(broker, b"first") is None
    commit(broker, 1, 30_000)
    disk.fill()
    assert send(broker, LARGE) is not None  # from here on nothing is taken, offsets neither
    with pytest.raises(KafkaException):
        commit(broker, 1, 1_000)
    for name in ("a", "b"):
        with suppress(BrokerError):  # whether ottla.db has room for it is chance
            broker.create_topic(name)
    made = {name for name in ("a", "b") if name in broker.topics()}
    disk.free()
    wait_until(lambda: health(broker) == "ok\n")
    commit(broker, 1, 30_000)
    for name in {"a", "b"} - made:
        broker.create_topic(name)
    assert send(broker, LARGE) is None
    broker.kill()
    broker.start()
    assert values(broker) == [b"first", LARGE]
    assert {"a", "b"} <= set(broker.topics())
    wait_until(lambda: not broker.call(broker.broker.replicas.offline_partitions))


def test_a_broker_that_is_stopped_or_killed_on_a_full_disk_has_all_that_was_acknowledged(
    broker: EmbeddedBroker, disk: SmallDisk
) -> None:
    kept = []
    for number in range(10):
        value = bytes([number]) * 1000
        assert send(broker, value) is None
        kept.append(value)
    disk.fill()
    assert send(broker, LARGE) is not None
    broker.kill()
    disk.free()
    broker.start()
    assert values(broker) == kept
    disk.fill()
    assert send(broker, LARGE) is not None
    broker.stop()
    disk.free()
    broker.start()
    assert values(broker) == kept
    assert send(broker, LARGE) is None


def test_preallocation_that_a_client_asks_for_needs_no_more_room_than_there_is(
    broker: EmbeddedBroker,
) -> None:
    """Segments of 1 GiB on a disk of 16 MiB."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    entry = ConfigEntry("log.preallocate", "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("broker", "1", incremental_configs=[entry])
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(60)
    broker.create_topic("preallocated", 3)
    assert send(broker, b"first") is None
    for end in (broker.stop, broker.kill):
        end()
        broker.start()
        broker.create_topic(f"after-{end.__name__}", 2)
        assert send(broker, b"again") is None
