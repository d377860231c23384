"""A log directory that goes offline says why, at the start and later: in the log, at /healthz and at /metrics."""

from __future__ import annotations

import errno
import re
import urllib.request
from pathlib import Path

import pytest

from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.storage.fs import FileSystem, RealFileSystem
from ottla.testing.embedded import EmbeddedBroker
from tests.disks.faults import Fault, FaultyFileSystem, Point
from tests.server.wire import PRODUCE, Wire, produce, records

WRITE = Point("pwrite", "*.log", "ottla.storage.log.segment._write")


def page(broker: EmbeddedBroker, path: str) -> str:
    with urllib.request.urlopen(f"http://{broker.broker.http}{path}", timeout=60) as answer:
        assert answer.status == 200
        text: bytes = answer.read()
    return text.decode()


def append(broker: EmbeddedBroker, partition: int) -> int:
    with Wire(broker) as wire:
        response = wire.ask(PRODUCE, 9, produce("t", records(b"value"), partition=partition))
    code: int = response.responses[0].partition_responses[0].error_code
    return code


def partition_in(broker: EmbeddedBroker, directory: str) -> int:
    logs = broker.broker.logs
    homes = broker.call(lambda: {n: logs.logs[TopicPartition("t", n)].dir.path for n in (0, 1)})
    (number,) = (number for number, home in homes.items() if home == directory)
    return number


def test_a_directory_that_fails_while_it_runs_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    faulty: list[FaultyFileSystem] = []

    def wrap(files: FileSystem) -> FileSystem:
        faulty.append(FaultyFileSystem(files))
        return faulty[-1]

    properties = {"log.dirs": f"{good},{bad}"}
    with EmbeddedBroker(properties, tmp_path, http=True, wrap_files=wrap) as broker:
        broker.create_topic("t", partitions=2)
        assert page(broker, "/healthz") == "ok\n"
        number = partition_in(broker, bad)
        faulty[0].fault = Fault(WRITE, faulty[0].seen[WRITE], errno.EIO)
        assert append(broker, number) == ErrorCode.KAFKA_STORAGE_ERROR
        assert append(broker, 1 - number) == ErrorCode.NONE
        file = f"{bad}/t-{number}/{0:020d}.log"
        (line,) = [record.message for record in caplog.records if "offline" in record.message]
        health, metrics = page(broker, "/healthz"), page(broker, "/metrics")
        for text in (line, health):
            for part in ("EIO", file, f"appending to t-{number}", f": t-{number}"):
                assert part in text
        assert health.startswith("ok, but 1 of 2 log directories are offline\n")
        assert f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{bad}"}} 1.0' in metrics
        assert f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{good}"}} 0.0' in metrics
        assert "kafka_log_logmanager_offlinelogdirectorycount 1.0" in metrics
        assert f'ottla_partition_offline{{partition="{number}",topic="t"}} 1.0' in metrics
        (trouble,) = re.findall(r"^ottla_log_directory_trouble\{.*\} 1\.0$", metrics, re.MULTILINE)
        for part in ('error="EIO"', f'file="{file}"', 'state="offline"'):
            assert part in trouble


class NoDirectory(RealFileSystem):
    """A disk that is not there any more: nothing below one directory can be looked at."""

    def __init__(self, gone: str) -> None:
        self._gone = gone

    def lock(self, path: str):  # type: ignore[no-untyped-def]
        if path.startswith(self._gone):
            raise OSError(errno.ENXIO, "No such device or address", path)
        return super().lock(path)


def test_a_directory_that_cannot_be_opened_says_why_and_which_partitions_may_lie_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    is_gone = False
    properties = {"log.dirs": f"{good},{bad}"}
    with EmbeddedBroker(
        properties, tmp_path, http=True, wrap_files=lambda files: NoDirectory(bad) if is_gone else files
    ) as broker:
        broker.create_topic("t", partitions=2)
        number = partition_in(broker, bad)
        broker.stop()
        is_gone = True
        broker.start()
        assert append(broker, number) == ErrorCode.KAFKA_STORAGE_ERROR
        assert append(broker, 1 - number) == ErrorCode.NONE
        health, metrics = page(broker, "/healthz"), page(broker, "/metrics")
        for part in ("1 of 2 log directories are offline", bad, "ENXIO", f"offline partitions: t-{number}"):
            assert part in health
        assert f'ottla_partition_offline{{partition="{number}",topic="t"}} 1.0' in metrics
        assert 'error="ENXIO"' in metrics
        text = caplog.text
        for part in (f"log directory {bad} is offline: ENXIO", f"their logs may lie in {bad}: t-{number}"):
            assert part in text
