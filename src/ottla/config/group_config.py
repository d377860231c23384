"""Settings of single consumer groups, with Kafka's names; what a group does not set is as the broker says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.coordinator_config import CoordinatorConfig
from ottla.config.values import INT, SECOND_MS, ConfigKey, at_least, check_between, parse
from ottla.errors import ConfigError

_SESSION = ConfigKey(
    "consumer.session.timeout.ms",
    INT,
    45 * SECOND_MS,
    at_least(1),
    "How long a member of the group may be silent.",
    "group",
)
_INTERVAL = ConfigKey(
    "consumer.heartbeat.interval.ms",
    INT,
    5 * SECOND_MS,
    at_least(1),
    "How often the members of the group are told to send a heartbeat.",
    "group",
)
GROUP_KEYS: dict[str, ConfigKey] = {key.name: key for key in (_INTERVAL, _SESSION)}


class GroupConfig(NamedTuple):
    """What a consumer group goes by."""

    session_timeout_ms: int
    heartbeat_interval_ms: int

    @classmethod
    def of(cls, own: Mapping[str, str], broker: CoordinatorConfig) -> GroupConfig:
        """What the group sets itself, and the broker's settings for the rest."""
        session_ms, interval_ms = (
            broker.group_consumer_session_timeout_ms,
            broker.group_consumer_heartbeat_interval_ms,
        )
        if _SESSION.name in own:
            session_ms = parse(_SESSION, own[_SESSION.name])
        if _INTERVAL.name in own:
            interval_ms = parse(_INTERVAL, own[_INTERVAL.name])
        return cls(session_ms, interval_ms)

    def as_properties(self) -> dict[str, int]:
        return {_SESSION.name: self.session_timeout_ms, _INTERVAL.name: self.heartbeat_interval_ms}


def check_group_config(own: Mapping[str, str], broker: CoordinatorConfig) -> None:
    """ConfigError unless a group may have these settings."""
    unknown = sorted(own.keys() - GROUP_KEYS.keys())
    if unknown:
        raise ConfigError(f"Unknown group config name: {unknown[0]}")
    config = GroupConfig.of(own, broker)
    low = max(broker.group_consumer_min_session_timeout_ms, config.heartbeat_interval_ms + 1)
    check_between(_SESSION.name, config.session_timeout_ms, low, broker.group_consumer_max_session_timeout_ms)
    low, high = (
        broker.group_consumer_min_heartbeat_interval_ms,
        broker.group_consumer_max_heartbeat_interval_ms,
    )
    check_between(_INTERVAL.name, config.heartbeat_interval_ms, low, high)
