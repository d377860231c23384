"""Control batches: the markers that end a transaction in a partition.

A control batch holds one record. Its key is (version i16, type i16); for the types abort (0) and commit (1)
its value is (version i16, coordinator epoch i32). Other types, such as Kafka's own for a change of leader,
are not ours to read and are left alone; later versions only add fields at the end.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records.batch import CODEC_MASK, HEADER_SIZE, NO_EPOCH
from ottla.records.builder import NewRecord, build_batch
from ottla.records.record import Record, read_records

if TYPE_CHECKING:
    from typing_extensions import Buffer

ABORT = 0
COMMIT = 1

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
# Nearly all markers: one record, not compressed, of version 0, without headers; from the codec in the attributes on.
_USUAL = Struct(">22xB34xi5s4sB2si")
_USUAL_SIZE = HEADER_SIZE + 17
_USUAL_HEAD, _USUAL_VALUE_LENGTH, _VERSION_0 = b"\x20\0\0\0\x08", 0x0C, b"\0\0"
_USUAL_KEYS = {_KEY.pack(0, ABORT): True, _KEY.pack(0, COMMIT): False}


class Marker(NamedTuple):
    """The end of a transaction, as its coordinator wrote it."""

    is_abort: bool
    coordinator_epoch: int


def build_marker(
    marker: Marker,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytearray:
    """The control batch that ends the producer's transaction."""
    key = _KEY.pack(0, ABORT if marker.is_abort else COMMIT)
    return build_batch(
        [NewRecord(timestamp, key, _VALUE.pack(0, marker.coordinator_epoch))],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def control_type(record: Record) -> int:
    """The type in a control record's key: ABORT, COMMIT, or one that is unknown here."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptRecordError(f"the control record at offset {record.offset} has no whole key")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptRecordError(f"the control record at offset {record.offset} has key version {version}")
    return int(kind)


def parse_marker(buf: Buffer, position: int = 0) -> Marker | None:
    """The marker in the control batch at `position`; None if it is of another type, or compacted away."""
    if len(memoryview(buf)) >= position + _USUAL_SIZE:
        attributes, count, head, key, value_length, version, epoch = _USUAL.unpack_from(buf, position)
        if (
            count == 1
            and head == _USUAL_HEAD
            and value_length == _USUAL_VALUE_LENGTH
            and key in _USUAL_KEYS
            and version == _VERSION_0
            and not attributes & CODEC_MASK
        ):
            return Marker(_USUAL_KEYS[key], epoch)
    record = next(read_records(buf, position), None)
    if record is None:
        return None
    kind = control_type(record)
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptRecordError(f"the marker at offset {record.offset} has no whole value")
    value_version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if value_version < 0:
        raise CorruptRecordError(f"the marker at offset {record.offset} has version {value_version}")
    return Marker(kind == ABORT, coordinator_epoch)
