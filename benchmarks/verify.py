"""`ottla log verify` on a healthy segment, beside reading it and taking the CRC-32C of its bytes in one go."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from crc32c import crc32c

from benchmarks.data import LARGE, PARTITION, SMALL, Kind, write_log
from benchmarks.measure import Bench, Figure, alternate, clock, mib, warm
from ottla.storage import layout

_READ_BYTES = 4 << 20


def run(bench: Bench) -> list[Figure]:
    return [_measure(bench, LARGE, 5), _measure(bench, SMALL, 30)]


def _measure(bench: Bench, kind: Kind, limit: int) -> Figure:
    data_dir = bench.directory("verify")
    write_log(data_dir, kind, bench.scale.volume_bytes)
    warm(data_dir)
    partition = data_dir / str(PARTITION)
    segment = partition / layout.segment_file(0, layout.LOG)
    ours, bare = alternate(
        bench.scale.rounds,
        lambda: clock(lambda: verify(partition)),
        lambda: clock(lambda: _checksum(segment)),
    )
    shutil.rmtree(data_dir)
    value = ours.seconds / bare.seconds
    what = f"ottla log verify, {mib(bench.scale.volume_bytes)} of {kind.name}"
    beside = f"read and CRC-32C: {bare.seconds:.3f} s"
    return Figure(
        what, f"{ours.seconds:.3f} s", beside, value, "times its time", f"<= {limit}", value <= limit
    )


def verify(path: Path) -> None:
    """The command itself, start of the interpreter and all; anything but a healthy log is an error."""
    subprocess.run(
        [sys.executable, "-m", "ottla", "log", "verify", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def _checksum(path: Path) -> None:
    """In pieces that are read into one buffer: a fresh gigabyte of memory would cost more than the rest."""
    buffer = memoryview(bytearray(_READ_BYTES))
    crc = 0
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            crc = crc32c(buffer[:size], crc)
