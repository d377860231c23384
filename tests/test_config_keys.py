"""Keys that change nothing: each is known to be so, misspelt ones are told apart, those of security are refused."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from ottla.config import (
    BROKER_KEYS,
    INERT_KEYS,
    TOPIC_KEYS,
    BrokerConfig,
    broker_config,
    check_known,
    log_config,
    other_keys,
    unknown_text,
)
from ottla.config.kafka_keys import KAFKA_ONLY_KEYS
from ottla.errors import ConfigError

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src/ottla"

# Read in config/, by what is then read outside of it.
READ_AS = {
    "cleanup_policy": "compact",
    "group_consumer_heartbeat_interval_ms": "heartbeat_interval_ms",
    "group_consumer_max_heartbeat_interval_ms": "check_group_config",
    "group_consumer_max_session_timeout_ms": "check_group_config",
    "group_consumer_min_heartbeat_interval_ms": "check_group_config",
    "group_consumer_min_session_timeout_ms": "check_group_config",
    "group_consumer_session_timeout_ms": "session_timeout_ms",
    "internal_segment_bytes": "effective_segment_bytes",
    "max_connections_per_ip": "max_connections_from",
    "max_connections_per_ip_overrides": "max_connections_from",
    "segment_bytes": "effective_segment_bytes",
}


def names_read_outside_config() -> set[str]:
    """Every attribute that is read, and every name that is called, in src but not in config/."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        if path.is_relative_to(SOURCES / "config"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.add(node.func.id)
    return found


def test_every_setting_is_read_somewhere_or_listed_as_inert() -> None:
    read = names_read_outside_config()
    fields = {**broker_config.FIELDS, **log_config.FIELDS}
    unread = {key.name for field, key in fields.items() if READ_AS.get(field, field) not in read}
    assert unread == set(INERT_KEYS)


def test_an_inert_setting_is_on_the_configuration_page_with_its_reason() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    for key, reason in INERT_KEYS.items():
        assert key in BROKER_KEYS
        assert reason in page


def test_what_only_kafka_has_is_not_in_our_tables() -> None:
    assert not KAFKA_ONLY_KEYS & (set(BROKER_KEYS) | set(TOPIC_KEYS))


def test_kafkas_keys_and_nobodys_are_told_apart() -> None:
    given = (
        "num.partitions", "num.io.threads", "zookeeper.connect", "num.partitons", "retention.ms", "a.typo",
        "log.cleaner.io.buffer.size", "process.roles", "ssl.keystore.location",
    )  # fmt: skip
    inert, unknown = other_keys(given)
    assert inert == ["log.cleaner.io.buffer.size", "num.io.threads", "zookeeper.connect"]
    assert unknown == {"a.typo": None, "num.partitons": "num.partitions", "retention.ms": "log.retention.ms"}
    assert unknown_text(unknown) == (
        "a.typo, num.partitons (did you mean num.partitions?), retention.ms (did you mean log.retention.ms?)"
    )


def test_every_key_that_kafka_can_change_is_known_to_be_kafkas() -> None:
    with (ROOT / "tests/data/kafka-4.2.0-dynamic-keys.txt").open(encoding="utf-8") as file:
        assert other_keys(file.read().split()).unknown == {}


def test_an_unknown_key_is_an_error_where_keys_are_typed() -> None:
    check_known(["num.partitions", "num.io.threads"])
    with pytest.raises(ConfigError, match=r"num\.partitons \(did you mean num\.partitions\?\)"):
        check_known(["num.partitons"])


@pytest.mark.parametrize(
    "key",
    [
        "authorizer.class.name", "principal.builder.class", "sasl.enabled.mechanisms", "ssl.keystore.location",
        "ssl.client.auth", "super.users", "delegation.token.secret.key", "listener.name.internal.ssl.keystore.location",
        "listener.name.internal.scram-sha-256.sasl.jaas.config",
    ],
)  # fmt: skip
def test_a_setting_that_would_not_guard_the_broker_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"would have no effect: {key}\. ottla has no TLS"):
        BrokerConfig.from_properties({key: "x"})
    BrokerConfig.from_properties({key: ""})  # as in a file that lists all keys


def test_all_refused_settings_are_named_at_once() -> None:
    given = {"ssl.key.password": "x", "super.users": "User:a", "security.inter.broker.protocol": "SSL"}
    with pytest.raises(
        ConfigError, match=r"ssl\.key\.password, super\.users, security\.inter\.broker\.protocol=SSL\."
    ):
        BrokerConfig.from_properties(given)
    BrokerConfig.from_properties({"security.inter.broker.protocol": "PLAINTEXT"})


KRAFT = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
}


@pytest.mark.parametrize(
    "properties",
    [
        KRAFT,
        {**KRAFT, "listener.security.protocol.map": "CONTROLLER:SASL_SSL"},
        {"listeners": "INSIDE://:9092", "listener.security.protocol.map": "INSIDE:PLAINTEXT"},
        {"listeners": "plaintext://:9092"},
    ],
)
def test_plaintext_listeners_by_any_name_are_fine_and_controllers_are_left_out(
    properties: Mapping[str, str],
) -> None:
    BrokerConfig.from_properties(properties)


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
@pytest.mark.parametrize(
    ("entry", "protocols", "reason"),
    [
        ("SSL://:9093", "", "SSL://:9093 is to be SSL"),
        ("SASL_PLAINTEXT://:9093", "", "is to be SASL_PLAINTEXT"),
        ("PLAINTEXT://:9092,SASL_SSL://:9093", "", "SASL_SSL://:9093 is to be SASL_SSL"),
        ("OUTSIDE://:9093", "OUTSIDE:SASL_SSL", "OUTSIDE://:9093 is to be SASL_SSL"),
        ("PLAINTEXT://:9093", "PLAINTEXT:SSL", "PLAINTEXT://:9093 is to be SSL"),
        ("OUTSIDE://:9093", "", "add OUTSIDE:PLAINTEXT there"),
        ("OUTSIDE://:9093", "OUTSIDE:TLS", "OUTSIDE:TLS is not NAME:PROTOCOL"),
        ("127.0.0.1:9092", "", "is not NAME://HOST:PORT"),
    ],
)
def test_a_listener_that_is_not_plaintext_is_refused(
    key: str, entry: str, protocols: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_properties({key: entry, "listener.security.protocol.map": protocols})
    assert reason in str(error.value)
