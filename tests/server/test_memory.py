"""Memory of a broker process under attack: what is configured bounds it, not what clients claim or send."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.protocol import frame
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress
from tests.server.bombs import BOMBS, bomb_batch, with_payload
from tests.server.wire import PRODUCE, Wire, produce, records

MIB = 1 << 20
BUDGET_MIB = 48
UNPACKED_MIB = 24
SLACK_MIB = 16  # Python's own, and buffers that are kept for the next request
CREATE_TOPICS, METADATA = 19, 3


class Process:
    """`ottla serve`, and how much memory it takes."""

    def __init__(self, data: Path) -> None:
        settings = {
            "queued.max.request.bytes": BUDGET_MIB * MIB,
            "socket.request.max.bytes": 40 * MIB,
            "message.max.bytes": 40 * MIB,
            "ottla.decompression.max.bytes": UNPACKED_MIB * MIB,
        }
        words = ["serve", "--data", str(data), "--listen", "127.0.0.1:0", "--http", "off"]
        words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "ottla", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        ready = re.search(r"ready on 127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert ready is not None
        self.address: Any = SimpleNamespace(port=int(ready[1]))

    def connect(self, **options: Any) -> Wire:
        return Wire(self.address, **options)

    def peak_mib(self) -> float:
        """The most it has had since it started."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One for all tests here: each begins with the peak of those before it, and must not raise it much."""
    process = Process(tmp_path_factory.mktemp("memory") / "data")
    with process.connect() as wire:
        wire.ping()
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("t", "x" * 200)
        ]
        wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=5000))
        wire.ask(PRODUCE, 9, produce("t", records(b"first")))
    yield process
    process.stop()


@pytest.fixture
def baseline_mib(broker: Process) -> float:
    """What it takes before the test. The peak starts anew."""
    Path(f"/proc/{broker.process.pid}/clear_refs").write_text("5")
    return broker.peak_mib()


def test_many_large_requests_at_once_stay_within_the_budget(broker: Process, baseline_mib: float) -> None:
    with broker.connect() as good:
        wires = [broker.connect() for _ in range(40)]
        for wire in wires:
            wire.send_bytes(struct.pack(">i", 39 * MIB))
            wire.socket.setblocking(False)
        for _ in range(60):  # 40 times 39 MiB is far more than the budget: most of it is not even read
            for wire in wires:
                with suppress(OSError):
                    wire.socket.send(bytes(MIB))
            good.ping()
        for wire in wires:
            wire.socket.close()
        good.ping()
    assert broker.peak_mib() - baseline_mib < BUDGET_MIB + SLACK_MIB


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_more_than_batches_may_unpack_to(
    name: str, broker: Process, baseline_mib: float
) -> None:
    with broker.connect() as wire:
        response = wire.ask(PRODUCE, 9, produce("t", bomb_batch(name)))
        assert response.responses[0].partition_responses[0].error_code != 0
    # What is unpacked grows by doubling, so it may be there twice for a moment.
    assert broker.peak_mib() - baseline_mib < 2 * UNPACKED_MIB + 4 + SLACK_MIB


def test_a_batch_that_unpacks_to_all_that_is_allowed_is_no_bomb(broker: Process, baseline_mib: float) -> None:
    record = bytes(UNPACKED_MIB * MIB - 100)
    body = bytes(records(record))[61:]
    with broker.connect() as wire:
        response = wire.ask(PRODUCE, 9, produce("t", with_payload(compress(Codec.ZSTD, body), Codec.ZSTD)))
        assert response.responses[0].partition_responses[0].error_code == 0
    assert broker.peak_mib() - baseline_mib < 2 * UNPACKED_MIB + 4 + SLACK_MIB


def test_clients_that_never_read_take_next_to_nothing(broker: Process, baseline_mib: float) -> None:
    asked = b"".join(frame.request_parts(METADATA, 9, 1, "w", MetadataRequest(topics=None))) * 2_000
    wires = [broker.connect(receive_buffer_bytes=4096) for _ in range(10)]
    with broker.connect() as good:
        for wire in wires:
            wire.socket.setblocking(False)
        for _ in range(40):
            for wire in wires:
                with suppress(OSError):
                    wire.socket.send(asked)
            good.ping()
        for wire in wires:
            wire.socket.close()
        good.ping()
    assert broker.peak_mib() - baseline_mib < SLACK_MIB
