"""Checks the records of internal topics: whether a coordinator that loads the partition understands each of them."""

from __future__ import annotations

from ottla.internal_topics.decoding import UnknownRecordError, reader_for
from ottla.internal_topics.fields import MalformedError
from ottla.logtools.dump import FoundDamage, Query, dump_records
from ottla.logtools.findings import Findings
from ottla.logtools.listing import Partition
from ottla.records import kernel
from ottla.records.batch import CONTROL, MAGIC_V2
from ottla.storage import layout
from ottla.storage.fs import FileSystem


def check_internal(fs: FileSystem, partition: Partition, findings: Findings) -> None:
    """Go through the records, if the partition is one of an internal topic."""
    topic = partition.topic_partition
    read = reader_for(topic.topic) if topic is not None else None
    if read is None:
        return
    for found in dump_records(fs, partition, Query()):
        if isinstance(found, FoundDamage):
            continue  # told by the check of its segment
        batch, record = found
        if batch.row[kernel.MAGIC] == MAGIC_V2 and batch.row[kernel.ATTRIBUTES] & CONTROL:
            continue
        try:
            read(record.key, record.value)
        except MalformedError as error:
            is_unknown = isinstance(error, UnknownRecordError)
            add = findings.note if is_unknown else findings.defect
            add(
                "unknown-record" if is_unknown else "coordinator-record",
                batch.segment.path(layout.LOG),
                f"a record that a broker leaves out, because it cannot be understood: {error}",
                position=batch.row[kernel.POSITION],
                offset=record.offset,
            )
