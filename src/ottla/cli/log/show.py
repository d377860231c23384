"""`ottla log show`: a picture for a terminal, plain columns for a pipe, JSON for programs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict

from ottla.cli import terminal
from ottla.cli.json_text import to_json
from ottla.cli.log import side_files as log_side_files
from ottla.cli.log.drawing import By
from ottla.cli.log.picture import print_directory, print_log
from ottla.cli.log.plain import print_plain_directory, print_plain_log
from ottla.logtools.listing import DataDir, Partition, SideFile, Target
from ottla.logtools.show.log import Artist
from ottla.logtools.show.pictures import LogPicture
from ottla.storage.fs import FileSystem

_WIDTH_WITHOUT_TERMINAL = 100


def run(fs: FileSystem, target: Target, *, by: By | None, check: bool, as_json: bool) -> bool:
    """Whether everything could be read."""
    if isinstance(target, SideFile):
        log_side_files.dump(fs, target, as_json=as_json)
        return True
    shown = []
    for log in _pictures(fs, target, check=check):
        shown.append(log)
        if as_json:
            sys.stdout.write(to_json(_fields(log)) + "\n")
    if not as_json:
        _print(target, shown, by)
    return not any(log.unreadable for log in shown)


def _pictures(fs: FileSystem, target: DataDir | Partition, *, check: bool) -> Iterator[LogPicture]:
    if isinstance(target, Partition):
        yield Artist(fs, target.path.rpartition("/")[0] or ".", check=check).picture(target)
        return
    artist = Artist(fs, target.path, check=check)
    for name in (*target.partitions, *target.marked):
        log = artist.picture_of(target, name)
        if log is not None:
            yield log


def _print(target: DataDir | Partition, shown: list[LogPicture], by: By | None) -> None:
    width = terminal.width()
    if width is None and by is not None:  # who asks for a picture gets it, also in a file
        width = shutil.get_terminal_size((_WIDTH_WITHOUT_TERMINAL, 0)).columns
    if isinstance(target, DataDir):
        if width is None:
            print_plain_directory(target, shown)
        else:
            print_directory(target, shown, by, width)
    elif width is None:
        print_plain_log(shown[0])
    else:
        print_log(shown[0], by, width)


def _fields(log: LogPicture) -> dict[str, object]:
    fields = asdict(log)
    fields["size"] = log.size
    fields["epochs"] = [{"epoch": epoch, "start_offset": start} for epoch, start in log.epochs]
    fields["producers"] = [entry._asdict() for entry in log.producers]
    return fields
