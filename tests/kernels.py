"""Loads the record kernel in a chosen build: compiled, interpreted from source, or built elsewhere."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import ottla.records

SOURCE = Path(ottla.records.__file__).parent
# Each after those that it imports from.
_FIRST = "record_kernel"
_LAST = ("kernel", "coalesce_kernel", "offset_map_kernel", "compact_kernel", "arrow_kernel")
# Without their suffix, as seen from SOURCE: kernels may lie in folders below it.
FILES = sorted(
    (path.relative_to(SOURCE).with_suffix("").as_posix() for path in SOURCE.rglob("*kernel.py")),
    key=lambda file: (
        Path(file).name != _FIRST,
        _LAST.index(Path(file).name) if Path(file).name in _LAST else -1,
        file,
    ),
)


def module_name(file: str) -> str:
    return f"ottla.records.{file.replace('/', '.')}"


def compiled_file(file: str, directory: Path = SOURCE) -> Path | None:
    return next((path for end in EXTENSION_SUFFIXES if (path := directory / f"{file}{end}").exists()), None)


def outdated() -> list[str]:
    """Sources that were edited after they were compiled: what runs is not what they say."""
    package = SOURCE.parent
    shared = next(package.parent.glob("ottla__mypyc*.so"), None)  # all the hot modules in one
    found = []
    for compiled in package.rglob("*.so"):
        source = compiled.with_name(f"{compiled.name.partition('.')[0]}.py")
        library = compiled if source.stem.endswith("kernel") else shared
        if library is None or library.stat().st_mtime < source.stat().st_mtime:
            found.append(str(source.relative_to(package)))
    return sorted(found)


def has_compiler() -> bool:
    command = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(command) is not None


def install(paths: list[Path]) -> dict[str, ModuleType]:
    """Make these files the kernels of this process, by name; nothing may have imported others before."""
    modules = {}
    for file, path in zip(FILES, paths, strict=True):
        full_name = module_name(file)
        spec = importlib.util.spec_from_file_location(full_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full_name] = module
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # an interpreted kernel says that it is slow
            spec.loader.exec_module(module)
        _put_into_its_package(full_name, module)
        modules[Path(file).name] = module
    return modules


def _put_into_its_package(full_name: str, module: ModuleType) -> None:
    package, _, name = full_name.rpartition(".")
    setattr(importlib.import_module(package), name, module)


def install_interpreted() -> dict[str, ModuleType]:
    return install([SOURCE / f"{file}.py" for file in FILES])


def install_compiled(directory: Path = SOURCE) -> dict[str, ModuleType]:
    paths = [compiled_file(file, directory) for file in FILES]
    missing = [file for file, path in zip(FILES, paths, strict=True) if path is None]
    if missing:
        raise FileNotFoundError(f"not compiled: {', '.join(missing)} in {directory}")
    return install([path for path in paths if path])


@cache
def both() -> tuple[ModuleType, ModuleType]:
    """(compiled, interpreted), side by side; the one that this process uses stays in place."""
    current: ModuleType = sys.modules["ottla.records.kernel"]
    if current.COMPILED:
        return current, interpreted_records()["kernel"]
    return _beside(install_compiled)["kernel"], current


@cache
def interpreted_records() -> dict[str, ModuleType]:
    """The kernels of records from their sources, for each other; those that this process uses stay in place."""
    return _beside(install_interpreted)


def _beside(load: Callable[[], dict[str, ModuleType]]) -> dict[str, ModuleType]:
    current = {name: sys.modules[name] for name in map(module_name, FILES)}
    try:
        return load()
    finally:
        for name, module in current.items():
            sys.modules[name] = module
            _put_into_its_package(name, module)


def interpreted(kernel: ModuleType, *needed: ModuleType) -> ModuleType:
    """The same kernel, of any floor, from its source and under another name; so are those that it imports from."""
    compiled = {other.__name__: other for other in needed}
    sys.modules.update({name: interpreted(other) for name, other in compiled.items()})
    try:
        return _from_source(kernel)
    finally:
        sys.modules.update(compiled)


def _from_source(kernel: ModuleType) -> ModuleType:
    path = SOURCE.parents[1] / f"{kernel.__name__.replace('.', '/')}.py"
    spec = importlib.util.spec_from_file_location(f"interpreted_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
