"""IncrementalAlterConfigs and AlterConfigs: set, delete, append, subtract, and what they refuse."""

from __future__ import annotations

from ottla.protocol.messages import alter_configs as whole
from ottla.protocol.messages import incremental_alter_configs as incremental
from tests.conversation.say import BROKER, TOPIC, describe
from tests.conversation.talk import Talk, versions

SET, DELETE, APPEND, SUBTRACT = range(4)
DESCRIBE = 4
NAME = "alter"
SHOWN = ["retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes"]
BROKER_SHOWN = ["log.retention.ms", "message.max.bytes", "log.cleaner.threads", "log.segment.bytes"]

Change = tuple[str, int, str | None]
TOPIC_CHANGES: dict[str, list[Change]] = {
    "set": [("retention.ms", SET, "1000")],
    "set two": [("segment.bytes", SET, "2000000"), ("cleanup.policy", SET, "compact")],
    "append": [("cleanup.policy", APPEND, "delete")],
    "append what is there": [("cleanup.policy", APPEND, "delete")],
    "subtract": [("cleanup.policy", SUBTRACT, "compact")],
    "subtract what is not there": [("cleanup.policy", SUBTRACT, "compact")],
    "subtract the last": [("cleanup.policy", SUBTRACT, "delete")],
    "delete": [("retention.ms", DELETE, None)],
    "delete what is not set": [("retention.ms", DELETE, "")],
    "set and delete": [("retention.ms", SET, "7"), ("segment.bytes", DELETE, None)],
    "set to the default": [("max.message.bytes", SET, "1048588")],
}
REFUSED: dict[str, list[Change]] = {
    "a number that is none": [("retention.ms", SET, "soon")],
    "a number too small": [("retention.ms", SET, "-2")],
    "a word that is not allowed": [("cleanup.policy", SET, "burn")],
    "an unknown key": [("no.such.key", SET, "1")],
    "an unknown key deleted": [("no.such.key", DELETE, None)],
    "no value": [("retention.ms", SET, None)],
    "an empty value": [("cleanup.policy", SET, "")],
    "append to what is no list": [("retention.ms", APPEND, "1")],
    "subtract from what is no list": [("retention.ms", SUBTRACT, "1")],
    "append nothing": [("cleanup.policy", APPEND, None)],
    "an unknown operation": [("retention.ms", 9, "1")],
    "a negative operation": [("retention.ms", -1, "1")],
    "a key twice": [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
    "good and bad": [("retention.ms", SET, "5"), ("segment.bytes", SET, "x")],
    "no changes": [],
    "an empty key": [("", SET, "1")],
    "tiered storage": [("remote.storage.enable", SET, "true")],
    "a broker's key": [("log.retention.ms", SET, "1")],
}
BROKER_CHANGES: dict[str, list[Change]] = {
    "set": [("log.retention.ms", SET, "500000")],
    "set two": [("message.max.bytes", SET, "2000000"), ("log.cleaner.threads", SET, "2")],
    "a number that is none": [("message.max.bytes", SET, "x")],
    "a number too small": [("message.max.bytes", SET, "-1")],
    "a key that cannot change": [("node.id", SET, "2")],
    "another that cannot change": [("auto.create.topics.enable", SET, "false")],
    "an unknown key": [("no.such.key", SET, "1")],
    "a topic's key": [("retention.ms", SET, "1")],
    "delete": [("message.max.bytes", DELETE, None)],
    "delete all": [("log.retention.ms", DELETE, None), ("log.cleaner.threads", DELETE, None)],
    "delete what is not set": [("log.retention.ms", DELETE, None)],
}


def script(talk: Talk) -> None:
    for version in versions(incremental.IncrementalAlterConfigsRequest.API_KEY):
        _incremental(talk, version)
    for version in versions(whole.AlterConfigsRequest.API_KEY):
        _whole(talk, version)


def _change(
    kind: int, name: str, changes: list[Change], *, validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    configs = [
        incremental.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _incremental(talk: Talk, version: int) -> None:
    name = f"{NAME}-{version}"
    talk.topic(name)
    for step, changes in TOPIC_CHANGES.items():
        talk.ask(f"a topic: {step}", version, _change(TOPIC, name, changes))
        _look(talk, f"v{version} topic: {step}", TOPIC, name)
    for step, changes in REFUSED.items():
        talk.ask(f"a topic: {step}", version, _change(TOPIC, name, changes))
    _look(talk, f"v{version} topic: nothing of it", TOPIC, name)
    asked = _change(TOPIC, name, TOPIC_CHANGES["set"], validate_only=True)
    talk.ask("only asked", version, asked)
    talk.ask(
        "only asked for what is wrong",
        version,
        _change(TOPIC, name, REFUSED["good and bad"], validate_only=True),
    )
    _look(talk, f"v{version} topic: only asked", TOPIC, name)
    for broker in ("1", ""):
        for step, changes in BROKER_CHANGES.items():
            talk.ask(f"broker {broker!r}: {step}", version, _change(BROKER, broker, changes))
            _look(talk, f"v{version} broker {broker!r}: {step}", BROKER, "1")
        # Kafka takes them, and would show them to the next who asks.
        unknown: list[Change] = [(key, DELETE, None) for key in ("no.such.key", "retention.ms")]
        talk.request(version, _change(BROKER, broker, unknown))
    _wrong_resources(talk, version, name)


def _look(talk: Talk, step: str, kind: int, name: str) -> None:
    talk.settle()
    keys = SHOWN if kind == TOPIC else BROKER_SHOWN
    talk.ask(f"after {step}", DESCRIBE, describe(kind, name, keys, synonyms=True))


def _wrong_resources(talk: Talk, version: int, name: str) -> None:
    good = TOPIC_CHANGES["set"]
    for kind, resource in (
        *((TOPIC, "nowhere"), (TOPIC, "a/b"), (TOPIC, "")),
        *((BROKER, "2"), (BROKER, "x"), (BROKER, "-1"), (0, ""), (99, "x"), (1, "x")),
    ):
        talk.ask(f"type {kind}, {resource!r}", version, _change(kind, resource, good))
    talk.ask("no resources", version, incremental.IncrementalAlterConfigsRequest())
    several = _change(TOPIC, name, good)
    several.resources += _change(TOPIC, "nowhere", good).resources
    talk.ask("a topic that is there and one that is not", version, several)
    twice = _change(TOPIC, name, good)
    twice.resources += _change(TOPIC, name, TOPIC_CHANGES["delete"]).resources
    talk.ask("a topic twice", version, twice)


def _all(
    kind: int, name: str, configs: dict[str, str | None], *, validate_only: bool = False
) -> whole.AlterConfigsRequest:
    values = [whole.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = whole.AlterConfigsResource(resource_type=kind, resource_name=name, configs=values)
    return whole.AlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _whole(talk: Talk, version: int) -> None:
    name = f"{NAME}-whole-{version}"
    talk.topic(name, retention_ms="5")
    cases: dict[str, dict[str, str | None]] = {
        "two": {"segment.bytes": "2000000", "cleanup.policy": "compact"},
        "one in place of them": {"retention.ms": "7"},
        "none": {},
    }
    for step, configs in cases.items():
        talk.ask(f"all of a topic: {step}", version, _all(TOPIC, name, configs))
        _look(talk, f"v{version} all of a topic: {step}", TOPIC, name)
    wrong: dict[str, dict[str, str | None]] = {
        "a bad value": {"retention.ms": "soon"},
        "an unknown key": {"no.such.key": "1"},
        "no value": {"retention.ms": None},
    }
    for step, configs in wrong.items():
        talk.ask(f"all of a topic: {step}", version, _all(TOPIC, name, configs))
    talk.ask("all of a topic: only asked", version, _all(TOPIC, name, cases["two"], validate_only=True))
    _look(talk, f"v{version} all of a topic: only asked", TOPIC, name)
    for broker in ("1", ""):
        talk.ask(f"all of broker {broker!r}", version, _all(BROKER, broker, {"message.max.bytes": "3000000"}))
        _look(talk, f"v{version} all of broker {broker!r}", BROKER, "1")
        talk.ask(
            f"all of broker {broker!r}: a bad value",
            version,
            _all(BROKER, broker, {"message.max.bytes": "x"}),
        )
        talk.ask(f"all of broker {broker!r}: none", version, _all(BROKER, broker, {}))
    for kind, resource in (
        (TOPIC, "nowhere"),
        (TOPIC, "a/b"),
        (TOPIC, ""),
        (BROKER, "2"),
        (BROKER, "x"),
        (0, ""),
    ):
        talk.ask(f"type {kind}, {resource!r}", version, _all(kind, resource, {}))
    talk.ask("no resources", version, whole.AlterConfigsRequest())
    twice = _all(TOPIC, name, cases["two"])
    twice.resources += _all(TOPIC, name, {}).resources
    talk.ask("a topic twice", version, twice)
