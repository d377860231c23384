"""The file that `ottla pipeline init` writes: a pipeline that runs, and every other key as a comment."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from ottla.spark.pipeline.keys import SECTIONS

_GIVEN: dict[str, dict[str, Any]] = {
    "source": {
        "topics": ["orders"],
        "bootstrap": "127.0.0.1:9092",
        "starting": "earliest",
        "isolation": "read_committed",
        "group": "orders-to-lake",
    },
    "decode": {
        "value": "json",
        "schema": "id long, item string, price double, at timestamp",
        "on_error": "quarantine",
    },
    "sink": {"format": "delta", "path": "lake/orders", "evolve_schema": True},
    "run": {"trigger": "available_now", "checkpoint": "lake/_checkpoints/orders"},
}
_OTHERS: dict[str, str] = {
    "pattern": '"orders.*"',
    "path": '"data"',
    "options": '{ "kafka.security.protocol" = "SSL" }',
    "schema_file": '"order.avsc"',
    "registry": '"http://127.0.0.1:8081"',
    "schemas": '{ 1 = "order-v1.avsc" }',
    "delimiter": '","',
    "metadata": '["offset", "timestamp"]',
    "quarantine": '"lake/orders_bad"',
    "sql": '"select *, date(at) as day from source where price > 0"',
    "python": '"transforms:with_day"',
    "name": '"price is positive"',
    "check": '"price > 0"',
    "partition_by": '["day"]',
    "table": '"default.orders"',
    "catalog": '"sqlite:///lake/catalog.db"',
    "topic": '"orders-clean"',
    "bootstrap": '"127.0.0.1:9092"',
    "compact_every": "20",
    "max_records": "5_000_000",
    "split_mb": "64",
}


def example_text() -> str:
    """Every section and key, those of the example as they are and the others behind a #."""
    parts = ["# A pipeline of ottla. Run it: ottla pipeline run FILE"]
    for section, keys in SECTIONS.items():
        given = _GIVEN.get(section, {})
        head = f"[[{section}]]" if section == "expect" else f"[{section}]"
        lines = [head if given else f"# {head}"]
        for name, key in keys.items():
            lines += [f"# {line}" for line in textwrap.wrap(" ".join(key.help.split()), 96)]
            if key.choices:
                lines.append(f"# One of: {', '.join(key.choices)}.")
            text = f"{name} = {json.dumps(given[name])}" if name in given else f"# {name} = {_OTHERS[name]}"
            lines += [text, ""]
        parts.append("\n".join(lines).rstrip())
    return "\n\n".join(parts) + "\n"
