"""Kafka's DumpLogSegments: one JVM for many files, its text as batches, records and index entries."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.kafka import NEWEST, run_tool

HEX = ("--key-decoder-class", "HexDecoder", "--value-decoder-class", "HexDecoder")

_START = re.compile(r"^Dumping (\S+)$", re.MULTILINE)
_FIELD = re.compile(r"(\w+): (\S*)")
_INTEGER = re.compile(r"^-?\d+$")
_ENTRY_STARTS = ("offset: ", "timestamp: ", "version: ", "producerId: ")


@dataclass
class FileDump:
    """What the tool printed about one file: batches and records of a `.log`, entries of any other."""

    batches: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass
class Dump:
    """A whole run: what was printed for each path as given, and the problems reported at the end."""

    files: dict[str, FileDump]
    problems: list[str]


def dump_log_segments(files: list[Path], *options: str) -> Dump:
    """Run DumpLogSegments over the files."""
    names = ",".join(map(str, files))
    done = run_tool(NEWEST, "kafka.tools.DumpLogSegments", "--files", names, *options)
    return Dump(parse(done.stdout), done.stderr.splitlines())


def dump_records(files: list[Path]) -> Dump:
    """Every batch and every record of `.log` files, keys and values in hex."""
    return dump_log_segments(files, "--deep-iteration", "--print-data-log", *HEX)


def parse(text: str) -> dict[str, FileDump]:
    """Split the tool's output into files and their lines."""
    pieces = _START.split(text)
    files = {}
    for path, body in zip(pieces[1::2], pieces[2::2], strict=True):
        dump = files[path] = FileDump()
        is_log = path.endswith(".log")
        for line in filter(None, body.splitlines()):
            if line.startswith("| "):
                dump.records.append(_fields(line))
            elif is_log and " position: " in line:
                dump.batches.append(_fields(line))
            elif not is_log and line.startswith(_ENTRY_STARTS):
                dump.entries.append(_fields(line))
            else:
                dump.remarks.append(line)
    return files


def told(record: dict[str, Any]) -> dict[str, Any]:
    """A printed record without what `told_of` cannot know."""
    kind = "CreateTime" if "CreateTime" in record else "LogAppendTime"
    return {
        "offset": record["offset"],
        kind: record[kind],
        "keySize": record["keySize"],
        "valueSize": record["valueSize"],
        "headerKeys": record["headerKeys"],
        "key": record.get("key", ""),
        "payload": record.get("payload", ""),
    }


def told_of(sent: dict[str, Any]) -> dict[str, Any]:
    """A record that was sent, as the tool prints it."""
    key, value = (None if text is None else base64.b64decode(text) for text in (sent["key"], sent["value"]))
    return {
        "offset": sent["offset"],
        sent["timestamp_type"]: sent["timestamp"],
        "keySize": -1 if key is None else len(key),
        "valueSize": -1 if value is None else len(value),
        "headerKeys": f"[{','.join(name for name, _ in sent['headers'])}]",
        "key": (key or b"").hex(),
        "payload": (value or b"").hex(),
    }


def _fields(line: str) -> dict[str, Any]:
    return {name: _value(name, text) for name, text in _FIELD.findall(line)}


def _value(name: str, text: str) -> Any:
    if name in ("key", "payload"):
        return text
    if _INTEGER.match(text):
        return int(text)
    return {"true": True, "false": False}.get(text, text)
