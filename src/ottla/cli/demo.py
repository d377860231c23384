"""`make demo`: the log on disk, shown in a minute: write, look at the files, read, kill a writer, recover."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ottla.config import BrokerConfig, LogConfig
from ottla.records.builder import NewRecord, build_batch
from ottla.runtime import SystemRuntime
from ottla.storage.fs import RealFileSystem
from ottla.storage.layout import TopicPartition
from ottla.storage.log import Log
from ottla.storage.log_manager import LogManager

RECORDS = 1_000_000
BATCH = 1_000
ORDERS = TopicPartition("orders", 0)
_SEGMENT_BYTES = 32 << 20


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as data_dir:
        _write(data_dir)
        _say("The files, as Apache Kafka has them")
        _ottla("log", "show", f"{data_dir}/{ORDERS}")
        _say("A few records")
        _ottla("log", "dump", f"{data_dir}/{ORDERS}", "--records", "--offset", "500000:500003")
        acknowledged = _kill_a_writer(data_dir)
        _recover(data_dir, acknowledged)
        _say("Is all of it healthy?")
        _ottla("log", "verify", data_dir)


def _write(data_dir: str) -> None:
    _say(f"Writing {RECORDS:,} records to partition {ORDERS}")
    runtime = SystemRuntime()
    manager = _open(data_dir, runtime)
    log = manager.get_or_create(ORDERS)
    now_ms = runtime.now_ms()
    batches = [_batch(number, now_ms - RECORDS // BATCH + number) for number in range(RECORDS // BATCH)]
    began = time.perf_counter()
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=0)
    log.flush()
    seconds = time.perf_counter() - began
    mib = log.size_bytes / 2**20
    print(
        f"appended and flushed {log.end_offset:,} records, {mib:.0f} MiB in {len(log.segments)} segments, "
        f"every record checked: {log.end_offset / seconds:,.0f} records/s, {mib / seconds:,.0f} MiB/s"
    )
    log.raise_high_watermark(log.end_offset)
    manager.close()
    runtime.close()


def _kill_a_writer(data_dir: str) -> int:
    """Start a process that appends and reports each flushed offset; kill it in the middle, and tear its last batch."""
    _say("Killing a writer in the middle of its work (kill -9)")
    command = [sys.executable, "-m", "ottla.cli.demo", "--writer", data_dir]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    acknowledged = 0
    for _ in range(50):
        acknowledged = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    for line in writer.stdout.read().splitlines():
        acknowledged = int(line) if line.isdigit() else acknowledged
    writer.wait()
    print(f"it had acknowledged every record below offset {acknowledged:,}")
    last = max(Path(data_dir, str(ORDERS)).glob("*.log"))
    with last.open("ab") as file:
        file.write(bytes(_batch(0, 0))[:5_000])
    print(f"and to make it worse, half a batch now stands at the end of {last.name}, as after a power cut")
    return acknowledged


def _write_until_killed(data_dir: str) -> None:
    runtime = SystemRuntime()
    log = _open(data_dir, runtime).get_or_create(ORDERS)
    number = log.end_offset // BATCH
    while True:
        log.append_as_leader(_batch(number, runtime.now_ms()), leader_epoch=1)
        log.flush()
        print(log.end_offset, flush=True)
        number += 1


def _recover(data_dir: str, acknowledged: int) -> None:
    _say("Opening it again")
    runtime = SystemRuntime()
    began = time.perf_counter()
    manager = _open(data_dir, runtime)
    milliseconds = (time.perf_counter() - began) * 1000
    log = manager.get(ORDERS)
    assert log is not None
    print(
        f"recovered in {milliseconds:.0f} ms; the log holds offsets {log.start_offset:,} to {log.end_offset:,}"
    )
    kept = "everything acknowledged is there" if log.end_offset >= acknowledged else "RECORDS WERE LOST"
    print(
        f"{kept} ({log.end_offset - acknowledged:,} more were written before the kill); the torn batch is gone"
    )
    _show_epochs(log)
    manager.close()
    runtime.close()
    if log.end_offset < acknowledged:
        raise SystemExit(1)


def _show_epochs(log: Log) -> None:
    text = ", ".join(f"epoch {epoch} from offset {start:,}" for epoch, start in log.epochs.entries)
    print(f"leader epochs: {text}")


def _open(data_dir: str, runtime: SystemRuntime) -> LogManager:
    config = BrokerConfig(log_dirs=(data_dir,))
    manager = LogManager(RealFileSystem(), runtime, config, defaults=LogConfig(segment_bytes=_SEGMENT_BYTES))
    manager.open()
    return manager


def _batch(number: int, timestamp: int) -> bytearray:
    first = number * BATCH
    records = [
        NewRecord(timestamp, b"order-%d" % i, b'{"id": %d, "item": "book", "price": %d}' % (i, i % 90), [])
        for i in range(first, first + BATCH)
    ]
    return build_batch(records)


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _ottla(*arguments: str) -> None:
    print(f"$ ottla {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "ottla", *arguments], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--writer"]:
        _write_until_killed(sys.argv[2])
    else:
        main()
