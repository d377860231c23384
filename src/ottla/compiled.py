"""Which modules are meant to be compiled (compiled.txt), and which of them are."""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec
from pathlib import Path

REMEDY = (
    "Install a C compiler and Python's headers, then ottla again: "
    "`pip install -v --force-reinstall --no-cache-dir ottla` shows what the compiler says."
)


def meant() -> list[str]:
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def interpreted() -> list[str]:
    """Those that are not compiled: as they were loaded, or as they would be."""
    return [name for name in meant() if not _is_compiled(name)]


def _is_compiled(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)
