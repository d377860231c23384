"""`ottla log dump`: writes batches or records out, as text, JSON or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from ottla.cli.json_text import to_json
from ottla.cli.log import side_files as log_side_files
from ottla.cli.log.output import RecordFormat, batch_line, found_fields, warn
from ottla.cli.log.progress import progress_bar
from ottla.cli.options import Encoding
from ottla.cli.terminal import is_terminal
from ottla.escapes import visible, visible_json
from ottla.internal_topics.decoding import decoder_for
from ottla.logtools.dump import FoundDamage, Query, dump_batches, dump_records
from ottla.logtools.listing import DataDir, Partition, SideFile, Target, partitions_of
from ottla.storage import layout
from ottla.storage.fs import FileSystem


@dataclass(frozen=True, slots=True)
class Output:
    """What the user wants to see."""

    records: bool
    as_json: bool
    parquet: str | None
    encoding: Encoding
    raw: bool

    def writer(self) -> Callable[[str], object]:
        """Takes text to stdout: as it is, or for a terminal with escapes for what it would obey."""
        write = sys.stdout.write
        if self.raw or not is_terminal():
            return write
        show = visible_json if self.as_json else visible
        return lambda text: write(show(text))


def run(fs: FileSystem, target: Target, query: Query, output: Output) -> bool:
    """Whether everything could be read."""
    if isinstance(target, SideFile):
        log_side_files.dump(fs, target, as_json=output.as_json)
        return True
    whole = True
    with progress_bar(fs, target, "dump") as on_progress:
        if output.parquet is not None:
            from ottla.cli.log import parquet as log_parquet

            return log_parquet.write(
                fs, target, query, output.parquet, records=output.records, on_progress=on_progress
            )
        for partition in partitions_of(fs, target):
            if isinstance(target, DataDir) and not output.as_json:
                print(f"# {partition.name}")
            dump = _dump_records if output.records else _dump_batches
            whole = dump(fs, partition, query, output, on_progress) and whole
    return whole


def _dump_batches(
    fs: FileSystem, partition: Partition, query: Query, output: Output, on_progress: Callable[[int], None]
) -> bool:
    whole = True
    file = None
    write = output.writer()
    for found in dump_batches(fs, partition, query, on_progress):
        fields = found_fields(partition, found)
        if output.as_json:
            write(to_json(fields) + "\n")
        else:
            if fields["file"] != file:
                file = fields["file"]
                write(f"{found.segment.path(layout.LOG)}\n")
            write(f"  {batch_line(fields)}\n")
        whole = whole and not isinstance(found, FoundDamage)
    return whole


def _dump_records(
    fs: FileSystem, partition: Partition, query: Query, output: Output, on_progress: Callable[[int], None]
) -> bool:
    whole = True
    topic = partition.topic_partition.topic if partition.topic_partition else None
    formats = RecordFormat(output.encoding, decoder_for(topic), partition)
    line = formats.json if output.as_json else formats.text
    write = output.writer()
    for found in dump_records(fs, partition, query, on_progress):
        if isinstance(found, FoundDamage):
            whole = False
            warn(found)
        else:
            write(line(found[0].row, found[1]) + "\n")
    return whole
