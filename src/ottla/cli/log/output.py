"""How batches, records and findings look, as text and as JSON."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Callable
from typing import Any

from ottla.cli.json_text import quote, to_json, utf8_or_base64
from ottla.cli.options import Encoding
from ottla.cli.values import format_time
from ottla.escapes import visible_line
from ottla.internal_topics.decoding import Decoder, decode_control_record
from ottla.logtools.dump import FoundBatch, FoundDamage
from ottla.logtools.findings import Finding
from ottla.logtools.listing import Partition
from ottla.records import batch, kernel
from ottla.records.compression.codec import Codec
from ottla.records.record import Record
from ottla.storage import layout
from ottla.words import noun


def json_bytes(encoding: Encoding) -> Callable[[bytes | None], Any]:
    """What stands for bytes in JSON."""
    if encoding is Encoding.HEX:
        return lambda data: None if data is None else data.hex()
    if encoding is Encoding.BASE64:
        return lambda data: None if data is None else base64.b64encode(data).decode()
    return utf8_or_base64


def json_tree(value: Any, encode: Callable[[bytes | None], Any]) -> Any:
    """A decoded record with its bytes made presentable."""
    if isinstance(value, bytes):
        return encode(value)
    if isinstance(value, dict):
        return {name: json_tree(item, encode) for name, item in value.items()}
    if isinstance(value, list):
        return [json_tree(item, encode) for item in value]
    return value


def batch_fields(row: array[int], *, crc_ok: bool = True) -> dict[str, Any]:
    """A batch as its header describes it."""
    attributes = row[kernel.ATTRIBUTES]
    code = attributes & batch.CODEC_MASK
    return {
        "base_offset": row[kernel.BASE_OFFSET],
        "last_offset": row[kernel.LAST_OFFSET],
        "count": None if row[kernel.COUNT] < 0 else row[kernel.COUNT],
        "position": row[kernel.POSITION],
        "size": row[kernel.SIZE],
        "magic": row[kernel.MAGIC],
        "codec": Codec(code).name.lower() if code <= max(Codec) else str(code),
        "timestamp_type": "LogAppendTime" if attributes & batch.LOG_APPEND_TIME else "CreateTime",
        "base_timestamp": row[kernel.BASE_TIMESTAMP],
        "max_timestamp": row[kernel.MAX_TIMESTAMP],
        "producer_id": row[kernel.PRODUCER_ID],
        "producer_epoch": row[kernel.PRODUCER_EPOCH],
        "base_sequence": row[kernel.BASE_SEQUENCE],
        "is_transactional": bool(row[kernel.MAGIC] == 2 and attributes & batch.TRANSACTIONAL),
        "is_control": bool(row[kernel.MAGIC] == 2 and attributes & batch.CONTROL),
        "leader_epoch": row[kernel.LEADER_EPOCH],
        "crc": row[kernel.CRC],
        "crc_ok": crc_ok,
    }


def found_fields(partition: Partition, found: FoundBatch | FoundDamage) -> dict[str, Any]:
    """One line of `dump`: a batch, or what is damaged."""
    fields = batch_fields(found.row) if isinstance(found, FoundBatch) else _damage_fields(found)
    return {"partition": partition.name, "file": found.segment.file_name(layout.LOG), **fields}


def _damage_fields(found: FoundDamage) -> dict[str, Any]:
    damage, header = found.damage, found.header
    fields: dict[str, Any] = {"position": damage.position, "size": damage.end - damage.position}
    if header is not None:
        rows = array("q", bytes(8 * kernel.ROW))
        head = batch.HEADER.pack(*header)
        kernel.scan(head, 0, len(head), rows, 0)
        rows[kernel.POSITION] = damage.position
        fields = batch_fields(rows)
    crc_ok = damage.status in (kernel.BAD_RECORD, kernel.BAD_OFFSETS)
    return {
        **fields,
        "crc_ok": crc_ok,
        "damage": damage.meaning,
        "damaged_bytes": damage.end - damage.position,
    }


def batch_line(fields: dict[str, Any]) -> str:
    if "damage" in fields:
        what = f"position {fields['position']}  DAMAGED  {_amount(fields['damaged_bytes'], 'byte')}: {fields['damage']}"
        return f"{what}  (offset {fields['base_offset']}?)" if "base_offset" in fields else what
    count = "? records" if fields["count"] is None else _amount(fields["count"], "record")
    parts = [
        f"position {fields['position']}",
        f"offsets {fields['base_offset']}..{fields['last_offset']}",
        count,
        _amount(fields["size"], "byte"),
        fields["codec"],
        f"magic {fields['magic']}",
        f"{fields['timestamp_type']} {format_time(fields['max_timestamp'])}",
        f"epoch {fields['leader_epoch']}",
    ]
    if fields["producer_id"] >= 0:
        parts.append(
            f"producer {fields['producer_id']}/{fields['producer_epoch']} sequence {fields['base_sequence']}"
        )
    parts += [
        name
        for name, flag in (("transactional", "is_transactional"), ("control", "is_control"))
        if fields[flag]
    ]
    return "  ".join(parts)


def _amount(number: int, word: str) -> str:
    """Without commas: these lines are searched."""
    return f"{number} {noun(number, word)}"


class RecordFormat:
    """Turns records into JSON objects or lines of text; a dump may have millions."""

    def __init__(self, encoding: Encoding, decoder: Decoder | None, partition: Partition) -> None:
        self._bytes = json_bytes(encoding)
        self._decoder = decoder
        self._partition = _json(partition.name)

    def json(self, row: array[int], record: Record) -> str:
        key, value = self._key_and_value(row, record)
        headers = to_json(self._headers(record)) if record.headers else "[]"
        return (
            f'{{"partition":{self._partition},"offset":{record.offset},"timestamp":{record.timestamp},'
            f'"key":{_json(key)},"value":{_json(value)},"headers":{headers}}}'
        )

    def text(self, row: array[int], record: Record) -> str:
        key, value = self._key_and_value(row, record)
        line = f"{record.offset}  {format_time(record.timestamp)}  {_show(key)}  {_show(value)}"
        if record.headers:
            line += "  [" + ", ".join(f"{h['key']}: {_show(h['value'])}" for h in self._headers(record)) + "]"
        return line

    def _key_and_value(self, row: array[int], record: Record) -> tuple[Any, Any]:
        encode, decoder = self._bytes, self._decoder
        if row[kernel.ATTRIBUTES] & batch.CONTROL and row[kernel.MAGIC] == batch.MAGIC_V2:
            decoder = decode_control_record
        if decoder is None:
            return encode(record.key), encode(record.value)
        key, value = decoder(record.key, record.value)
        return json_tree(key, encode), json_tree(value, encode)

    def _headers(self, record: Record) -> list[dict[str, Any]]:
        encode = self._bytes
        return [{"key": k.decode(errors="backslashreplace"), "value": encode(v)} for k, v in record.headers]


def _json(value: Any) -> str:
    """As `to_json`, and faster for what most keys and values are."""
    return quote(value) if type(value) is str else to_json(value)


def _show(value: Any) -> str:
    """Text as it is if it fits on a line, anything else as JSON."""
    if type(value) is str and value.isprintable() and value:
        return value
    return to_json(value)


def finding_line(finding: Finding) -> str:
    where = finding.file
    if finding.position is not None:
        where += f" at position {finding.position}"
    if finding.offset is not None:
        where += f", offset {finding.offset}"
    return visible_line(f"{finding.level}: {where}: {finding.meaning} [{finding.code}]")


def warn(found: FoundDamage) -> None:
    damage, path = found.damage, found.segment.path(layout.LOG)
    size = damage.end - damage.position
    are = "is" if size == 1 else "are"
    text = (
        f"ottla: {path}: {size} {noun(size, 'byte')} at position {damage.position} {are} left out: {damage.meaning}"
        f" (`ottla log verify {found.segment.directory}` says more)"
    )
    print(visible_line(text), file=sys.stderr)
