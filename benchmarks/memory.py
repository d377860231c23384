"""Peak memory of a process that appends, recovers and verifies a log far larger than its limit.

Each step runs in a process of its own, which reports its peak: python -m benchmarks.memory STEP DIRECTORY BYTES
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.data import LARGE, managed, write_log
from benchmarks.measure import Bench, Figure, mib
from ottla.logtools import listing
from ottla.logtools.findings import DEFECT
from ottla.logtools.verify.data_dir import verify
from ottla.storage import layout
from ottla.storage.fs import RealFileSystem

_LIMIT_MIB = 200
_ROOT = Path(__file__).parents[1]
_STATUS = Path("/proc/self/status")


def run(bench: Bench) -> list[Figure]:
    data_dir = bench.directory("memory")
    size_bytes = bench.scale.memory_bytes
    figures = []
    for step in STEPS:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", step, str(data_dir), str(size_bytes)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=_ROOT,
        )
        peak_mib = int(done.stdout) / 2**20
        what = f"peak memory: {step} {mib(size_bytes)}"
        figures.append(
            Figure(what, f"{peak_mib:.0f} MiB", "", peak_mib, "MiB", f"< {_LIMIT_MIB}", peak_mib < _LIMIT_MIB)
        )
    shutil.rmtree(data_dir)
    return figures


def _append(data_dir: Path, size_bytes: int) -> None:
    write_log(data_dir, LARGE, size_bytes)


def _recover(data_dir: Path, _size_bytes: int) -> None:
    for name in (layout.CLEAN_SHUTDOWN, layout.RECOVERY_POINTS):
        (data_dir / name).unlink()
    with managed(data_dir) as manager:
        manager.open()
        manager.close()


def _verify(data_dir: Path, _size_bytes: int) -> None:
    fs = RealFileSystem()
    defects = [found for found in verify(fs, listing.resolve(fs, str(data_dir))) if found.level == DEFECT]
    if defects:
        raise RuntimeError(f"the log that was written is not healthy: {defects[0]}")


STEPS = {"append": _append, "recover": _recover, "verify": _verify}


def peak_bytes() -> int:
    """The most that was ever resident. Pages of a mapped file count; the page cache as such does not."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    STEPS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(peak_bytes())
