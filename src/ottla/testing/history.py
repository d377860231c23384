"""What a simulated disk remembers: an image of it at rest, and every change made to it since.

Files and directories have numbers, as inodes do: a rename moves a name and leaves the file what it was, and a
directory that is renamed takes its entries with it. Directory number 0 is the root.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

ROOT = 0


class FileImage(NamedTuple):
    data: bytes
    modified_ms: int


@dataclass(frozen=True)
class Image:
    """A disk at rest: the contents of its files and the names in its directories."""

    files: dict[int, FileImage] = field(default_factory=dict)
    dirs: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def walk(self) -> Iterator[tuple[str, FileImage | None]]:
        """Every path that can be reached, with its file, or with None for a directory."""
        stack = [("", ROOT)]
        while stack:
            prefix, number = stack.pop()
            for name, child in sorted(self.dirs[number].items()):
                path = f"{prefix}/{name}"
                if child in self.dirs:
                    yield path, None
                    stack.append((path, child))
                else:
                    yield path, self.files[child]

    def contents(self) -> dict[str, bytes | None]:
        """Path to bytes, None for a directory."""
        return {path: file and file.data for path, file in self.walk()}

    def fingerprint(self) -> int:
        """Equal for disks that hold the same bytes under the same names."""
        return hash(frozenset(self.contents().items()))


class Write(NamedTuple):
    file: int
    position: int
    data: bytes
    at_ms: int


class Resize(NamedTuple):
    file: int
    size: int
    at_ms: int


class Sync(NamedTuple):
    file: int


class Link(NamedTuple):
    """A new file or directory gets its name."""

    directory: int
    name: str
    number: int
    is_dir: bool
    at_ms: int


class Unlink(NamedTuple):
    directory: int
    name: str


class Rename(NamedTuple):
    source_dir: int
    source: str
    target_dir: int
    target: str


class SyncDir(NamedTuple):
    directory: int


class Mark(NamedTuple):
    """A note by a test on what is promised from here on, such as 'flushed up to offset 17'."""

    label: Hashable


DataChange = Write | Resize
NameChange = Link | Unlink | Rename
Operation = DataChange | NameChange | Sync | SyncDir | Mark


@dataclass
class History:
    """Operations in the order in which they were done, from an image that is safely on disk."""

    start: Image
    operations: list[Operation] = field(default_factory=list)

    def mark(self, label: Hashable) -> None:
        self.operations.append(Mark(label))


def dirs_of(change: NameChange) -> tuple[int, ...]:
    """The directories that a change touches."""
    if isinstance(change, Rename):
        return (
            (change.source_dir,)
            if change.source_dir == change.target_dir
            else (change.source_dir, change.target_dir)
        )
    return (change.directory,)


def apply_name_change(dirs: dict[int, dict[str, int]], change: NameChange) -> None:
    if isinstance(change, Link):
        dirs[change.directory][change.name] = change.number
    elif isinstance(change, Unlink):
        del dirs[change.directory][change.name]
    else:
        dirs[change.target_dir][change.target] = dirs[change.source_dir].pop(change.source)
