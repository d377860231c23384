"""`make fuzz`: every target on many damaged inputs, with the kernel built for the address sanitizer.

A target is a module `<name>_target.py` with `check(seed, number)`, which makes the input of that number and
raises if something is wrong. It runs in a child process, because what the sanitizer finds ends the process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension

from tests import kernels

TARGETS = ("kernel", "cleaner", "verify")
ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".build" / "asan"
SANITIZERS = "-fsanitize=address,undefined"
# Python is built with -fwrapv, which would hide an overflow that the interpreted kernel does not have.
FLAGS = [SANITIZERS, "-fno-sanitize-recover=undefined", "-fno-wrapv", "-fno-omit-frame-pointer", "-g", "-O1"]


def build() -> Path:
    """The directory of a kernel compiled with the sanitizers; what is up to date is not compiled again."""
    extensions = [
        Extension(
            f"ottla.records.{name}",
            [f"src/ottla/records/{name}.py"],
            extra_compile_args=FLAGS,
            extra_link_args=[SANITIZERS],
        )
        for name in kernels.FILES
    ]
    compiled = cythonize(extensions, language_level=3, quiet=True)
    command = Distribution({"ext_modules": compiled}).get_command_obj("build_ext")
    command.build_lib, command.build_temp, command.parallel = str(BUILD), str(BUILD / "tmp"), 2
    command.ensure_finalized()
    command.run()
    return BUILD / "ottla" / "records"


def run(target: str, directory: Path, seed: int, first: int, count: int) -> None:
    progress = BUILD / f"{target}.progress"
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    # Python's own allocator would hide a read past the end of a small block. Leaks at exit are Python's.
    env = os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    arguments = [target, directory, progress, str(seed), str(first), str(count)]
    child = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.child", *arguments], cwd=ROOT, env=env, check=False
    )
    if child.returncode:
        number = int(progress.read_text()) if progress.exists() else first
        print(f"FAILED: target {target}, seed {seed}, input {number}. To replay:")
        print(f"  python -m tests.fuzz --target {target} --seed {seed} --first {number} --count 1")
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, default=100_000, help="inputs a target")
    options = parser.parse_args()
    targets = options.target or TARGETS
    os.chdir(ROOT)
    directory = build()
    for target in targets:
        run(target, directory, options.seed, options.first, options.count)
    print(f"{options.count} inputs for each of {', '.join(targets)}; seed {options.seed}; no fault found")


if __name__ == "__main__":
    main()
