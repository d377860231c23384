"""The disks that a power cut may leave.

What is certain after a cut is little: the bytes and the size of a file as they were at its last `sync`, and
the names in a directory as they were at its last `sync_dir`. Of everything later:

- each write and each change of size, of each file, may be there or not, in any combination; a write may be
  there in part, and where the size reached the disk but the bytes did not, there are zeros;
- names of one directory are lost from the end, each directory for itself (journals keep their order); a
  rename between two directories is there for both or for neither;
- names and bytes do not wait for each other: a rename may be there before the bytes of the renamed file, and
  the bytes of a synced file are of no use when its name is lost.

That is stricter than ext4 or XFS, which order more than POSIX promises. All combinations are far too many, so
`crash_states` gives the corners at each point of a history (all lost, all kept, one lost, one kept, kept up
to a moment, last write torn) and random samples. A state is named by `<point>.<choice>`; the same history,
seed and name give the same state again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple

from ottla.testing.disk import SimulatedDisk, resize_to, write_at
from ottla.testing.history import (
    DataChange,
    FileImage,
    History,
    Image,
    Link,
    NameChange,
    Operation,
    Rename,
    Resize,
    Sync,
    SyncDir,
    Unlink,
    Write,
    apply_name_change,
    dirs_of,
)

SECTOR_BYTES = 512


class Torn(NamedTuple):
    """The parts of a write that reached the disk, and whether the file's size did."""

    ranges: tuple[tuple[int, int], ...]
    size_kept: bool


@dataclass(frozen=True)
class Choice:
    """What survives of the pending changes: data changes by number, and how many names per directory."""

    data: dict[int, Torn | None]  # None: all of it
    names: dict[int, int]


@dataclass(frozen=True)
class CrashState:
    name: str
    point: int  # this many operations of the history were done
    label: Hashable  # of the last mark before the point
    choice: Choice
    image: Image

    def disk(self, now_ms: Callable[[], int] = lambda: 0) -> SimulatedDisk:
        return SimulatedDisk(self.image, now_ms)

    def describe(self) -> str:
        kept = [
            f"{number}" if torn is None else f"{number}{torn.ranges}"
            for number, torn in self.choice.data.items()
        ]
        return (
            f"crash {self.name}: after {self.point} operations, promised {self.label!r}, data kept: "
            f"{', '.join(kept) or 'none'}; names kept per directory: {self.choice.names}"
        )


class Platter:
    """What is certainly on disk at one point of a history, and what is pending."""

    def __init__(self, start: Image) -> None:
        self.files = dict(start.files)
        self.dirs = {number: dict(entries) for number, entries in start.dirs.items()}
        self.data: dict[int, DataChange] = {}  # by number of the operation
        self.names: list[NameChange] = []
        self.label: Hashable = None
        self.point = 0

    def advance(self, operation: Operation) -> None:
        if isinstance(operation, (Write, Resize)):
            self.data[self.point] = operation
        elif isinstance(operation, Sync):
            self._sync(operation.file)
        elif isinstance(operation, (Link, Unlink, Rename)):
            if isinstance(operation, Link):
                self._make(operation)
            self.names.append(operation)
        elif isinstance(operation, SyncDir):
            self._sync_dir(operation.directory)
        else:
            self.label = operation.label
        self.point += 1

    def _make(self, link: Link) -> None:
        """The thing itself; whether anybody can see it is a matter of its name."""
        if link.is_dir:
            self.dirs[link.number] = {}
        else:
            self.files[link.number] = FileImage(b"", link.at_ms)

    def _sync(self, number: int) -> None:
        mine = {key: change for key, change in self.data.items() if change.file == number}
        if mine:
            self.files[number] = _apply(self.files.get(number), [(change, None) for change in mine.values()])
            self.data = {key: change for key, change in self.data.items() if key not in mine}

    def _sync_dir(self, number: int) -> None:
        """All earlier changes of this directory are safe, and with a rename those before it in the other."""
        synced = {number}
        safe: list[NameChange] = []
        pending: list[NameChange] = []
        for change in reversed(self.names):
            if synced.isdisjoint(dirs_of(change)):
                pending.append(change)
            else:
                synced.update(dirs_of(change))
                safe.append(change)
        for change in reversed(safe):
            apply_name_change(self.dirs, change)
        self.names = pending[::-1]

    def names_pending(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for change in self.names:
            for directory in dirs_of(change):
                counts[directory] = counts.get(directory, 0) + 1
        return counts

    def image(self, choice: Choice) -> Image:
        """The disk when exactly the chosen changes survive."""
        kept: dict[int, list[tuple[DataChange, Torn | None]]] = {}
        for number, torn in choice.data.items():
            change = self.data[number]
            kept.setdefault(change.file, []).append((change, torn))
        files = dict(self.files)
        for file, changes in kept.items():
            files[file] = _apply(self.files.get(file), changes)
        dirs = {number: dict(entries) for number, entries in self.dirs.items()}
        room = dict(choice.names)
        cut: set[int] = set()
        for name_change in self.names:
            touched = dirs_of(name_change)
            if cut.isdisjoint(touched) and all(room.get(directory, 0) > 0 for directory in touched):
                apply_name_change(dirs, name_change)
                for directory in touched:
                    room[directory] -= 1
            else:
                cut.update(touched)
        return Image(files, dirs)


def _apply(file: FileImage | None, changes: Iterable[tuple[DataChange, Torn | None]]) -> FileImage:
    content = bytearray(file.data if file else b"")
    modified_ms = file.modified_ms if file else 0
    for change, torn in changes:
        modified_ms = change.at_ms
        if isinstance(change, Resize):
            resize_to(content, change.size)
        elif torn is None:
            write_at(content, change.data, change.position)
        else:
            for start, end in torn.ranges:
                write_at(content, change.data[start:end], change.position + start)
            if torn.size_kept:
                resize_to(content, max(len(content), change.position + len(change.data)))
    return FileImage(bytes(content), modified_ms)


def crash_states(
    history: History, *, seed: int = 0, samples: int = 8, points: Iterable[int] | None = None
) -> Iterator[CrashState]:
    """Distinct states at the given points (by default all), with `samples` random ones for each point.

    Two states are the same only if their marks are, too: what a disk must hold depends on what was promised.
    """
    wanted = None if points is None else set(points)
    seen: set[tuple[int, Hashable]] = set()
    for platter in _platters(history):
        if wanted is not None and platter.point not in wanted:
            continue
        for number, choice in enumerate(_choices(platter, seed, samples)):
            image = platter.image(choice)
            key = (image.fingerprint(), platter.label)
            if key not in seen:
                seen.add(key)
                yield CrashState(f"{platter.point}.{number}", platter.point, platter.label, choice, image)


def killed_states(history: History, points: Iterable[int] | None = None) -> Iterator[CrashState]:
    """The disks that `kill -9` leaves: all that was done is there, of the last write perhaps a part."""
    wanted = None if points is None else set(points)
    for platter in _platters(history):
        if wanted is not None and platter.point not in wanted:
            continue
        everything = Choice(dict.fromkeys(platter.data), platter.names_pending())
        choices = [everything]
        last = platter.data.get(platter.point - 1)
        if isinstance(last, Write) and len(last.data) > 1:
            half = Torn(((0, len(last.data) // 2),), size_kept=False)
            choices.append(Choice({**everything.data, platter.point - 1: half}, everything.names))
        for number, choice in enumerate(choices):
            image = platter.image(choice)
            yield CrashState(f"{platter.point}.{number}", platter.point, platter.label, choice, image)


def crash_state(history: History, name: str, *, seed: int = 0, samples: int = 8) -> CrashState:
    """The one state of that name, for a replay."""
    point = int(name.split(".")[0])
    return next(
        state
        for state in crash_states(history, seed=seed, samples=samples, points=[point])
        if state.name == name
    )


def random_crash(history: History, rng: Random) -> Image:
    """Cut the power now: one random state at the end of the history."""
    *_, last = _platters(history)
    return last.image(_random_choice(last, rng))


def _platters(history: History) -> Iterator[Platter]:
    """The disk before the first operation and after each one. The same object is moved on."""
    platter = Platter(history.start)
    yield platter
    for operation in history.operations:
        platter.advance(operation)
        yield platter


def _choices(platter: Platter, seed: int, samples: int) -> Iterator[Choice]:
    everything = Choice(dict.fromkeys(platter.data), platter.names_pending())
    yield everything
    yield Choice({}, {})
    yield Choice(everything.data, {})
    yield Choice({}, everything.names)
    yield from _single_choices(everything)
    for last in platter.data:
        yield Choice({number: None for number in everything.data if number <= last}, everything.names)
    for number in _last_writes(platter.data):
        for torn in _corner_tears(platter.data[number]):
            yield Choice({**everything.data, number: torn}, everything.names)
            yield Choice({number: torn}, everything.names)
    rng = Random(f"{seed}/{platter.point}")
    for _ in range(samples if platter.data or platter.names else 0):
        yield _random_choice(platter, rng)


def _single_choices(everything: Choice) -> Iterator[Choice]:
    """One data change lost, or only that kept, and each prefix of the names of one directory."""
    for number in everything.data:
        yield Choice({key: None for key in everything.data if key != number}, everything.names)
        yield Choice({number: None}, everything.names)
    for directory, count in everything.names.items():
        for kept in range(count):
            yield Choice(everything.data, {**everything.names, directory: kept})
            yield Choice({}, {**everything.names, directory: kept})


def _last_writes(data: dict[int, DataChange]) -> list[int]:
    """The last pending write of each file."""
    last = {change.file: number for number, change in data.items() if isinstance(change, Write)}
    return list(last.values())


def _corner_tears(change: DataChange) -> Iterator[Torn]:
    if not isinstance(change, Write):
        return
    size = len(change.data)
    first_sector_end = -change.position % SECTOR_BYTES
    cuts = {1, size // 2, size - 1, *range(first_sector_end, size, SECTOR_BYTES)}
    for cut in sorted(cuts - {0, size}):
        yield Torn(((0, cut),), size_kept=False)
        yield Torn(((cut, size),), size_kept=True)
    yield Torn((), size_kept=True)


def _random_choice(platter: Platter, rng: Random) -> Choice:
    keep_share = rng.choice((0.1, 0.5, 0.9, 1.0))
    data: dict[int, Torn | None] = {}
    for number, change in platter.data.items():
        if rng.random() < keep_share:
            torn = isinstance(change, Write) and rng.random() < 0.25
            data[number] = _random_tear(change, rng) if torn else None
    names = {
        directory: count if rng.random() < 0.5 else rng.randint(0, count)
        for directory, count in platter.names_pending().items()
    }
    return Choice(data, names)


def _random_tear(change: DataChange, rng: Random) -> Torn | None:
    if not isinstance(change, Write):
        return None
    size = len(change.data)
    if rng.random() < 0.5:
        return Torn(((0, rng.randint(0, size)),), size_kept=rng.random() < 0.5)
    edges = [0, *range(-change.position % SECTOR_BYTES, size, SECTOR_BYTES), size]
    sectors = pairwise(edges)
    return Torn(tuple(sector for sector in sectors if rng.random() < 0.5), size_kept=rng.random() < 0.5)


__all__ = ["Choice", "CrashState", "Torn", "crash_state", "crash_states", "killed_states", "random_crash"]
