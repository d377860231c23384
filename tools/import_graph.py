"""Who imports whom in src/ottla: cycles, imports of a floor above, folders with too many files, and a picture.

    python tools/import_graph.py           what is wrong; ends with 1 if anything is
    python tools/import_graph.py --write   draw the floors anew in docs/architecture.md (`make docs`)

All imports count: those at the top of a module, those hidden inside of functions, and those that only type checkers
see. Floors are the layers of pyproject.toml, which import-linter checks too.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
MOST_FILES = 25
GENERATED = {"protocol/messages"}  # a file for each message, and nobody reads them
_FILES = {".py", ".pyi", ".pxd", ".txt", ".typed"}

TOP, HIDDEN, TYPES = "at the top", "in a function", "for type checkers"


class Import(NamedTuple):
    importer: str
    imported: str
    kind: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported} ({self.kind})"


class Upward(NamedTuple):
    found: Import
    contract: str

    def __str__(self) -> str:
        return f"{self.found}, against {self.contract!r}"


# -- reading


def read_modules(src: Path) -> dict[str, Path]:
    """Every module below `src`, by its dotted name; a package is its __init__.py."""
    found = {}
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def read_imports(modules: Mapping[str, Path]) -> list[Import]:
    """Every import of one of the modules by another."""
    found = []
    for name, path in modules.items():
        for target, kind, line in _imports_of(ast.parse(path.read_text()), modules):
            if target != name:
                found.append(Import(name, target, kind, line))
    return found


def _imports_of(tree: ast.Module, modules: Mapping[str, Path]) -> Iterator[tuple[str, str, int]]:
    waiting: list[tuple[ast.AST, str]] = [(tree, TOP)]
    while waiting:
        node, kind = waiting.pop()
        for target in _targets(node, modules):
            yield target, kind, node.lineno  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            kind = HIDDEN
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [(child, TYPES) for child in node.body]
            waiting += [(child, kind) for child in node.orelse]
            continue
        waiting += [(child, kind) for child in ast.iter_child_nodes(node)]


def _targets(node: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    """`from package import name` is an import of the module `package.name`, if there is one."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    elif isinstance(node, ast.ImportFrom) and node.module:
        package = node.module.removeprefix("cython.cimports.")
        found = {f"{package}.{alias.name}" for alias in node.names} & modules.keys()
        yield from sorted(found)
        if package in modules and len(found) < len(node.names):
            yield package


# -- judging


def cycles(imports: Iterable[Import]) -> list[list[str]]:
    """Modules that import one another, directly or through others; each group sorted."""
    edges = defaultdict(set)
    for one in imports:
        edges[one.importer].add(one.imported)
    reached = {name: _reachable(name, edges) for name in list(edges)}
    groups = {
        tuple(sorted(other for other in mine if name in reached.get(other, ())))
        for name, mine in reached.items()
        if name in mine
    }
    return [list(group) for group in sorted(groups)]


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += edges.get(name, ())
    return found


def upward_imports(imports: Iterable[Import], contracts: Iterable[dict[str, object]]) -> list[Upward]:
    """Imports from a floor above, or from another room on the same floor where rooms must not know each other."""
    listed = list(imports)
    found = []
    for contract in contracts:
        floors = _floors(contract)
        for one in listed:
            mine, other = _room(one.importer, floors), _room(one.imported, floors)
            if mine is None or other is None or mine == other:
                continue
            (floor, separate), (other_floor, _) = floors[mine], floors[other]
            if other_floor < floor or (other_floor == floor and separate):
                found.append(Upward(one, str(contract["name"])))
    return found


def _floors(contract: dict[str, object]) -> dict[str, tuple[int, bool]]:
    """Each room: the number of its floor, counted from the top, and whether its neighbours are out of bounds."""
    prefixes = [f"{container}." for container in _texts(contract.get("containers"))] or [""]
    found = {}
    for number, floor in enumerate(_texts(contract["layers"])):
        separate = "|" in floor
        for room in floor.replace("|", ":").split(":"):
            for prefix in prefixes:
                found[prefix + room.strip().strip("()")] = (number, separate)
    return found


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _room(module: str, floors: Mapping[str, object]) -> str | None:
    while module and module not in floors:
        module = module.rpartition(".")[0]
    return module or None


def read_contracts(pyproject: Path) -> list[dict[str, object]]:
    settings = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]
    return [contract for contract in settings["contracts"] if contract["type"] == "layers"]


def full_folders(package: Path) -> dict[str, int]:
    """Folders with more files than a reader takes in at a glance, and how many they have."""
    folders = [package, *(path for path in package.rglob("*") if path.is_dir())]
    counts = {
        folder.relative_to(package).as_posix(): sum(path.suffix in _FILES for path in folder.iterdir())
        for folder in folders
    }
    return {name: count for name, count in counts.items() if count > MOST_FILES and name not in GENERATED}


# -- drawing


def picture(imports: Iterable[Import], package: str = "ottla") -> str:
    """The floors of a package, each above those that it imports from; what follows from other arrows is left out."""
    edges = defaultdict(set)
    for one in imports:
        mine, other = _floor_of(one.importer, package), _floor_of(one.imported, package)
        if mine and other and mine != other:
            edges[mine].add(other)
    lines = ["flowchart TD"]
    for mine in sorted(edges):
        lines += [f"    {mine} --> {other}" for other in sorted(_direct(mine, edges))]
    return "\n".join(lines)


def _floor_of(module: str, package: str) -> str:
    return module.removeprefix(f"{package}.").split(".")[0] if module.startswith(f"{package}.") else ""


def _direct(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    """Those that none of the others leads to."""
    return {
        other
        for other in edges[start]
        if not any(other in _reachable(between, edges) for between in edges[start] - {other})
    }


def with_picture(page: str, drawn: str) -> str:
    """The page with this picture in the place of the one that it has."""
    before, begin, rest = page.partition("```mermaid\n")
    _, end, after = rest.partition("\n```")
    return f"{before}{begin}{drawn}{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"draw the floors anew in {PAGE.name}")
    wanted = parser.parse_args()
    modules = read_modules(ROOT / "src")
    imports = read_imports(modules)
    if wanted.write:
        PAGE.write_text(with_picture(PAGE.read_text(), picture(imports)))
        return 0
    print(
        f"{len(modules)} modules, {len(imports)} imports, {_count(imports, HIDDEN)} of them hidden in functions"
    )
    complaints = [f"cycle: {' '.join(group)}\n{_inside(group, imports)}" for group in cycles(imports)]
    complaints += [
        f"upwards: {one}" for one in upward_imports(imports, read_contracts(ROOT / "pyproject.toml"))
    ]
    complaints += [f"{count} files in {name}" for name, count in full_folders(ROOT / "src/ottla").items()]
    print("\n".join(complaints) or "no cycle, no import upwards, no folder with too many files")
    return 1 if complaints else 0


def _count(imports: Iterable[Import], kind: str) -> int:
    return sum(one.kind == kind for one in imports)


def _inside(group: list[str], imports: Iterable[Import]) -> str:
    return "\n".join(f"    {one}" for one in imports if one.importer in group and one.imported in group)


if __name__ == "__main__":
    sys.exit(main())
