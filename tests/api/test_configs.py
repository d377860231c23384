"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: values, sources, and changes that take effect at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.cluster.config_changes import AlterOp
from ottla.cluster.config_views import ConfigSource
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import alter_configs as whole
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.api.conftest import MakeWorld
from tests.api.world import Refusing, World

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
INT, LIST = 3, 7  # Kafka's numbers of types


def describe(*resources: tuple[int, str, list[str] | None], **fields: Any) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        ],
        **fields,
    )


def alter(*resources: tuple[int, str, dict[str, str | None]], **fields: Any) -> whole.AlterConfigsRequest:
    return whole.AlterConfigsRequest(
        resources=[
            whole.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[whole.AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ],
        **fields,
    )


def change(
    *resources: tuple[int, str, list[tuple[str, int, str | None]]], **fields: Any
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, config_operation=op, value=value)
                    for key, op, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        **fields,
    )


def codes(results: Sequence[Any]) -> list[tuple[int, str, ErrorCode]]:
    return [(one.resource_type, one.resource_name, ErrorCode(one.error_code)) for one in results]


def value(world: World, kind: int, name: str, key: str) -> tuple[str | None, ConfigSource]:
    (result,) = world.ask(describe((kind, name, [key]))).results
    (config,) = result.configs
    return config.value, ConfigSource(config.config_source)


# -- DescribeConfigs


def test_every_version_describes_a_topic(world: World) -> None:
    world.make_topic("t", segment_bytes="2000000")
    for version in range(1, 5):
        request = describe((TOPIC, "t", ["segment.bytes"]), include_synonyms=True, include_documentation=True)
        (result,) = world.ask(request, version).results
        assert (result.error_code, result.error_message) == (0, "")
        (config,) = result.configs
        assert (config.name, config.value, config.config_source) == ("segment.bytes", "2000000", 1)
        assert [(s.name, s.value, s.source) for s in config.synonyms] == [
            ("segment.bytes", "2000000", ConfigSource.DYNAMIC_TOPIC),
            ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
        ]
        assert config.config_type == (INT if version >= 3 else 0)
        assert bool(config.documentation) == (version >= 3)


def test_synonyms_and_documentation_come_only_if_asked_for(world: World) -> None:
    world.make_topic("t")
    (result,) = world.ask(describe((TOPIC, "t", ["cleanup.policy"]))).results
    (config,) = result.configs
    assert (config.synonyms, config.documentation, config.config_type) == ([], None, LIST)


def test_no_list_of_keys_asks_for_all(world: World) -> None:
    world.make_topic("t")
    choices: tuple[list[str] | None, ...] = (None, [])
    for keys in choices:
        topic, broker = world.ask(describe((TOPIC, "t", keys), (BROKER, "1", keys))).results
        assert {"retention.ms", "segment.bytes", "cleanup.policy"} <= {one.name for one in topic.configs}
        assert {"log.dirs", "log.retention.ms", "node.id"} <= {one.name for one in broker.configs}
        assert {one.name for one in broker.configs if one.read_only} >= {"log.dirs", "node.id"}


def test_topics_that_set_different_things_have_different_settings(world: World) -> None:
    world.make_topic("a", retention_ms="1")
    world.make_topic("b", retention_ms="2")
    world.make_topic("c", retention_ms="1")
    asked = [(TOPIC, name, keys) for name in "abc" for keys in (["retention.ms"], ["segment.bytes"])]
    results = world.ask(describe(*asked)).results
    assert [[(one.name, one.value) for one in result.configs] for result in results] == [
        [(key, value)]
        for retention in ("1", "2", "1")
        for key, value in (("retention.ms", retention), ("segment.bytes", "1073741824"))
    ]


def test_an_unknown_key_is_left_out(world: World) -> None:
    world.make_topic("t")
    (result,) = world.ask(describe((TOPIC, "t", ["retention.ms", "nope"]))).results
    assert [config.name for config in result.configs] == ["retention.ms"]


def test_what_cannot_be_described_has_its_code(world: World) -> None:
    world.make_topic("t")
    resources = [
        (TOPIC, "nope"), (TOPIC, "a b"), (TOPIC, ""), (BROKER, "9"), (BROKER, "x"), (LOGGER, "1"),
        (CLIENT_METRICS, "m"), (GROUP, ""),
    ]  # fmt: skip
    results = world.ask(describe(*((kind, name, None) for kind, name in resources))).results
    assert [ErrorCode(result.error_code) for result in results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        *[ErrorCode.INVALID_REQUEST] * 5,
    ]
    assert results[0].error_message == ""
    assert all(result.error_message for result in results[1:])
    assert all(result.configs == [] for result in results)


def test_a_small_request_gets_no_answer_of_any_size(world: World) -> None:
    results = world.ask(describe(*[(BROKER, "1", None)] * 1300)).results
    answered = [result for result in results if not result.error_code]
    assert len(results) == 1300
    assert 80_000 < sum(len(result.configs) for result in answered) <= 90_000
    assert {result.error_code for result in results if result.error_code} == {ErrorCode.POLICY_VIOLATION}


def test_a_number_too_long_for_a_broker_is_none(world: World) -> None:
    (result,) = world.ask(describe((BROKER, "9" * 10_000, None))).results
    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_kind_of_resource_fails_the_request(world: World) -> None:
    world.make_topic("t")
    results = world.ask(describe((TOPIC, "t", None), (1, "x", None))).results
    assert codes(results) == [(TOPIC, "t", ErrorCode.INVALID_REQUEST), (1, "x", ErrorCode.INVALID_REQUEST)]


def test_all_brokers_together_show_only_what_was_set_for_all(world: World) -> None:
    (before,) = world.ask(describe((BROKER, "", None))).results
    assert before.configs == []
    world.ask(change((BROKER, "", [("log.retention.ms", AlterOp.SET, "5000")])))
    (after,) = world.ask(describe((BROKER, "", None))).results
    assert [(config.name, config.value) for config in after.configs] == [("log.retention.ms", "5000")]


def test_a_client_that_may_not_see_settings_sees_none(world: World) -> None:
    world.make_topic("t")
    world.services.authorizer = Refusing(
        (Operation.DESCRIBE_CONFIGS, Resource.TOPIC, "t"),
        (Operation.DESCRIBE_CONFIGS, Resource.CLUSTER, CLUSTER_NAME),
    )
    results = world.ask(describe((TOPIC, "t", None), (BROKER, "1", None))).results
    assert codes(results) == [
        (TOPIC, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (BROKER, "1", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ]
    assert all(result.configs == [] for result in results)


# -- AlterConfigs


def test_every_version_replaces_all_settings_of_a_topic(world: World) -> None:
    for version in range(3):
        name = f"t{version}"
        world.make_topic(name, retention_ms="1000")
        (result,) = world.ask(alter((TOPIC, name, {"segment.bytes": "2000000"})), version).responses
        assert (result.error_code, result.error_message) == (0, None)
        assert value(world, TOPIC, name, "segment.bytes") == ("2000000", ConfigSource.DYNAMIC_TOPIC)
        assert value(world, TOPIC, name, "retention.ms")[1] == ConfigSource.DEFAULT


def test_a_change_takes_effect_on_the_log_at_once(world: World) -> None:
    world.make_topic("t")
    world.ask(alter((TOPIC, "t", {"max.message.bytes": "100"})))
    assert world.append("t", value=b"x" * 200).error_code == ErrorCode.MESSAGE_TOO_LARGE
    world.ask(change((TOPIC, "t", [("max.message.bytes", AlterOp.DELETE, None)])))
    assert world.append("t", value=b"x" * 200).error_code == ErrorCode.NONE


def test_a_brokers_default_reaches_its_topics(make_world: MakeWorld) -> None:
    world = make_world(log_segment_bytes="3000000")
    world.make_topic("t")
    world.ask(change((BROKER, "1", [("log.segment.bytes", AlterOp.SET, "2000000")])))
    assert value(world, TOPIC, "t", "segment.bytes") == ("2000000", ConfigSource.DYNAMIC_BROKER)
    log = world.logs.get(TopicPartition("t", 0))
    assert log is not None
    assert log.config.segment_bytes == 2_000_000
    world.ask(change((BROKER, "1", [("log.segment.bytes", AlterOp.DELETE, None)])))
    assert value(world, TOPIC, "t", "segment.bytes") == ("3000000", ConfigSource.STATIC_BROKER)


def test_settings_that_are_wrong_change_nothing(world: World) -> None:
    world.make_topic("t", retention_ms="1000")
    responses = world.ask(
        alter(
            (TOPIC, "t", {"retention.ms": "7", "segment.bytes": "1"}),
            (TOPIC, "nope", {"retention.ms": "7"}),
            (TOPIC, "a b", {}),
            (TOPIC, "", {}),
            (BROKER, "1", {"log.dirs": "/elsewhere"}),
            (BROKER, "2", {}),
            (BROKER, "x", {}),
            (LOGGER, "1", {"root": "INFO"}),
            (77, "u", {}),
        )
    ).responses
    assert [ErrorCode(one.error_code) for one in responses] == [
        ErrorCode.INVALID_CONFIG,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        *[ErrorCode.INVALID_REQUEST] * 6,
    ]
    assert all(one.error_message for one in responses)
    assert value(world, TOPIC, "t", "retention.ms") == ("1000", ConfigSource.DYNAMIC_TOPIC)


def test_the_answers_have_the_order_of_the_request(world: World) -> None:
    world.make_topic("t")
    retention: dict[str, str | None] = {"retention.ms": "5"}
    asked = [(GROUP, "", {}), (TOPIC, "t", retention), (TOPIC, "a b", {}), (BROKER, "", {})]
    responses = world.ask(alter(*asked)).responses
    invalid = ErrorCode.INVALID_TOPIC_EXCEPTION
    assert codes(responses) == [
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ErrorCode.NONE),
        (TOPIC, "a b", invalid),
        (BROKER, "", ErrorCode.NONE),
    ]


def test_a_resource_given_twice_is_not_changed(world: World) -> None:
    world.make_topic("t")
    for request in (
        alter((TOPIC, "t", {"retention.ms": "1"}), (TOPIC, "t", {"retention.ms": "2"})),
        change(
            (TOPIC, "t", [("retention.ms", AlterOp.SET, "1")]),
            (TOPIC, "t", [("retention.ms", AlterOp.SET, "2")]),
        ),
    ):
        assert codes(world.ask(request).responses) == [(TOPIC, "t", ErrorCode.INVALID_REQUEST)] * 2
    assert value(world, TOPIC, "t", "retention.ms")[1] == ConfigSource.DEFAULT


def test_validate_only_changes_nothing(world: World) -> None:
    world.make_topic("t")
    for request in (
        alter((TOPIC, "t", {"retention.ms": "1"}), validate_only=True),
        change((TOPIC, "t", [("retention.ms", AlterOp.SET, "1")]), validate_only=True),
    ):
        assert codes(world.ask(request).responses) == [(TOPIC, "t", ErrorCode.NONE)]
    assert value(world, TOPIC, "t", "retention.ms")[1] == ConfigSource.DEFAULT


def test_a_client_without_alter_configs_changes_nothing(world: World) -> None:
    world.make_topic("t")
    world.services.authorizer = Refusing(
        (Operation.ALTER_CONFIGS, Resource.TOPIC, "t"),
        (Operation.ALTER_CONFIGS, Resource.CLUSTER, CLUSTER_NAME),
    )
    responses = world.ask(alter((TOPIC, "t", {"retention.ms": "1"}), (BROKER, "1", {}))).responses
    assert codes(responses) == [
        (TOPIC, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (BROKER, "1", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ]
    assert value(world, TOPIC, "t", "retention.ms")[1] == ConfigSource.DEFAULT


def test_a_store_that_fails_fails_every_change(world: World) -> None:
    world.make_topic("t")
    world.metadata.close(lambda: None)
    responses = world.ask(alter((TOPIC, "t", {"retention.ms": "1"}), (TOPIC, "a b", {}))).responses
    assert codes(responses) == [
        (TOPIC, "t", ErrorCode.UNKNOWN_SERVER_ERROR),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


# -- IncrementalAlterConfigs


def test_single_settings_are_set_added_to_taken_from_and_reset(world: World) -> None:
    world.make_topic("t", retention_ms="1000")
    for version in range(2):
        steps: list[tuple[list[tuple[str, int, str | None]], str, str]] = [
            ([("retention.ms", AlterOp.SET, "2000")], "delete", "2000"),
            ([("cleanup.policy", AlterOp.APPEND, "compact")], "delete,compact", "2000"),
            ([("cleanup.policy", AlterOp.SUBTRACT, "delete")], "compact", "2000"),
            ([("cleanup.policy", AlterOp.DELETE, None)], "delete", "2000"),
        ]
        for changes, policy, retention in steps:
            (response,) = world.ask(change((TOPIC, "t", changes)), version).responses
            assert (response.error_code, response.error_message) == (0, None)
            assert value(world, TOPIC, "t", "cleanup.policy")[0] == policy
            assert value(world, TOPIC, "t", "retention.ms")[0] == retention


WRONG: list[tuple[list[tuple[str, int, str | None]], str]] = [
    ([("retention.ms", 0, "1"), ("retention.ms", 1, None)], "INVALID_REQUEST"),
    ([("retention.ms", 0, None)], "INVALID_REQUEST"),
    ([("retention.ms", 2, "1")], "INVALID_CONFIG"),
    ([("retention.ms", 3, "1")], "INVALID_CONFIG"),
    ([("retention.ms", 0, "x")], "INVALID_CONFIG"),
    ([("nope", 0, "1")], "INVALID_CONFIG"),
    ([("nope", 1, None)], "NONE"),
    ([], "NONE"),
]


def test_wrong_changes_have_kafkas_codes(world: World) -> None:
    world.make_topic("t")
    for changes, code in WRONG:
        assert codes(world.ask(change((TOPIC, "t", changes))).responses) == [(TOPIC, "t", ErrorCode[code])]
