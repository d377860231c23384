"""What the commands of `ottla configs` do."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.cli import terminal
from ottla.cli.client.connection import Kafka, explain, fail, is_error, wait_until_shown
from ottla.cli.json_text import to_json

# Who set a value, by the number that DescribeConfigs has for it.
SOURCES = {
    1: "topic",
    2: "broker",
    3: "cluster default",
    4: "broker's file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
_SET_BY_HAND = (1, 2, 4)
_DYNAMIC = (1, 2)


def is_set_here(entry: Any) -> bool:
    """Whether a topic's setting was set for this topic."""
    return bool(entry.source == 1)


def described_configs(kafka: Kafka, of: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """ConfigEntry by key, by name of topic or broker."""
    from confluent_kafka.admin import ConfigResource

    if not names:
        return {}
    resources = [ConfigResource(of, name) for name in names]
    answers = kafka.admin.describe_configs(resources, request_timeout=kafka.timeout_s)
    found = {}
    for resource, result in kafka.settle(answers).items():
        if is_error(result):
            fail(f"{of} {resource.name}: {explain(result)}", kafka.next_step(result, resource.name))
        found[resource.name] = result
    return found


def show(kafka: Kafka, of: str, name: str, *, everything: bool, as_json: bool) -> None:
    _check_broker(kafka, of, name)
    print_entries(of, described_configs(kafka, of, [name])[name], everything=everything, as_json=as_json)


def print_entries(of: str, entries: Mapping[str, Any], *, everything: bool, as_json: bool) -> None:
    """Settings by key, as the client library has them: those set by hand, or all."""
    shown = [
        entry
        for _, entry in sorted(entries.items())
        if everything or (is_set_here(entry) if of == "topic" else entry.source in _SET_BY_HAND)
    ]
    for entry in shown:
        meaning = _meaning(of, entry.name)
        if as_json:
            print(to_json(_fields(entry, meaning)))
            continue
        value = "(hidden)" if entry.is_sensitive else "" if entry.value is None else entry.value
        _print_entry(f"{entry.name}={value}", _about(entry, meaning) if everything else "")


def _print_entry(setting: str, about: str) -> None:
    """In one line, or with what is said about it below, where a terminal is too narrow."""
    line, width = f"{setting}  # {about}" if about else setting, terminal.width()
    if width is None or len(line) <= width:
        terminal.say(line)
        return
    terminal.say(setting)
    for piece in textwrap.wrap(about, width, initial_indent="    # ", subsequent_indent="    # "):
        terminal.say(terminal.paint(piece, "dim"))


def _fields(entry: Any, meaning: str) -> dict[str, object]:
    return {
        "key": entry.name,
        "value": entry.value,
        "source": SOURCES.get(entry.source, "unknown"),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "meaning": meaning or None,
    }


def _about(entry: Any, meaning: str) -> str:
    words = [SOURCES.get(entry.source, "unknown") + (", read-only" if entry.is_read_only else "")]
    return "; ".join([*words, meaning] if meaning else words)


def _meaning(of: str, key: str) -> str:
    """From ottla's own tables: the client library does not hand on what the broker says."""
    from ottla.config import BROKER_KEYS, TOPIC_KEYS

    found = (TOPIC_KEYS if of == "topic" else BROKER_KEYS).get(key)
    return "" if found is None else found.doc


def alter(
    kafka: Kafka, of: str, name: str, changes: Mapping[str, str | None], *, validate_only: bool
) -> None:
    """Set what has a value, take back what has none."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    _check_broker(kafka, of, name)
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in changes.items()
    ]
    resource = ConfigResource(of, name, incremental_configs=entries)
    answers = kafka.admin.incremental_alter_configs(
        [resource], validate_only=validate_only, request_timeout=kafka.timeout_s
    )
    for result in kafka.settle(answers).values():
        if is_error(result):
            fail(f"{of} {name}: {explain(result)}", kafka.next_step(result, name))
    if not validate_only:
        wait_until_shown(lambda: _is_shown(described_configs(kafka, of, [name])[name], changes))
    say_changed(of, name, validate_only=validate_only)


def say_changed(of: str, name: str, *, validate_only: bool) -> None:
    print(f"{of} {name}: " + ("could be changed" if validate_only else "changed"))


def _is_shown(entries: Mapping[str, Any], changes: Mapping[str, str | None]) -> bool:
    """Whether each change is there; of a hidden value only that it was set."""
    dynamic = {key for key, entry in entries.items() if entry.source in _DYNAMIC}
    same = {key for key in dynamic if entries[key].value in (None, changes.get(key))}
    return all(key not in dynamic if value is None else key in same for key, value in changes.items())


def _check_broker(kafka: Kafka, of: str, name: str) -> None:
    """The client would wait for a broker that is not there."""
    there = sorted(node.id for node in kafka.cluster.nodes)
    if of == "broker" and name not in map(str, there):
        fail(f"there is no broker {name}", f"there are: {', '.join(map(str, there))}")
