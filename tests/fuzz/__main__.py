"""`make fuzz`: every target on many damaged inputs.

A target is a module `<name>_target.py` with `check(seed, number)`, which makes the input of that number and
raises if something is wrong. Those that feed the kernel run with one that is built for the address sanitizer, in child
processes, because what the sanitizer finds ends the process.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

from Cython.Build import cythonize
from rich.console import Console
from rich.progress import Progress
from setuptools import Distribution, Extension

from tests import kernels

COUNTS = {"kernel": 100_000, "cleaner": 100_000, "verify": 100_000, "server": 10_000_000}
TARGETS = tuple(COUNTS)
UNSANITIZED = ("server",)  # Python from end to end, and several times as fast without
ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".build" / "asan"
SANITIZERS = "-fsanitize=address,undefined"
# Python is built with -fwrapv, which would hide an overflow that the interpreted kernel does not have.
FLAGS = [SANITIZERS, "-fno-sanitize-recover=undefined", "-fno-wrapv", "-fno-omit-frame-pointer", "-g", "-O1"]


def build() -> Path:
    """The directory of a kernel compiled with the sanitizers; what is up to date is not compiled again."""
    extensions = [
        Extension(
            kernels.module_name(file),
            [f"src/ottla/records/{file}.py"],
            extra_compile_args=FLAGS,
            extra_link_args=[SANITIZERS],
        )
        for file in kernels.FILES
    ]
    compiled = cythonize(extensions, build_dir=str(BUILD / "c"), language_level=3, quiet=True)
    command = Distribution({"ext_modules": compiled}).get_command_obj("build_ext")
    command.build_lib, command.build_temp, command.parallel = str(BUILD), str(BUILD / "tmp"), 2
    command.ensure_finalized()
    command.run()
    return BUILD / "ottla" / "records"


def run(target: str, directory: Path, seed: int, first: int, count: int) -> None:
    """Run a target's inputs, on every core a share of them."""
    shares = min(count, os.cpu_count() or 1)
    bounds = [first + count * share // shares for share in range(shares + 1)]
    children = [
        _Child(target, directory, seed, start, end - start) for start, end in itertools.pairwise(bounds)
    ]
    _watch(target, children, count)
    failed = [child for child in children if child.process.wait()]
    for child in failed:
        print(f"FAILED: target {target}, seed {seed}, input {child.reached}. To replay:")
        print(f"  python -m tests.fuzz --target {target} --seed {seed} --first {child.reached} --count 1")
    if failed:
        raise SystemExit(1)


def _watch(target: str, children: list[_Child], count: int) -> None:
    """Show how far they are until all have ended."""
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(target, total=count)
        while any(child.process.poll() is None for child in children):
            progress.update(task, completed=sum(child.reached - child.first for child in children))
            time.sleep(0.5)
        if not any(child.process.returncode for child in children):
            progress.update(task, completed=count)


class _Child:
    """A process that runs some inputs of a target, and notes which one it is at."""

    def __init__(self, target: str, directory: Path, seed: int, first: int, count: int) -> None:
        self.first = first
        self._progress = BUILD / f"{target}.{first}.progress"
        if target in UNSANITIZED:
            directory, env = ROOT / "src" / "ottla" / "records", dict(os.environ)
        else:
            env = _sanitized()
        arguments = [target, str(directory), str(self._progress), str(seed), str(first), str(count)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.child", *arguments], cwd=ROOT, env=env
        )

    @property
    def reached(self) -> int:
        noted = self._progress.read_text() if self._progress.exists() else ""
        return int(noted) if noted else self.first


def _sanitized() -> dict[str, str]:
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    # Python's own allocator would hide a read past the end of a small block. Leaks at exit are Python's.
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument(
        "--count", type=int, help="inputs a target; by default 100,000, of the server 10 million"
    )
    options = parser.parse_args()
    targets = options.target or TARGETS
    os.chdir(ROOT)
    directory = build()
    for target in targets:
        count = options.count or COUNTS[target]
        began = time.monotonic()
        run(target, directory, options.seed, options.first, count)
        minutes = (time.monotonic() - began) / 60
        print(
            f"{target}: {count:,} inputs, seed {options.seed}, {minutes:.1f} minutes, no fault found",
            flush=True,
        )


if __name__ == "__main__":
    main()
