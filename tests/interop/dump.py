"""Kafka's DumpLogSegments: one JVM for many files, its text turned into batches and records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.kafka import NEWEST, run_tool

_START = re.compile(r"^Dumping (\S+)$", re.MULTILINE)
_WORD = re.compile(r"(\w+): (\S+)")
_INTEGER = re.compile(r"^-?\d+$")
_BATCH_NAMES = {"lastOffset", "position"}


@dataclass
class FileDump:
    """What the tool printed about one file."""

    path: str
    batches: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    other_lines: list[str] = field(default_factory=list)


def dump_log_segments(files: list[Path], *options: str, version: str = NEWEST) -> dict[str, FileDump]:
    """Run DumpLogSegments over the files; the answer is keyed by path as given."""
    text = run_tool(version, "kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options)
    return {dump.path: dump for dump in parse(text)}


def parse(text: str) -> list[FileDump]:
    """Split the tool's output into its files, batches (`baseOffset: ...`) and records (`| offset: ...`)."""
    pieces = _START.split(text)
    dumps = []
    for path, body in zip(pieces[1::2], pieces[2::2], strict=True):
        dump = FileDump(path)
        for line in body.splitlines():
            if line.startswith("| "):
                dump.records.append(_fields(line))
            elif line.startswith(("baseOffset: ", "offset: ")) and " position: " in line:
                dump.batches.append(_fields(line))
            elif line.strip():
                dump.other_lines.append(line)
        dumps.append(dump)
    return dumps


def _fields(line: str) -> dict[str, Any]:
    return {name: _value(text) for name, text in _WORD.findall(line)}


def _value(text: str) -> Any:
    if _INTEGER.match(text):
        return int(text)
    return {"true": True, "false": False}.get(text, text)
