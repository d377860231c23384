"""How settings of topics, brokers and groups change. Pure; each resource changes whole or not at all.

Kafka answers a wrong value of a topic with INVALID_CONFIG and one of a broker with INVALID_REQUEST; so does this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from ottla.cluster.config_views import broker_properties
from ottla.cluster.image import ClusterImage
from ottla.cluster.outcome import Outcome, Result
from ottla.config import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    BrokerConfig,
    ConfigKey,
    LogConfig,
    check_group_config,
    to_text,
)
from ottla.errors import (
    BrokerError,
    ConfigError,
    InvalidRequestError,
    InvalidTopicError,
    UnknownTopicOrPartitionError,
)
from ottla.names import is_topic_name

_CONNECTION_KEYS = frozenset(
    {"max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides"}
)
_LOOPBACK = ("127.0.0.1", "::1")


class AlterOp(IntEnum):
    """What to do with a key; Kafka's numbers. A list can be added to and taken from."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of one key."""

    name: str
    value: str | None
    op: int = AlterOp.SET


@dataclass(frozen=True, slots=True)
class TopicAlterations:
    """Changes of one topic's settings. With `whole`, what is not named goes back to its default."""

    topic: str
    changes: Sequence[Alteration]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class BrokerAlterations:
    """Changes of the settings of one broker, or of all where `node_id` is None."""

    node_id: int | None
    changes: Sequence[Alteration]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class GroupAlterations:
    """Changes of one group's settings. The group need not be there."""

    group: str
    changes: Sequence[Alteration]
    whole: bool = False


Alterations = TopicAlterations | BrokerAlterations | GroupAlterations


def alter_configs(
    image: ClusterImage,
    alterations: Sequence[Alterations],
    config: BrokerConfig,
    *,
    validate_only: bool = False,
) -> Outcome:
    """Change settings; one result for each, in order. A resource given twice is refused."""
    given = Counter(_resource(one) for one in alterations)
    start, results = image, []
    for one in alterations:
        _, name = _resource(one)
        try:
            if given[_resource(one)] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            if isinstance(one, TopicAlterations):
                image = _alter_topic(image, one, config)
            elif isinstance(one, GroupAlterations):
                image = _alter_group(image, one, config)
            else:
                image = _alter_broker(image, one, config)
        except BrokerError as error:
            results.append(Result.failed(name, error))
        else:
            results.append(Result(name))
    return Outcome(start if validate_only else image, results)


def _resource(one: Alterations) -> tuple[str, str]:
    if isinstance(one, TopicAlterations):
        return "topic", one.topic
    if isinstance(one, GroupAlterations):
        return "group", one.group
    return "broker", _broker_name(one.node_id)


def _broker_name(node_id: int | None) -> str:
    return "" if node_id is None else str(node_id)


def _alter_topic(image: ClusterImage, one: TopicAlterations, config: BrokerConfig) -> ClusterImage:
    if not one.topic:
        raise InvalidRequestError("There are no settings for all topics: name one.")
    if not is_topic_name(one.topic):
        raise InvalidTopicError(f"{one.topic[:300]!r} is not the name of a topic.")
    topic = image.topics.get(one.topic)
    _check_form(one.changes)
    own = {} if topic is None else topic.config
    changed = _applied(own, one.changes, one.whole, TOPIC_KEYS)
    LogConfig.from_properties(changed, broker_properties(image, config.node_id, config.properties))
    if topic is None:
        raise UnknownTopicOrPartitionError(f"The topic '{one.topic}' does not exist.")
    if changed == own:
        return image
    return replace(image, topics={**image.topics, one.topic: replace(topic, config=changed)})


def _alter_broker(image: ClusterImage, one: BrokerAlterations, config: BrokerConfig) -> ClusterImage:
    if one.node_id is not None and one.node_id != config.node_id:
        raise InvalidRequestError(f"This is broker {config.node_id}: ask broker {one.node_id} itself.")
    _check_form(one.changes)
    own = image.broker_configs.get(one.node_id, {})
    changed = _applied(own, one.changes, one.whole, BROKER_KEYS)
    try:
        fixed = sorted(key for key in changed if key not in DYNAMIC_BROKER_KEYS)
        if fixed:
            raise ConfigError(f"Cannot update these configs dynamically: {', '.join(fixed)}")
        configs = {**image.broker_configs, one.node_id: changed}
        image_after = replace(image, broker_configs={node: kept for node, kept in configs.items() if kept})
        properties = broker_properties(image_after, config.node_id, config.properties)
        config_after = BrokerConfig.from_properties(properties)
        LogConfig.from_properties({}, properties)
        if _CONNECTION_KEYS.intersection(change.name for change in one.changes):
            _check_way_in(config_after)
    except ConfigError as error:
        raise InvalidRequestError(str(error)) from error
    return image if changed == own else image_after


def _check_way_in(config: BrokerConfig) -> None:
    """Whoever sits at the machine must be able to come and take a limit back."""
    if config.max_connections == 0:
        raise ConfigError("max.connections=0 would let nobody in any more, not even to change it back")
    for address in _LOOPBACK:
        if config.max_connections_from(address) == 0:
            raise ConfigError(
                f"max.connections.per.ip={config.max_connections_per_ip} with max.connections.per.ip.overrides="
                f"{config.max_connections_per_ip_overrides} would not let {address} in any more, not even to change "
                f"it back: add {address}:10 to the overrides"
            )


def _alter_group(image: ClusterImage, one: GroupAlterations, config: BrokerConfig) -> ClusterImage:
    if not one.group:
        raise InvalidRequestError("There are no settings for all groups: name one.")
    _check_form(one.changes)
    own = image.group_configs.get(one.group, {})
    changed = _applied(own, one.changes, one.whole, GROUP_KEYS)
    check_group_config(changed, config)
    if changed == own:
        return image
    configs = {**image.group_configs, one.group: changed}
    return replace(image, group_configs={group: kept for group, kept in configs.items() if kept})


def _check_form(changes: Sequence[Alteration]) -> None:
    if len({change.name for change in changes}) != len(changes):
        raise InvalidRequestError("Error due to duplicate config keys")
    for change in changes:
        if change.op not in AlterOp.__members__.values():
            raise InvalidRequestError(f"{change.name}: {change.op} is not an operation on a setting.")
        if change.value is None and change.op != AlterOp.DELETE:
            raise InvalidRequestError(f"Null value not supported for : {change.name}")


def _applied(
    own: Mapping[str, str], changes: Sequence[Alteration], whole: bool, keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    result = {} if whole else dict(own)
    for change in changes:
        if change.op == AlterOp.DELETE:
            result.pop(change.name, None)
        elif change.op == AlterOp.SET:
            result[change.name] = change.value or ""
        else:
            result[change.name] = _edited_list(change, result.get(change.name), keys.get(change.name))
    return result


def _edited_list(change: Alteration, current: str | None, key: ConfigKey | None) -> str:
    if key is None or key.type.name != "list":
        raise ConfigError(
            f"Can't {AlterOp(change.op).name} to key {change.name} because its type is not LIST."
        )
    text = to_text(key.default or ()) if current is None else current
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    named = [entry.strip() for entry in (change.value or "").split(",")]
    if change.op == AlterOp.SUBTRACT:
        return ",".join(entry for entry in entries if entry not in named)
    return ",".join(dict.fromkeys([*entries, *named]))
