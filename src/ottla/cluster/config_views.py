"""Settings as clients see them: each key's value, where it comes from, and what lies behind it. Pure.

A broker's key can be set in four places, the strongest first: for this broker, for all brokers, in its file, by
default. A topic's key is set on the topic, or by the broker keys that stand behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ottla.cluster.image import ClusterImage
from ottla.config import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    GROUP_KEYS,
    INTERNAL_KEYS,
    TOPIC_KEYS,
    BrokerConfig,
    ConfigKey,
    GroupConfig,
    parse,
    resolve,
    to_text,
)
from ottla.config.values import LIST


class ConfigSource(IntEnum):
    """Where a value was set; Kafka's numbers."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_GROUP = 8


_TYPE_NUMBERS = {"boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7}


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One place where a value is set."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigView:
    """One setting, as DescribeConfigs answers it."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    type: int
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]  # the strongest first; it gives the value
    sensitive: bool = False  # none of ottla's settings is a secret


def broker_properties(image: ClusterImage, node_id: int, static: Mapping[str, str]) -> dict[str, str]:
    """What a broker's file says, with what was changed since for all brokers and for this one."""
    return {**static, **image.broker_configs.get(None, {}), **image.broker_configs.get(node_id, {})}


def topic_config_views(
    image: ClusterImage,
    topic: str,
    node_id: int,
    static: Mapping[str, str],
    only: Iterable[str] | None = None,
) -> list[ConfigView]:
    """The settings of a topic that need not exist yet, as a broker sees them; `only` those keys, if given."""
    info = image.topics.get(topic)
    own = info.config if info else {}
    properties = broker_properties(image, node_id, static)
    return [
        _topic_view(key, own, image, node_id, static, properties)
        for key in _chosen(TOPIC_KEYS, only)
        if key.name in own or key.name not in INTERNAL_KEYS
    ]


def _topic_view(
    key: ConfigKey,
    own: Mapping[str, str],
    image: ClusterImage,
    node_id: int,
    static: Mapping[str, str],
    properties: Mapping[str, str],
) -> ConfigView:
    value = resolve(key, own, properties)
    text = _text(key, own[key.name]) if key.name in own else _value_text(key, value.value, properties)
    synonyms = []
    if key.name in own:
        synonyms.append(ConfigSynonym(key.name, text, ConfigSource.DYNAMIC_TOPIC))
    if key.synonyms:
        synonyms += _synonyms(key.synonyms[0].name, image, node_id, static)
    return _view(key, text, synonyms, read_only=False)


def broker_config_views(
    image: ClusterImage, node_id: int, static: Mapping[str, str], only: Iterable[str] | None = None
) -> list[ConfigView]:
    """The settings of one broker; `only` those keys, if given."""
    properties = broker_properties(image, node_id, static)
    views = []
    for key in _chosen(BROKER_KEYS, only):
        if key.name in INTERNAL_KEYS and key.name not in properties:
            continue
        text = _value_text(key, resolve(key, properties, properties).value, properties)
        synonyms = list(_synonyms(key.name, image, node_id, static))
        views.append(_view(key, text, synonyms, read_only=key.name not in DYNAMIC_BROKER_KEYS))
    return views


def cluster_config_views(image: ClusterImage, only: Iterable[str] | None = None) -> list[ConfigView]:
    """What was set for all brokers at once, and nothing else."""
    common = image.broker_configs.get(None, {})
    views = []
    for key in _chosen(BROKER_KEYS, only):
        if key.name in common:
            text = _text(key, common[key.name])
            synonyms = [ConfigSynonym(key.name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER)]
            views.append(_view(key, text, synonyms, read_only=key.name not in DYNAMIC_BROKER_KEYS))
    return views


def group_config_views(
    image: ClusterImage, group: str, config: BrokerConfig, only: Iterable[str] | None = None
) -> list[ConfigView]:
    """The settings of a group that need not be there; what it does not set is the broker's, and called a default."""
    own = image.group_configs.get(group, {})
    values = GroupConfig.of(own, config).as_properties()
    views = []
    for key in _chosen(GROUP_KEYS, only):
        source = ConfigSource.DYNAMIC_GROUP if key.name in own else ConfigSource.DEFAULT
        text = to_text(values[key.name])
        views.append(_view(key, text, [ConfigSynonym(key.name, text, source)], read_only=False))
    return views


def _chosen(keys: Mapping[str, ConfigKey], only: Iterable[str] | None) -> Iterator[ConfigKey]:
    wanted = None if only is None else set(only)
    return (keys[name] for name in sorted(keys) if wanted is None or name in wanted)


def _view(key: ConfigKey, text: str | None, synonyms: list[ConfigSynonym], *, read_only: bool) -> ConfigView:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigView(
        key.name, text, source, read_only, _TYPE_NUMBERS[key.type.name], key.doc, tuple(synonyms)
    )


def _synonyms(
    name: str, image: ClusterImage, node_id: int, static: Mapping[str, str]
) -> Iterator[ConfigSynonym]:
    """Every place where a broker key, or one that stands in for it, is set; from the first that is the key itself."""
    names = next((family for family in _FAMILIES if name in family), (name,))
    defaults = {
        known: to_text(BROKER_KEYS[known].default)
        for known in names
        if BROKER_KEYS[known].default is not None
    }
    places = (
        (ConfigSource.DYNAMIC_BROKER, image.broker_configs.get(node_id, {})),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, image.broker_configs.get(None, {})),
        (ConfigSource.STATIC_BROKER, static),
        (ConfigSource.DEFAULT, defaults),
    )
    reached = False
    for source, values in places:
        for known in names:
            if known in values:
                # Kafka leaves out what comes before the key itself, be it the value that counts.
                reached = reached or known == name
                if reached:
                    yield ConfigSynonym(known, values[known], source)


# Broker keys that stand in for one another, the strongest first.
_FAMILIES = (
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)


def _text(key: ConfigKey, given: str) -> str:
    """A value as it was given, in the form that Kafka shows: a list keeps its order."""
    if key.type.name == "list":
        return to_text(LIST.convert(given.strip()))
    return to_text(parse(key, given))


def _value_text(key: ConfigKey, value: object, properties: Mapping[str, str]) -> str | None:
    if value is None:
        return None
    if key.type.name == "list":
        for name in (key.name, *(synonym.name for synonym in key.synonyms)):
            if name in properties:
                return _text(key, properties[name])
    return to_text(value)
