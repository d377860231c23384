"""Which keys of a server.properties mean nothing here: Kafka's that have no effect, and those that nobody knows.

The names are those of Apache Kafka 4.2, and of older Kafkas whose files are still about. A misspelt key is not among
them, so it can be told apart from them, and the key that was meant can be named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.config.broker_config import BROKER_KEYS
from ottla.config.log_config import TOPIC_KEYS
from ottla.config.security import is_security_key
from ottla.errors import ConfigError

# Keys of the tables that are accepted, kept and shown, but change nothing; and why.
INERT_KEYS: dict[str, str] = {
    "log.cleaner.io.buffer.size": "the cleaner reads and writes in pieces of 4 MiB",
    "unclean.leader.election.enable": "a partition has one replica here, so there is no other to elect",
}

# Broker keys of Kafka that ottla does not have. Those of security are not here: security.py refuses them.
_NAMES = """
    alter.config.policy.class.name alter.config.policy.kafka.controller.only
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    auto.include.jmx.reporter auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms
    broker.id.generation.enable broker.session.timeout.ms client.quota.callback.class
    connection.failed.authentication.delay.ms control.plane.listener.name controlled.shutdown.enable
    controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms controller.max.records.per.batch
    controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
    controller.quorum.append.linger.ms controller.quorum.auto.join.enable
    controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
    controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
    controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
    controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
    controller.quota.window.num controller.quota.window.size.seconds controller.socket.timeout.ms
    create.topic.policy.class.name early.start.listeners
    eligible.leader.replicas.enable enable.fips.mode fetch.min.bytes follower.fetch.last.tiered.offset.enable
    group.consumer.assignment.interval.ms group.consumer.max.assignment.interval.ms
    group.consumer.min.assignment.interval.ms group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.coordinator.new.enable group.coordinator.rebalance.protocols group.coordinator.threads
    initial.broker.registration.timeout.ms inter.broker.protocol.version
    kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
    leader.imbalance.per.broker.percentage log.deletion.max.segments.per.run
    log.dir.failure.timeout.ms log.local.retention.bytes log.local.retention.ms
    log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms
    max.connection.creation.rate metadata.log.dir
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.log.segment.bytes metadata.log.segment.min.bytes metadata.log.segment.ms
    metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
    num.replica.alter.log.dirs.threads num.replica.fetchers offsets.load.buffer.size
    offsets.commit.required.acks offsets.topic.compression.codec queued.max.requests
    quota.consumer.default quota.producer.default quota.window.num quota.window.size.seconds
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms replica.fetch.backoff.ms
    replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
    replica.fetch.wait.max.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds reserved.broker.max.id server.max.startup.time.ms
    share.fetch.max.fetch.records share.fetch.purgatory.purge.interval.requests
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms telemetry.max.bytes
    transaction.state.log.load.buffer.size transaction.two.phase.commit.enable
    unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
    host.name port advertised.host.name advertised.port group.consumer.enable
"""
KAFKA_ONLY_KEYS = frozenset(_NAMES.split())

# Looked at when a broker starts, to refuse what it could not do.
CHECKED_KEYS = frozenset(
    {
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "process.roles",
        "security.inter.broker.protocol",
    }
)

# What begins like this is Kafka's as well: whole parts that ottla does not have, and the settings of plugins.
KAFKA_ONLY_FAMILIES = (
    "config.providers", "confluent.", "cruise.control.", "group.share.", "group.streams.", "internal.metadata.",
    "listener.name.", "password.encoder.", "remote.log.", "rlmm.config.", "rsm.config.", "share.coordinator.",
    "zookeeper.",
)  # fmt: skip


class OtherKeys(NamedTuple):
    """Keys that change nothing, of those that were given."""

    inert: list[str]  # Kafka's, or ours with a reason in `INERT_KEYS`
    unknown: dict[str, str | None]  # nobody's; with the key that may have been meant


def other_keys(given: Iterable[str]) -> OtherKeys:
    """Tell apart, among keys that were given, those that have no effect from those that nobody knows."""
    inert: list[str] = []
    unknown: dict[str, str | None] = {}
    for key in sorted(given):
        if key in INERT_KEYS or key in KAFKA_ONLY_KEYS or key.startswith(KAFKA_ONLY_FAMILIES):
            inert.append(key)
        elif key not in BROKER_KEYS and key not in CHECKED_KEYS and not is_security_key(key):
            unknown[key] = _meant(key)
    return OtherKeys(inert, unknown)


def _meant(key: str) -> str | None:
    """The broker's key that was probably meant: its name for a topic's setting, or the nearest spelling."""
    topic_key = TOPIC_KEYS.get(key)
    if topic_key is not None and topic_key.synonyms:
        return topic_key.synonyms[0].name
    import difflib  # only here: every start imports this module

    near = difflib.get_close_matches(key.lower().replace("_", "."), [*BROKER_KEYS, *KAFKA_ONLY_KEYS], 1, 0.8)
    return near[0] if near else None


def check_known(given: Iterable[str]) -> None:
    """ConfigError if nobody knows one of the keys: for settings that were typed by hand."""
    unknown = other_keys(given).unknown
    if unknown:
        raise ConfigError(f"neither ottla nor Kafka has the setting {unknown_text(unknown)}")


def unknown_text(unknown: dict[str, str | None]) -> str:
    """The unknown keys as a sentence has them, each with what may have been meant."""
    return ", ".join(f"{key} (did you mean {meant}?)" if meant else key for key, meant in unknown.items())
