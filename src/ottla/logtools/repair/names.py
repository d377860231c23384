"""Gives the files of a log the names that their batches call for.

Nothing is copied or cut: a stray segment is set aside whole, by a rename that brokers do not follow, and a misnamed
one gets its own name back. Where two have each other's name, one waits under `.moving`; a repair that was interrupted
there is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.logtools.listing import Partition
from ottla.logtools.verify.strangers import MOVING, RENAME, SET_ASIDE, Stranger
from ottla.storage import layout
from ottla.storage.fs import FileSystem

_BESIDE = (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX, layout.SNAPSHOT)


def moving_files(partition: Partition) -> list[str]:
    """Names of files that an interrupted repair left on their way."""
    return [name for name in partition.leftovers if name.endswith(MOVING)]


def put_in_place(fs: FileSystem, partition: Partition, strangers: Iterable[Stranger]) -> None:
    """Set strays aside, then rename what has a wrong name."""
    directory = partition.path
    renamed = [stranger for stranger in strangers if stranger.verdict == RENAME]
    wanted = {stranger.base_offset for stranger in renamed}
    for stranger in strangers:
        if stranger.verdict == SET_ASIDE:
            base_offset = stranger.segment.base_offset
            # Index files whose name another log file takes over stay, for that file.
            suffixes = (layout.LOG,) if base_offset in wanted else layout.SEGMENT_SUFFIXES
            for suffix in suffixes:
                _set_aside(fs, f"{directory}/{layout.segment_file(base_offset, suffix)}")
    fs.sync_dir(directory)
    moves = _moves(fs, directory, renamed)
    # Another name for a while, where the right one is still taken by a file that moves as well.
    waiting = [(source, target) for source, target in moves if fs.exists(target)]
    for source, target in waiting:
        fs.rename(source, target + MOVING)
    for source, target in moves:
        if (source, target) not in waiting:
            fs.rename(source, target)
    fs.sync_dir(directory)
    on_their_way = [*moving_files(partition), *(target.rpartition("/")[2] + MOVING for _, target in waiting)]
    for name in on_their_way:
        _arrive(fs, f"{directory}/{name}")
    fs.sync_dir(directory)


def _moves(fs: FileSystem, directory: str, renamed: list[Stranger]) -> list[tuple[str, str]]:
    """Old and new path of every file that moves."""
    moves: list[tuple[str, str]] = []
    wanted = {stranger.base_offset for stranger in renamed}
    for stranger in renamed:
        for suffix in (layout.LOG, *(_BESIDE if stranger.with_index else ())):
            source = f"{directory}/{layout.segment_file(stranger.segment.base_offset, suffix)}"
            target = f"{directory}/{layout.segment_file(stranger.base_offset, suffix)}"
            if suffix == layout.SNAPSHOT and (stranger.segment.base_offset in wanted or fs.exists(target)):
                continue  # it tells of what lies before its offset, and may be right where the log is wrong
            if fs.exists(source):
                moves.append((source, target))
    sources = {source for source, _ in moves}
    for _, target in moves:
        if target not in sources:
            _set_aside(fs, target)  # an index of another file, or one that fits no more
    return moves


def _arrive(fs: FileSystem, path: str) -> None:
    target = path.removesuffix(MOVING)
    if fs.exists(target):
        _set_aside(fs, path)
    else:
        fs.rename(path, target)


def _set_aside(fs: FileSystem, path: str) -> None:
    if fs.exists(path):
        fs.rename(path, free_name(fs, path))


def free_name(fs: FileSystem, path: str) -> str:
    """Where a file can be set aside without taking the place of another that was."""
    name, number = path + layout.QUARANTINE, 1
    while fs.exists(name):
        number += 1
        name = f"{path}.{number}{layout.QUARANTINE}"
    return name
