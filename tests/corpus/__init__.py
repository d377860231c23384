"""Log directories written by real Apache Kafka, with what Kafka itself reads from them.

Each `<name>/data.tar.gz` is a whole data directory as Kafka left it, by a clean stop or by `kill -9`. Beside
it, `expected.json.gz` holds, for every topic-partition:

- `start`, `end`, `last_stable`: the offsets Kafka reports after opening a copy of the directory;
- `records`: every record in offset order, keys, values and header values in base64 (null stays null);
- `committed`: the offsets that a `read_committed` consumer gets;
- `times`: `[timestamp asked, offset, timestamp found]`, Kafka's answers to lookups by time;
- `batches`: every batch as DumpLogSegments of Kafka 4.2.0 prints it, from the directory as it was left;
- `decoded`, of the two internal topics: `[offset, key, value]` of every record, decoded by Kafka 4.2.0.

`make.py` writes all of it anew.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMES = sorted(found.parent.name for found in HERE.glob("*/data.tar.gz"))


def unpack(name: str, into: Path) -> Path:
    """Unpack a data directory below `into` and return it."""
    directory = into / name
    with tarfile.open(HERE / name / "data.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory


def expected(name: str) -> dict[str, dict[str, Any]]:
    """What Kafka reads from that directory, by `<topic>-<partition>`."""
    with gzip.open(HERE / name / "expected.json.gz", "rt", encoding="utf-8") as file:
        partitions: dict[str, dict[str, Any]] = json.load(file)
    return partitions
