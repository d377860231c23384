"""Writes docs/configuration.md and the keys in docs/pipelines.md from the tables of settings: `make docs`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ottla.config import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    INERT_KEYS,
    TOPIC_KEYS,
    UNSUPPORTED_TOPIC_KEYS,
    ConfigKey,
    to_text,
)
from ottla.config.values import INT_MAX, LONG_MAX
from tools.pipeline_keys import with_keys

PAGE = Path("docs/configuration.md")
PIPELINES_PAGE = Path("docs/pipelines.md")

_INTRODUCTION = """\
# Configuration

<!-- Made by `make docs` from src/ottla/config; a test fails when this page is out of date. -->

Settings have Kafka's names, types, defaults and checks (Apache Kafka 4.2). A log takes the value that its
topic sets; else the broker's, under the broker's name for it; else the default. Of several broker names the
first one that is set wins. Times are in milliseconds and sizes in bytes unless the name says otherwise. An
`int` has 32 bits and a `long` 64; a `list` is separated by commas. A value that is not allowed is an error
that names the key.
"""

_TOPIC = """\
## Topic settings
"""

_BROKER = """\
## Broker settings

The settings of the broker as a whole, and its names for topic settings. Those with a "yes" can also be changed
while it runs, for one broker or for all (`kafka-configs --entity-type brokers`).
"""

_INERT = """\
## Without effect

These are accepted, kept and shown, so that a file or a topic made for Kafka works, but change nothing:
"""

_OTHERS = """\
Other keys of a Kafka `server.properties` have no effect either (threads, quotas, controllers, tiered storage, share
groups, plugins); `ottla serve` names those that a file has in one warning. A key that Kafka does not know either, such
as `num.partitons`, is named in a warning of its own, with the key that may be meant; given with `--set`, or to the
pytest plugin, it is an error.

## Refused

ottla has no TLS, SASL or ACLs yet and serves everybody who can reach it. Settings that ask for more are errors, so that
no broker is open that was meant to be guarded:

- a listener that is not PLAINTEXT, by its name or by `listener.security.protocol.map`, and a second listener. Those of
  `controller.listener.names` are left out: ottla has no controller;
- `ssl.*`, `sasl.*`, `delegation.token.*`, also of one listener (`listener.name.NAME.ssl.*`), `authorizer.class.name`,
  `principal.builder.class`, `super.users`, `allow.everyone.if.no.acl.found`, `connections.max.reauth.ms`,
  `security.providers`, and `security.inter.broker.protocol` other than PLAINTEXT. An empty value counts as not set;
- `process.roles` without `broker`: the file of a controller.
"""

_UNSUPPORTED = """\
## Not supported

Topic settings of Kafka that ottla does not have. They are refused, not ignored.
"""

_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_TIMES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def configuration_page() -> str:
    topic = _table(
        ("key", "type", "default", "allowed", "broker key", "meaning"),
        (
            (*_row(key), " ".join(f"`{s.name}`" for s in key.synonyms), _doc(key))
            for key in _sorted(TOPIC_KEYS)
        ),
    )
    broker = _table(
        ("key", "type", "default", "allowed", "changes while running", "meaning"),
        (
            (*_row(key), "yes" if key.name in DYNAMIC_BROKER_KEYS else "", _doc(key))
            for key in _sorted(BROKER_KEYS)
        ),
    )
    unsupported = _table(
        ("key", "belongs to"), ((f"`{name}`", part) for name, part in sorted(UNSUPPORTED_TOPIC_KEYS.items()))
    )
    inert = _table(("key", "why"), ((f"`{name}`", why) for name, why in sorted(INERT_KEYS.items())))
    parts = (
        _INTRODUCTION, _TOPIC, topic, _BROKER, broker, _INERT, inert, _OTHERS, _UNSUPPORTED, unsupported,
    )  # fmt: skip
    return "\n".join(parts)


def _sorted(keys: dict[str, ConfigKey]) -> list[ConfigKey]:
    return [keys[name] for name in sorted(keys)]


def _row(key: ConfigKey) -> tuple[str, str, str, str]:
    return f"`{key.name}`", key.type.name, _default(key), key.check.allowed


def _doc(key: ConfigKey) -> str:
    return f"{key.doc} Without effect, see below." if key.name in INERT_KEYS else key.doc


def _default(key: ConfigKey) -> str:
    """The default, and in words where a size or a time is easier to read that way."""
    if key.default is None:
        return "not set"
    if not to_text(key.default):
        return "empty"
    text = f"`{to_text(key.default)}`"
    if key.default == {"int": INT_MAX, "long": LONG_MAX}.get(key.type.name):
        return f"{text} (no limit)"
    units = _TIMES if key.name.endswith(".ms") else _SIZES if key.name.endswith((".bytes", ".size")) else ()
    for unit, name in units:
        if key.default >= unit and key.default % unit == 0:
            return f"{text} ({key.default // unit} {name})"
    return text


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    PAGE.write_text(configuration_page(), encoding="utf-8")
    PIPELINES_PAGE.write_text(with_keys(PIPELINES_PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
