"""Whatever setting of a broker or a topic a client changes, to whatever its table allows: the next client is let in,
the broker starts again, and the setting can be taken back."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.config import BROKER_KEYS, DYNAMIC_BROKER_KEYS, TOPIC_KEYS, ConfigKey, parse
from ottla.errors import ConfigError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.records.builder import NewRecord, build_batch
from ottla.testing.embedded import EmbeddedBroker
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce

ALTER_CONFIGS = 44
SET, DELETE = 0, 1
TOPIC, BROKER = 2, 4
_EDGES = {
    "boolean": ("true", "false"),
    "int": tuple(str(number) for number in (-(1 << 31), -1, 0, 1, 4, 1 << 20, (1 << 31) - 1)),
    "long": tuple(str(number) for number in (-(1 << 63), -1, 0, 1, (1 << 63) - 1)),
    "double": ("5e-324", "0", "1", str(sys.float_info.max)),
    "list": ("", "compact", "delete", "compact,delete"),
    "string": ("", "127.0.0.1:0", "127.0.0.1:1", "uncompressed", "zstd", "CreateTime", "LogAppendTime"),
}
# These say which records shall be taken.
_MAY_REFUSE = {
    "internal.segment.bytes": ErrorCode.RECORD_LIST_TOO_LARGE,
    "log.message.timestamp.after.max.ms": ErrorCode.INVALID_TIMESTAMP,
    "log.message.timestamp.before.max.ms": ErrorCode.INVALID_TIMESTAMP,
    "max.message.bytes": ErrorCode.MESSAGE_TOO_LARGE,
    "message.max.bytes": ErrorCode.MESSAGE_TOO_LARGE,
    "message.timestamp.after.max.ms": ErrorCode.INVALID_TIMESTAMP,
    "message.timestamp.before.max.ms": ErrorCode.INVALID_TIMESTAMP,
}


def extremes(key: ConfigKey) -> list[str]:
    """The outermost values that the table allows, and what tells one meaning from another."""
    allowed = []
    for text in _EDGES[key.type.name]:
        with suppress(ConfigError):
            parse(key, text)
            allowed.append(text)
    return [*dict.fromkeys([*allowed[:2], allowed[-1]])] if key.type.name in ("int", "long") else allowed


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """With segments that are small enough to be preallocated."""
    with EmbeddedBroker({"log.segment.bytes": 1 << 20}) as broker:
        broker.create_topic("t")
        yield broker


def alter(
    broker: EmbeddedBroker, of: int, resource: str, name: str, value: str | None
) -> tuple[int, str | None]:
    """By a client that has only just come."""
    config = AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
    asked = AlterConfigsResource(resource_type=of, resource_name=resource, configs=[config])
    with Wire(broker) as wire:
        answer = wire.ask(ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[asked]))
    (result,) = answer.responses
    return result.error_code, result.error_message


def use(broker: EmbeddedBroker, refusal: int = ErrorCode.NONE) -> None:
    """By another."""
    record = bytes(build_batch([NewRecord(time.time_ns() // 1_000_000, b"key", b"value", [])]))
    with Wire(broker) as wire:
        answer = wire.ask(PRODUCE, 9, produce("t", record))
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code in (ErrorCode.NONE, refusal)
        if partition.error_code == ErrorCode.NONE:
            found = wire.ask(FETCH, 11, fetch("t", partition.base_offset)).responses[0].partitions[0]
            assert found.records


def try_extremes(broker: EmbeddedBroker, of: int, resource: str, key: ConfigKey) -> None:
    refusal = _MAY_REFUSE.get(key.name, ErrorCode.NONE)
    for value in extremes(key):
        code, message = alter(broker, of, resource, key.name, value)
        if code != ErrorCode.NONE:
            assert code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)
            assert key.name in (message or "")
            continue
        use(broker, refusal)
        broker.kill()
        broker.start()
        use(broker, refusal)
        broker.restart()
        assert alter(broker, of, resource, key.name, None) == (ErrorCode.NONE, None), value
        use(broker)


@pytest.mark.parametrize("name", sorted(DYNAMIC_BROKER_KEYS))
def test_no_setting_of_a_broker_locks_everybody_out_or_keeps_it_from_starting(
    broker: EmbeddedBroker, name: str
) -> None:
    try_extremes(broker, BROKER, "1", BROKER_KEYS[name])


@pytest.mark.parametrize("name", sorted(TOPIC_KEYS))
def test_no_setting_of_a_topic_keeps_the_broker_from_starting(broker: EmbeddedBroker, name: str) -> None:
    try_extremes(broker, TOPIC, "t", TOPIC_KEYS[name])
