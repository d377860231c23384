"""Batches of a log file, in the words of Kafka's DumpLogSegments."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

from ottla.records import batch, kernel
from ottla.records.compression.codec import Codec
from ottla.storage.fs import RealFileSystem
from ottla.storage.scan import Scan
from tests.consuming import TIMESTAMP_TYPES


def scanned(path: Path) -> list[array[int]]:
    """A row of every batch in the file; all of it must be good."""
    file = RealFileSystem().open(str(path))
    scan = Scan(file, file.size(), flags=kernel.CHECK_CRC | kernel.CHECK_RECORDS)
    rows = [
        window.rows[at : at + kernel.ROW]
        for window in scan
        for at in range(0, window.count * kernel.ROW, kernel.ROW)
    ]
    assert (scan.position, scan.status) == (file.size(), kernel.OK)
    file.close()
    return rows


def printed(row: array[int]) -> dict[str, Any]:
    """What the tool prints for a batch."""
    attributes = row[kernel.ATTRIBUTES]
    stamped = bool(attributes & batch.LOG_APPEND_TIME)
    kind = TIMESTAMP_TYPES[stamped] if row[kernel.MAGIC] else "NoTimestampType"
    common = {
        "position": row[kernel.POSITION],
        kind: row[kernel.MAX_TIMESTAMP],
        "size": row[kernel.SIZE],
        "magic": row[kernel.MAGIC],
        "compresscodec": Codec(attributes & batch.CODEC_MASK).name.lower(),
        "crc": row[kernel.CRC],
        "isvalid": True,
    }
    if row[kernel.MAGIC] < batch.MAGIC_V2:
        return {"offset": row[kernel.LAST_OFFSET], **common}
    sequence = row[kernel.BASE_SEQUENCE]
    horizon = f"OptionalLong[{row[kernel.BASE_TIMESTAMP]}]"
    return {
        "baseOffset": row[kernel.BASE_OFFSET],
        "lastOffset": row[kernel.LAST_OFFSET],
        "count": row[kernel.COUNT],
        "baseSequence": sequence,
        "lastSequence": sequence if sequence < 0 else sequence + row[kernel.LAST_DELTA],
        "producerId": row[kernel.PRODUCER_ID],
        "producerEpoch": row[kernel.PRODUCER_EPOCH],
        "partitionLeaderEpoch": row[kernel.LEADER_EPOCH],
        "isTransactional": bool(attributes & batch.TRANSACTIONAL),
        "isControl": bool(attributes & batch.CONTROL),
        "deleteHorizonMs": horizon if attributes & batch.DELETE_HORIZON else "OptionalLong.empty",
        **common,
    }
