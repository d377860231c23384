"""Part of `make lint`: names and modules that nobody uses, functions over 50 lines, files over 400.

Exceptions are in tools/exceptions.txt, each with its reason. That list only gets shorter: an entry that is not needed
any more fails too, and a length that is listed, in steps of ten lines, may not grow.

What is used is judged by the bare name: as long as one `size` is read somewhere, no other `size` is missed. So nothing
that is in use is reported, but some of what is not in use is overlooked.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MAX_FUNCTION = 50
MAX_FILE = 400
STEP = 10
MESSAGES = "ottla.protocol.messages"  # generated: of these only whole modules are looked at
PLAIN_DECORATORS = {
    "abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "dataclass", "final", "lru_cache",
    "override", "property", "setter", "staticmethod", "total_ordering",
}  # fmt: skip
# Classes with other bases that are not ours are called by those who defined the base.
PLAIN_BASES = {"BrokerError", "Exception", "Generic", "NamedTuple", "Protocol", "ValueError", "object"}
ENUMS = {"Enum", "IntEnum", "IntFlag", "StrEnum"}  # their members may be named by number


class Finding(NamedTuple):
    kind: str  # unused, function, file
    name: str  # dotted
    lines: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" {self.lines}" if self.lines else "")


class Source(NamedTuple):
    module: str
    text: str
    tree: ast.Module


def read_sources(folder: Path, root: Path) -> list[Source]:
    """Every module below a folder; names begin at `root`."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        text = path.read_text()
        found.append(Source(".".join(parts).removesuffix(".__init__"), text, ast.parse(text)))
    return found


# -- lengths


def too_long(sources: Iterable[Source]) -> Iterator[Finding]:
    """Files and functions over their limits; lengths are rounded up to a step."""
    for source in sources:
        if source.module.startswith(MESSAGES):
            continue
        if (lines := source.text.count("\n")) > MAX_FILE:
            yield Finding("file", source.module, _stepped(lines))
        for name, node in _functions(source.tree, source.module):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION:
                yield Finding("function", name, _stepped(lines))


def _stepped(lines: int) -> int:
    return -(-lines // STEP) * STEP


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}.{child.name}", child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(child, f"{prefix}.{child.name}")
        else:
            yield from _functions(child, prefix)


# -- what nobody uses


def unused(sources: list[Source], promised: set[str], in_tests: set[str]) -> Iterator[Finding]:
    """Names that nothing in `sources` uses and that are not promised; of ottla.testing, tests are users too."""
    used = promised.union(*(_uses(source) for source in sources))
    messages = _imported_messages(sources)
    ours = {
        node.name for source in sources for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)
    }
    for source in sources:
        known = used | in_tests if source.module.startswith("ottla.testing") else used
        if source.module.startswith(f"{MESSAGES}."):
            if source.module not in messages:
                yield Finding("unused", source.module)
            continue
        for name in _definitions(source.tree.body, source.module, ours):
            if name.rpartition(".")[2] not in known:
                yield Finding("unused", name)


def _imported_messages(sources: Iterable[Source]) -> set[str]:
    """The modules of messages that something else imports, or takes a class from; the index is the package's own."""
    found = {f"{MESSAGES}.index"}
    for source in sources:
        if source.module.startswith(MESSAGES):
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(MESSAGES):
                found.add(node.module or "")
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def _uses(source: Source) -> set[str]:
    """Every name that is read, imported, or said in a string as `getattr` needs it."""
    found: set[str] = set()
    room: set[int] = set()
    strings: list[tuple[int, str]] = []
    for node in ast.walk(source.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                found.add(name)
            case ast.alias(name=name):
                found.update(name.split("."))
            case ast.MatchClass(kwd_attrs=names):
                found.update(names)
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                room.update(id(part) for part in ast.walk(value))  # to make room for a name is not to use it
            case ast.Constant(value=str(text)) if text.isidentifier():
                strings.append((id(node), text))
    return found | {text for place, text in strings if place not in room}


def _definitions(body: list[ast.stmt], prefix: str, ours: set[str]) -> Iterator[str]:
    for node in body:
        for name in _defined(node):
            if not (name.startswith("__") or name == "_"):
                yield f"{prefix}.{name}"
        if isinstance(node, ast.ClassDef) and not _belongs_to_others(node, ours):
            yield from _definitions(node.body, f"{prefix}.{node.name}", ours)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _definitions(node.body, prefix, ours)


def _defined(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            plain = all(_last_name(decorator) in PLAIN_DECORATORS for decorator in node.decorator_list)
            return [name] if plain else []  # any other decorator may have put it into a table
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []  # several names at once number the columns of a row: each has its place, used or not


def _belongs_to_others(node: ast.ClassDef, ours: set[str]) -> bool:
    """Somebody else's base calls its methods, or it is an enumeration, whose members are also found by number."""
    bases = {_last_name(base) for base in node.bases}
    return bool(bases & ENUMS) or any(base not in PLAIN_BASES and base not in ours for base in bases)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _last_name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


# -- the list


def compare(found: Iterable[Finding], listed: Iterable[str]) -> list[str]:
    """What is wrong: what was found and is not listed, what is listed and was not found."""
    actual, expected = {str(one) for one in found}, set(listed)
    return [f"{one}: not in tools/exceptions.txt" for one in sorted(actual - expected)] + [
        f"{one}: listed in tools/exceptions.txt, but no longer so" for one in sorted(expected - actual)
    ]


def read_list(path: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def promised_names(root: Path) -> set[str]:
    """What users are told of, in examples and in the pages on the library, and what kernels share with each other."""
    texts = [path.read_text() for path in (root / "src").rglob("*.pxd")]
    texts += [(root / f"docs/{name}.md").read_text() for name in ("library", "testing")]
    for page in (root / "docs").glob("*.md"):
        texts += re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    return words(texts)


def words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}


def all_findings() -> list[Finding]:
    src = ROOT / "src"
    sources = read_sources(src / "ottla", src)
    spark = read_sources(src / "pyspark_ottla", src)
    others = [one for name in ("tools", "benchmarks") for one in read_sources(ROOT / name, ROOT)]
    tests = words(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    return [*too_long([*sources, *others]), *unused([*sources, *spark], promised_names(ROOT), tests)]


def main() -> int:
    wrong = compare(all_findings(), read_list(ROOT / "tools/exceptions.txt"))
    for line in wrong:
        print(line)
    if wrong:
        print("Remove what nobody uses, divide what is too long; the list only gets shorter.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
