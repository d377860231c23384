"""The table of keys in docs/pipelines.md."""

from __future__ import annotations

from typing import Any

from ottla.spark.pipeline.keys import SECTIONS
from ottla.spark.pipeline.toml_file import Key

BEGIN = "src/ottla/spark/pipeline/keys.py; a test fails when it is out of date. -->\n"
END = "<!-- End of the keys. -->\n"


def with_keys(page: str) -> str:
    """The page, with the tables as the keys are now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{key_tables()}{END}{tail}"


def key_tables() -> str:
    parts = []
    for section, keys in SECTIONS.items():
        head = f"`[[{section}]]`, any number of them" if section == "expect" else f"`[{section}]`"
        lines = [f"\n{head}\n", "| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{name}` | {_kind(key.kind)} | {_default(key)} | {_meaning(key)} |"
            for name, key in keys.items()
        ]
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n\n"


def _kind(kind: Any) -> str:
    if isinstance(kind, tuple):
        return " or ".join(_kind(one) for one in kind)
    return {
        str: "text",
        bool: "true or false",
        int: "number",
        list: "list of texts",
        dict: "table",
        object: "table",
    }[kind]


def _default(key: Key) -> str:
    if key.default is None:
        return ""
    return f"`{str(key.default).lower()}`"


def _meaning(key: Key) -> str:
    choices = f" One of: {', '.join(f'`{one}`' for one in key.choices)}." if key.choices else ""
    return f"{key.help}{choices}".replace("|", "\\|")
