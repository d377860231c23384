"""Mends the offset checkpoints of a data directory: keeps every entry that can be true.

An entry that cannot be read, or names a partition that is not there, goes. One past its log's end becomes that end.
What is missing afterwards only costs time: a broker reads such a log in full when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.logtools.repair import Step
from ottla.logtools.side_files import BadSideFileError, parse_offsets
from ottla.logtools.source import OFFSET_CHECKPOINTS, read_if_there
from ottla.logtools.writing import set_file_aside
from ottla.storage import checkpoint
from ottla.storage.fs import FileSystem
from ottla.storage.layout import TopicPartition, is_topic_name

Offsets = dict[TopicPartition, int]


def plan_checkpoints(
    fs: FileSystem, data_dir: str, end_offsets: Mapping[TopicPartition, int]
) -> list[tuple[Step, Offsets]]:
    """For each checkpoint that must change: what is done, and what it will hold."""
    planned = []
    for name in OFFSET_CHECKPOINTS:
        path = f"{data_dir}/{name}"
        data = read_if_there(fs, path)
        if data is None:
            continue
        found = _salvage(data)
        kept = {
            partition: min(offset, end_offsets[partition])
            for partition, offset in found.items()
            if partition in end_offsets and offset >= 0
        }
        if kept != found or not _is_well_formed(data):
            meaning = f"write it anew with the {len(kept)} entries that can be true"
            planned.append((Step("rebuild", path, meaning), kept))
    return planned


def apply_checkpoints(fs: FileSystem, planned: list[tuple[Step, Offsets]]) -> None:
    for step, offsets in planned:
        set_file_aside(fs, step.file)
        checkpoint.write_offsets(fs, step.file, offsets)


def _is_well_formed(data: bytes) -> bool:
    try:
        parse_offsets(data)
    except BadSideFileError:
        return False
    return True


def _salvage(data: bytes) -> Offsets:
    """Every line that reads like an entry; of two for a partition, neither can be believed."""
    found: Offsets = {}
    doubled: set[TopicPartition] = set()
    for line in data.decode(errors="replace").split("\n")[2:]:
        fields = line.split(" ")
        numbers = [field for field in fields[1:] if field.isascii() and field.isdigit()]
        if len(fields) == 3 and len(numbers) == 2 and is_topic_name(fields[0]):
            partition = TopicPartition(fields[0], int(fields[1]))
            if partition in found:
                doubled.add(partition)
            found[partition] = int(fields[2])
    return {partition: offset for partition, offset in found.items() if partition not in doubled}
