"""Settings of single groups: DescribeConfigs, AlterConfigs and IncrementalAlterConfigs of resources of kind GROUP."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages import alter_configs as whole
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.conversation.members import await_coordinator
from tests.conversation.modern_members import Modern
from tests.conversation.talk import Talk, versions

GROUP = 32
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE, APPEND = 0, 1, 2


def script(talk: Talk) -> None:
    await_coordinator(talk)
    talk.topic("group-configs")
    for version in versions(DescribeConfigsRequest.API_KEY):
        _describe(talk, "nothing set", version, "unset")
    for version in versions(whole.AlterConfigsRequest.API_KEY):
        _whole(talk, version)
    for version in versions(incremental.IncrementalAlterConfigsRequest.API_KEY):
        _incremental(talk, version)
    _describe(talk, "no name", 4, "")
    member = Modern(talk, "configured-1", "one")
    member.join("by the group's own interval", "group-configs")
    member.beat("leaves", member_epoch=-1)


def _describe(talk: Talk, step: str, version: int, group: str, keys: list[str] | None = None) -> None:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=group, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    talk.ask(f"{step} ({group})", version, request, only=_ours)


def _ours(response: Any) -> None:
    """Groups of other kinds have settings that ottla does not have."""
    for result in response.results:
        result.configs = [config for config in result.configs if config.name.startswith("consumer.")]


def _whole(talk: Talk, version: int) -> None:
    group = f"configured-whole-{version}"

    def alter(step: str, validate_only: bool = False, name: str = group, **settings: str | None) -> None:
        configs = [whole.AlterableConfig(name=_key(key), value=value) for key, value in settings.items()]
        resource = whole.AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=configs)
        talk.ask(step, version, whole.AlterConfigsRequest(resources=[resource], validate_only=validate_only))

    alter("one", session="50000")
    talk.settle()
    _describe(talk, "one is set", 4, group)
    alter("only checked", validate_only=True, session="55000")
    alter("the other", interval="6000")
    talk.settle()
    _describe(talk, "the other is set", 4, group)
    alter("too small", session="1000")
    alter("unknown", what="1")
    alter("no name", name="", session="50000")
    alter("nothing")


def _incremental(talk: Talk, version: int) -> None:
    group = f"configured-{version}"

    def alter(step: str, *changes: tuple[str, str | None, int], name: str = group) -> None:
        configs = [
            incremental.AlterableConfig(name=_key(key), value=value, config_operation=op)
            for key, value, op in changes
        ]
        resource = incremental.AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=configs)
        talk.ask(step, version, incremental.IncrementalAlterConfigsRequest(resources=[resource]))

    alter("both", ("session", "50000", SET), ("interval", "6000", SET))
    talk.settle()
    _describe(talk, "both are set", 4, group)
    _describe(talk, "only one is asked for", 4, group, [SESSION, "what"])
    alter("one is reset", ("session", None, DELETE))
    talk.settle()
    _describe(talk, "one is reset", 4, group)
    for step, key, value, op in (
        ("session too small", "session", "44999", SET),
        ("session too large", "session", "60001", SET),
        ("interval too small", "interval", "4999", SET),
        ("interval too large", "interval", "15001", SET),
        ("not a number", "interval", "often", SET),
        ("null", "interval", None, SET),
        ("an unknown key", "what", "1", SET),
        ("appended", "interval", "6000", APPEND),
        ("an unknown operation", "interval", "6000", 9),
        ("an unknown key is reset", "what", None, DELETE),
    ):
        alter(step, (key, value, op))
    alter("twice", ("interval", "6000", SET), ("interval", "7000", SET))
    alter("without name", ("interval", "6000", SET), name="")


def _key(name: str) -> str:
    return {"session": SESSION, "interval": INTERVAL}.get(name, name)
