"""DescribeConfigs: every key of a topic and a broker, its value, its source and its synonyms."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.conversation.say import BROKER, BROKER_LOGGER, TOPIC, describe
from tests.conversation.talk import Talk, versions

KEY = DescribeConfigsRequest.API_KEY
NEWEST = 4
NAME = "describe"
KEYS = ["retention.ms", "cleanup.policy", "segment.bytes", "min.insync.replicas"]
BROKER_KEYS = ["log.retention.ms", "message.max.bytes", "node.id", "log.segment.bytes", "num.partitions"]
PLACES = {
    "listeners", "advertised.listeners", "controller.quorum.voters", "controller.listener.names", "log.dirs", "log.dir",
}  # fmt: skip
OTHER_RESOURCES = {
    "nothing": (0, ""),
    "a type that is not there": (99, "x"),
    "a type for any": (1, "x"),
    "a broker's logger": (BROKER_LOGGER, "9"),
}


def script(talk: Talk) -> None:
    talk.topic(NAME, retention_ms="1000", cleanup_policy="compact,delete")
    for version in versions(KEY):
        for synonyms in (False, True):
            step = "with synonyms" if synonyms else "without synonyms"
            talk.ask(f"a topic {step}", version, describe(TOPIC, NAME, KEYS, synonyms=synonyms))
            talk.ask(f"a broker {step}", version, describe(BROKER, "1", BROKER_KEYS, synonyms=synonyms))
        documented = describe(TOPIC, NAME, KEYS, documentation=version >= 3)
        talk.ask("with documentation", version, documented)
        _unknown(talk, version)
        _shapes(talk, version)
    talk.ask("all of a topic", NEWEST, describe(TOPIC, NAME, None, synonyms=True))
    talk.ask("all of a broker", NEWEST, describe(BROKER, "1", None, synonyms=True), only=_without_places)
    talk.ask("all defaults of brokers", NEWEST, describe(BROKER, "", None, synonyms=True))


def _without_places(response: Any) -> None:
    """Ports and directories are each broker's own."""
    configs = response.results[0].configs
    configs[:] = [config for config in configs if config.name not in PLACES]


def _unknown(talk: Talk, version: int) -> None:
    talk.ask("keys that are not there", version, describe(TOPIC, NAME, ["no.such.key", "retention.ms"]))
    talk.ask("no keys", version, describe(TOPIC, NAME, []))
    for step, name in (("unknown", "nowhere"), ("impossible", "a/b"), ("empty", "")):
        talk.ask(f"an {step} topic", version, describe(TOPIC, name, KEYS))
    for name in ("", "2", "x", "-1"):
        talk.ask(f"broker {name!r}", version, describe(BROKER, name, BROKER_KEYS))
    for step, (resource_type, name) in OTHER_RESOURCES.items():
        talk.ask(step, version, describe(resource_type, name, []))


def _shapes(talk: Talk, version: int) -> None:
    talk.ask("no resources", version, DescribeConfigsRequest())
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=KEYS)
        for kind, name in ((TOPIC, NAME), (TOPIC, "nowhere"), (BROKER, "1"))
    ]
    talk.ask("several resources", version, DescribeConfigsRequest(resources=resources))
    twice = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=NAME, configuration_keys=[key])
        for key in KEYS[:2]
    ]
    talk.ask("a resource twice", version, DescribeConfigsRequest(resources=twice))
