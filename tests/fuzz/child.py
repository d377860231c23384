"""The process that a fuzz run watches: it runs one target on many inputs and notes which one it is at."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from tests import kernels


def main(target: str, kernel_directory: str, progress_file: str, seed: int, first: int, count: int) -> None:
    kernels.install_compiled(Path(kernel_directory))
    check = importlib.import_module(f"tests.fuzz.{target}_target").check
    progress = os.open(progress_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in range(first, first + count):
        os.pwrite(progress, b"%020d" % number, 0)
        check(seed, number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
