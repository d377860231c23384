"""CreateTopics: what may be made, what comes back, and every way to be refused."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.conversation.talk import Talk, versions

KEY = CreateTopicsRequest.API_KEY
SHOWN = {"cleanup.policy", "retention.ms", "segment.bytes", "max.message.bytes"}
BAD_NAMES = {
    "empty": "",
    "a dot": ".",
    "two dots": "..",
    "a slash": "a/b",
    "250 letters": "x" * 250,
    "ä": "ä",
}
BAD_CONFIGS: dict[str, dict[str, str | None]] = {
    "an unknown config": {"no.such.thing": "1"},
    "a number that is none": {"retention.ms": "soon"},
    "a number too small": {"retention.ms": "-2"},
    "a word that is not allowed": {"cleanup.policy": "burn"},
    "a config without a value": {"retention.ms": None},
    "an empty value": {"cleanup.policy": ""},
    "a ratio above 1": {"min.cleanable.dirty.ratio": "1.5"},
    "a boolean that is none": {"preallocate": "maybe"},
    "a number with spaces": {"retention.ms": " 1000 "},
    "a number too large": {"segment.bytes": "99999999999"},
    "two policies": {"cleanup.policy": "compact,delete"},
    "a config of brokers": {"log.retention.ms": "1"},
    "tiered storage": {"remote.storage.enable": "true"},
    "old message format": {"message.format.version": "2.0"},
    "small segments": {"segment.bytes": "1000"},
    "followers are throttled": {"follower.replication.throttled.replicas": "*"},
}


def script(talk: Talk) -> None:
    talk.topic("__consumer_offsets", cleanup_policy="compact")
    for version in versions(KEY):
        _made(talk, version)
        _refused(talk, version)
        _assigned(talk, version)
        _configured(talk, version)
        _shapes(talk, version)
    everything = _topic("create-all-configs", 1, 1, {"retention.ms": "1000", "cleanup.policy": "compact"})
    talk.ask("all configs that come back", 7, _request(everything))
    talk.ask("no time at all", 7, _request(_topic("create-in-no-time"), timeout_ms=0), only=_shown)


def _topic(
    name: str, partitions: int = 1, factor: int = 1, configs: dict[str, str | None] | None = None
) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=settings)


def _request(
    *topics: CreatableTopic, validate_only: bool = False, timeout_ms: int = 30_000
) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def _shown(response: Any) -> None:
    """Most configs are the same each time."""
    for topic in response.topics:
        if topic.configs is not None:
            topic.configs[:] = [config for config in topic.configs if config.name in SHOWN]


def _made(talk: Talk, version: int) -> None:
    name = f"create-{version}"
    talk.ask("three partitions", version, _request(_topic(name, 3)), only=_shown)
    talk.ask("it is there", version, _request(_topic(name, 3)), only=_shown)
    talk.ask("it is there, only asked", version, _request(_topic(name, 3), validate_only=True), only=_shown)
    asked = _request(_topic(f"{name}-asked", 3), validate_only=True)
    talk.ask("only asked", version, asked, only=_shown)
    talk.ask("only asked again", version, asked, only=_shown)
    talk.ask("by default", version, _request(_topic(f"{name}-default", -1, -1)), only=_shown)
    talk.ask("249 letters", version, _request(_topic(f"{version}" * 249)), only=_shown)
    talk.ask("a dot", version, _request(_topic(f"create.{version}.x")), only=_shown)
    talk.ask("a collision", version, _request(_topic(f"create_{version}.x")), only=_shown)
    talk.ask(
        "an internal topic", version, _request(_topic("__consumer_offsets"), validate_only=True), only=_shown
    )


def _refused(talk: Talk, version: int) -> None:
    for step, name in BAD_NAMES.items():
        talk.ask(f"a bad name: {step}", version, _request(_topic(name)), only=_shown)
    for partitions in (0, -2, 2_000_000):
        request = _request(_topic("create-refused", partitions), validate_only=True)
        talk.ask(f"{partitions} partitions", version, request, only=_shown)
    for factor in (0, -2, 2, 3):
        request = _request(_topic("create-refused", 1, factor), validate_only=True)
        talk.ask(f"{factor} replicas", version, request, only=_shown)
    several = _topic("create-refused", 0), _topic(f"create-good-{version}"), _topic("a/b")
    talk.ask("good and bad", version, _request(*several), only=_shown)
    twice = _topic("create-twice"), _topic("create-twice", 2), _topic(f"create-once-{version}")
    talk.ask("a topic twice", version, _request(*twice), only=_shown)


def _assigned(talk: Talk, version: int) -> None:
    cases: dict[str, tuple[int, int, list[tuple[int, list[int]]]]] = {
        "two partitions by hand": (-1, -1, [(0, [1]), (1, [1])]),
        "by hand, out of order": (-1, -1, [(1, [1]), (0, [1])]),
        "by hand and counted": (2, 1, [(0, [1]), (1, [1])]),
        "by hand, with a count of partitions": (2, -1, [(0, [1]), (1, [1])]),
        "by hand, with a hole": (-1, -1, [(0, [1]), (2, [1])]),
        "by hand, not from 0 on": (-1, -1, [(1, [1])]),
        "by hand, one twice": (-1, -1, [(0, [1]), (0, [1])]),
        "by hand, an unknown broker": (-1, -1, [(0, [9])]),
        "by hand, a negative broker": (-1, -1, [(0, [-1])]),
        "by hand, a broker twice": (-1, -1, [(0, [1, 1])]),
        "by hand, no brokers": (-1, -1, [(0, [])]),
        "by hand, a negative partition": (-1, -1, [(-1, [1])]),
        "by hand, known and unknown brokers": (-1, -1, [(0, [1]), (1, [1, 9])]),
    }
    for number, (step, (partitions, factor, assigned)) in enumerate(cases.items()):
        topic = _topic(f"create-by-hand-{version}-{number}", partitions, factor)
        topic.assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=b) for i, b in assigned]
        talk.ask(step, version, _request(topic), only=_shown)


def _configured(talk: Talk, version: int) -> None:
    good: dict[str, str | None] = {"retention.ms": "1000", "cleanup.policy": "compact"}
    talk.ask("configs", version, _request(_topic(f"create-configs-{version}", 1, 1, good)), only=_shown)
    for number, (step, configs) in enumerate(BAD_CONFIGS.items()):
        topic = _topic(f"create-asked-{number}", 1, 1, configs)
        talk.ask(step, version, _request(topic, validate_only=True), only=_shown)
    twice = _topic("create-config-twice")
    twice.configs = [CreatableTopicConfig(name="retention.ms", value=value) for value in ("1", "2")]
    talk.ask("a config twice", version, _request(twice, validate_only=True), only=_shown)


def _shapes(talk: Talk, version: int) -> None:
    talk.ask("no topics", version, _request())
    talk.ask(
        "a negative time",
        version,
        _request(_topic("create-late"), timeout_ms=-1, validate_only=True),
        only=_shown,
    )
