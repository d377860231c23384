"""Reads a whole partition as a consumer would, by the protocol alone."""

from __future__ import annotations

from ottla.records.batch import CRC_AT, HEADER_SIZE, compute_crc, parse_header
from ottla.records.record import read_records
from tests.reliability.ledger import Entry, entry_of
from tests.server.wire import FETCH, Wire, fetch

_VERSION = 12
_MAX_BYTES = 8 << 20


def read_partition(wire: Wire, topic: str, partition: int, offset: int = 0) -> list[Entry]:
    """Every record from `offset` up to the high watermark of now. Each batch's CRC is checked."""
    entries: list[Entry] = []
    while True:
        asked = fetch(topic, offset, partition=partition, partition_max_bytes=_MAX_BYTES)
        (found,) = wire.ask(FETCH, _VERSION, asked).responses[0].partitions
        assert found.error_code == 0, f"{topic}-{partition}: error {found.error_code} at {offset}"
        batch_entries = entries_in(found.records or b"")
        if not batch_entries:
            assert offset == found.high_watermark, f"nothing at {offset} of {found.high_watermark}"
            return entries
        entries += (entry for entry in batch_entries if entry.offset >= offset)
        offset = entries[-1].offset + 1


def entries_in(data: bytes | memoryview) -> list[Entry]:
    """The records of the whole batches in `data`; the last one may be cut."""
    view = memoryview(data)
    entries: list[Entry] = []
    position = 0
    while len(view) - position >= HEADER_SIZE:
        header = parse_header(view, position)
        if header.size > len(view) - position:
            break
        crc = int.from_bytes(view[position + CRC_AT : position + CRC_AT + 4], "big")
        assert compute_crc(view, position, header.size) == crc, f"batch {header.base_offset}: wrong CRC"
        entries += (entry_of(record.offset, record.value) for record in read_records(view, position))
        position += header.size
    return entries
