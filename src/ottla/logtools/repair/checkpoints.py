"""Mends the offset checkpoints of a data directory: keeps every entry that can be true.

An entry that cannot be read goes: that only costs time, as a broker reads such a log in full when it starts. One past
its log's end becomes that end, after the loss was put on record. One whose partition is not there stays: it is the
last that is known of a directory that was lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.logtools.listing import OFFSET_CHECKPOINTS, read_if_there
from ottla.logtools.repair.losses import note_short
from ottla.logtools.repair.plan import Step
from ottla.logtools.side_files import BadSideFileError, parse_offsets
from ottla.logtools.writing import copy_aside
from ottla.names import TopicPartition, is_topic_name
from ottla.storage import checkpoint, layout
from ottla.storage.fs import FileSystem
from ottla.storage.losses import Loss

Offsets = dict[TopicPartition, int]
_TELL_THE_END = (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS)


def plan_checkpoints(
    fs: FileSystem, data_dir: str, end_offsets: Mapping[TopicPartition, int]
) -> list[tuple[Step, Offsets]]:
    """For each checkpoint that must change: what is done, and what it will hold. Logs whose end is not known are not
    among `end_offsets`."""
    planned = []
    for name in OFFSET_CHECKPOINTS:
        path = f"{data_dir}/{name}"
        data = read_if_there(fs, path)
        if data is None:
            continue
        found = _salvage(data)
        kept = {
            partition: min(offset, end_offsets.get(partition, offset))
            for partition, offset in found.items()
            if offset >= 0
        }
        if kept != found or not _is_well_formed(data):
            meaning = f"write it anew with the {len(kept)} entries that can be true"
            planned.append((Step("rebuild", path, meaning), kept))
    return planned


def apply_checkpoints(
    fs: FileSystem,
    planned: list[tuple[Step, Offsets]],
    end_offsets: Mapping[TopicPartition, int],
    now_ms: int,
    aside: str | None = None,
) -> list[tuple[str, Loss]]:
    """Write them; the losses that were put on record for it, with their directories."""
    noted = []
    for step, offsets in planned:
        data_dir, _, name = step.file.rpartition("/")
        if name in _TELL_THE_END:
            for partition, offset in _salvage(read_if_there(fs, step.file) or b"").items():
                if offset > end_offsets.get(partition, offset):
                    directory, end = f"{data_dir}/{partition}", end_offsets[partition]
                    noted += [(directory, loss) for loss in note_short(fs, directory, end, offset, now_ms)]
        copy_aside(fs, step.file, aside)
        checkpoint.write_offsets(fs, step.file, offsets)
    return noted


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
