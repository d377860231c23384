"""Settings of single groups: set, described, kept, and what their members are told."""

from __future__ import annotations

from ottla.api.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.api.world import Refusing, World
from tests.coordinator.grouping import find
from tests.coordinator.modern import Modern

GROUP = 32
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE = 0, 1


def alter(world: World, group: str, key: str, value: str | None) -> int:
    config = AlterableConfig(name=key, value=value, config_operation=DELETE if value is None else SET)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[config])
    (answer,) = world.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    code: int = answer.error_code
    return code


def described(world: World, group: str) -> dict[str, tuple[str, int]]:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=group)
    (answer,) = world.ask(DescribeConfigsRequest(resources=[resource])).results
    return {config.name: (config.value, config.config_source) for config in answer.configs}


def test_what_a_group_sets_is_kept_and_the_rest_is_the_brokers(world: World) -> None:
    assert described(world, "g") == {INTERVAL: ("5000", 5), SESSION: ("45000", 5)}
    assert alter(world, "g", SESSION, "50000") == 0
    assert described(world, "g") == {INTERVAL: ("5000", 5), SESSION: ("50000", 8)}
    assert described(world, "other") == {INTERVAL: ("5000", 5), SESSION: ("45000", 5)}
    world.restart()
    assert described(world, "g")[SESSION] == ("50000", 8)
    assert alter(world, "g", SESSION, None) == 0
    assert world.image.group_configs == {}


def test_what_the_broker_does_not_allow_is_refused(world: World) -> None:
    for key, value in (
        (SESSION, "44999"),
        (SESSION, "60001"),
        (INTERVAL, "4999"),
        (INTERVAL, "x"),
        ("what", "1"),
    ):
        assert alter(world, "g", key, value) == ErrorCode.INVALID_CONFIG
    assert alter(world, "", SESSION, "50000") == ErrorCode.INVALID_REQUEST
    assert world.image.group_configs == {}


def test_members_go_by_the_settings_of_their_group(world: World) -> None:
    world.make_topic("t", 1)
    find(world)
    alter(world, "g", INTERVAL, "6000")
    alter(world, "g", SESSION, "60000")
    member = Modern(world)
    member.join()
    assert member.send().heartbeat_interval_ms == 6000
    world.runtime.advance(59_999)
    assert member.beat() == 0
    world.runtime.advance(60_000)
    assert member.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_may_not_change_a_group_does_not_change_its_settings(world: World) -> None:
    world.services.authorizer = Refusing((Operation.ALTER_CONFIGS, Resource.GROUP, "g"))
    assert alter(world, "g", SESSION, "50000") == ErrorCode.GROUP_AUTHORIZATION_FAILED
