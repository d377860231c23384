"""The settings of one log: Kafka's topic keys, as the typed fields of `LogConfig`.

Each field is at once the value that the hot path reads and the row of the table (name, type, default, check,
broker synonyms, meaning) that parsing and docs/configuration.md are made from. Names, defaults and checks are
those of Apache Kafka 4.2; `ottla.*` is our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.config.values import (
    ANY,
    BOOLEAN,
    DAY_MS,
    DOUBLE,
    GIB,
    HOUR_MS,
    INT,
    KIB,
    LONG,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    SET,
    STRING,
    Check,
    ConfigKey,
    Effective,
    Synonym,
    at_least,
    between,
    keys_by_field,
    one_of,
    resolve,
    some_of,
    topic_key,
)
from ottla.errors import ConfigError

NO_PROPERTIES: Mapping[str, str] = {}

_GZIP_LEVEL = Check("-1 (the codec's own default) or 1 to 9", (-1, *range(1, 10)).__contains__)
_UNLIMITED_OR_POSITIVE = Check("below 0 for no limit, or at least 1", lambda value: value != 0)


def _hours_to_ms(value: int) -> int:
    return value * HOUR_MS


def _retention_from(unit_ms: int) -> Any:
    """A broker may say "no limit" with any number below 0; the log knows only -1."""
    return lambda value: -1 if value < 0 else value * unit_ms


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log. `LogConfig()` has Kafka's defaults; `from_properties` checks what it is given.

    The constructor itself checks nothing: tests need segments smaller than a user may ask for.
    """

    # A table: one row a key (the field's name with dots), kept in its own shape.
    # fmt: off
    cleanup_policy: frozenset[str] = topic_key(
        SET, frozenset({"delete"}), some_of("compact", "delete"), ("log.cleanup.policy",),
        "What happens to old segments: `delete` drops them by age and size, `compact` keeps the newest value "
        "of each key, both do both, and an empty list keeps everything.")
    compression_type: str = topic_key(STRING, "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), ("compression.type",),
        "The codec that batches have on disk; `producer` keeps the one they came with.")
    compression_gzip_level: int = topic_key(INT, -1, _GZIP_LEVEL, ("compression.gzip.level",),
        "How hard gzip tries, when `compression.type` is `gzip`.")
    compression_lz4_level: int = topic_key(INT, 9, between(1, 17), ("compression.lz4.level",),
        "How hard lz4 tries, when `compression.type` is `lz4`.")
    compression_zstd_level: int = topic_key(INT, 3, between(-131072, 22), ("compression.zstd.level",),
        "How hard zstd tries, when `compression.type` is `zstd`.")
    delete_retention_ms: int = topic_key(LONG, DAY_MS, at_least(0), ("log.cleaner.delete.retention.ms",),
        "How long a compacted log keeps a tombstone after it was first cleaned, so that slow readers see it.")
    file_delete_delay_ms: int = topic_key(LONG, MINUTE_MS, at_least(0), ("log.segment.delete.delay.ms",),
        "How long a removed segment stays on disk under a `.deleted` name, for reads still under way.")
    flush_messages: int = topic_key(LONG, LONG_MAX, at_least(1), ("log.flush.interval.messages",),
        "Flush the log to disk once this many records are unflushed: the append that reaches the number is answered "
        "when they are on disk, and with 1 that is every append.")
    flush_ms: int = topic_key(LONG, LONG_MAX, at_least(0),
        (Synonym("log.flush.interval.ms", LONG, None, at_least(0)),
         Synonym("log.flush.scheduler.interval.ms", LONG, LONG_MAX, at_least(0))),
        "Flush a log that has unflushed records once this long has passed since its last flush; it is looked at "
        "that often (every 100 ms at the most), so no record waits for the disk more than twice as long.")
    index_interval_bytes: int = topic_key(INT, 4 * KIB, at_least(0), ("log.index.interval.bytes",),
        "About how many bytes of log lie between two entries of its indexes.")
    internal_segment_bytes: int | None = topic_key(INT, None, ANY, (),
        "For tests only: the segment size in place of `segment.bytes`, without its lower limit.")
    max_compaction_lag_ms: int = topic_key(LONG, LONG_MAX, at_least(1), ("log.cleaner.max.compaction.lag.ms",),
        "A record of a compacted log becomes due for cleaning at the latest after this time.")
    max_message_bytes: int = topic_key(INT, MIB + 12, at_least(0), ("message.max.bytes",),
        "The largest batch that may be appended, as it is on the wire.")
    message_timestamp_after_max_ms: int = topic_key(
        LONG, HOUR_MS, at_least(0), ("log.message.timestamp.after.max.ms",),
        "How far in the future a record's own timestamp may lie (`CreateTime` only).")
    message_timestamp_before_max_ms: int = topic_key(LONG, LONG_MAX, at_least(0),
        ("log.message.timestamp.before.max.ms",),
        "How far in the past a record's own timestamp may lie (`CreateTime` only).")
    message_timestamp_type: str = topic_key(STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"),
        ("log.message.timestamp.type",),
        "Whether records keep the time their producer gave them, or get the time of the append.")
    min_cleanable_dirty_ratio: float = topic_key(DOUBLE, 0.5, between(0, 1), ("log.cleaner.min.cleanable.ratio",),
        "A compacted log is cleaned once this share of its bytes has not been cleaned yet.")
    min_compaction_lag_ms: int = topic_key(LONG, 0, at_least(0), ("log.cleaner.min.compaction.lag.ms",),
        "A record of a compacted log is left alone for at least this time.")
    min_insync_replicas: int = topic_key(INT, 1, at_least(1), ("min.insync.replicas",),
        "How many replicas must be in sync before an append with `acks=all` is accepted.")
    decompression_max_bytes: int = topic_key(LONG, 128 * MIB, at_least(1), ("ottla.decompression.max.bytes",),
        "ottla's own: the most that one produced batch may decompress to; unpacking stops there and the "
        "batch is refused.", name="ottla.decompression.max.bytes")
    preallocate: bool = topic_key(BOOLEAN, False, ANY, ("log.preallocate",),
        "Whether a new segment's file reserves its full size at once.")
    retention_bytes: int = topic_key(LONG, -1, ANY, ("log.retention.bytes",),
        "With `delete`: the size of a partition above which its oldest segments go; below 0 for no limit.")
    retention_ms: int = topic_key(LONG, 7 * DAY_MS, at_least(-1),
        (Synonym("log.retention.ms", LONG, None, _UNLIMITED_OR_POSITIVE, _retention_from(1)),
         Synonym("log.retention.minutes", INT, None, _UNLIMITED_OR_POSITIVE, _retention_from(MINUTE_MS)),
         Synonym("log.retention.hours", INT, 168, _UNLIMITED_OR_POSITIVE, _retention_from(HOUR_MS))),
        "With `delete`: the age above which a segment is dropped; -1 for no limit.")
    segment_bytes: int = topic_key(INT, GIB, at_least(MIB), ("log.segment.bytes",),
        "The size at which a segment is closed and the next one begun.")
    segment_index_bytes: int = topic_key(INT, 10 * MIB, at_least(4), ("log.index.size.max.bytes",),
        "The space reserved for each index of the active segment; a full index also begins a new segment.")
    segment_jitter_ms: int = topic_key(LONG, 0, at_least(0),
        (Synonym("log.roll.jitter.ms", LONG, None, at_least(0)),
         Synonym("log.roll.jitter.hours", INT, 0, at_least(0), _hours_to_ms)),
        "A random part of up to this much is taken off `segment.ms`, so that logs do not all roll at once.")
    segment_ms: int = topic_key(LONG, 7 * DAY_MS, at_least(1),
        (Synonym("log.roll.ms", LONG, None, at_least(1)),
         Synonym("log.roll.hours", INT, 168, at_least(1), _hours_to_ms)),
        "The age at which a segment that is not empty is closed and the next one begun.")
    unclean_leader_election_enable: bool = topic_key(BOOLEAN, False, ANY, ("unclean.leader.election.enable",),
        "Whether a replica that is not in sync may become leader, at the price of losing records.")
    # fmt: on

    # Derived once, because every append and every roll asks for them.
    compact: bool = field(init=False, repr=False, compare=False)
    delete: bool = field(init=False, repr=False, compare=False)
    effective_segment_bytes: int = field(init=False, repr=False, compare=False)
    max_segment_ms: int = field(init=False, repr=False, compare=False)
    waits_for_flush: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__
        compact = "compact" in self.cleanup_policy
        internal = self.internal_segment_bytes
        derive(self, "compact", compact)
        derive(self, "delete", "delete" in self.cleanup_policy)
        derive(self, "effective_segment_bytes", self.segment_bytes if internal is None else internal)
        # The active segment is never cleaned, so a compacted log must roll before its lag limit.
        lag_limit_ms = self.max_compaction_lag_ms if compact else self.segment_ms
        derive(self, "max_segment_ms", min(self.segment_ms, lag_limit_ms))
        derive(self, "waits_for_flush", self.flush_messages != LONG_MAX)

    @classmethod
    def from_properties(
        cls, topic_props: Mapping[str, str], broker_props: Mapping[str, str] = NO_PROPERTIES
    ) -> LogConfig:
        """Checked settings: what the topic sets, else a broker synonym, else the default."""
        values = effective(topic_props, broker_props)
        config = cls(**{name: values[key.name].value for name, key in FIELDS.items()})
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise ConfigError(
                f"min.compaction.lag.ms = {config.min_compaction_lag_ms} is not allowed: it must be at most "
                f"max.compaction.lag.ms, which is {config.max_compaction_lag_ms}"
            )
        return config


FIELDS: dict[str, ConfigKey] = keys_by_field(LogConfig)
TOPIC_KEYS: dict[str, ConfigKey] = {key.name: key for key in FIELDS.values()}

# Topic keys of Kafka 4.2 that ottla does not have, and what they belong to.
UNSUPPORTED_TOPIC_KEYS: dict[str, str] = {
    "follower.replication.throttled.replicas": "replication quotas",
    "leader.replication.throttled.replicas": "replication quotas",
    "local.retention.bytes": "tiered storage",
    "local.retention.ms": "tiered storage",
    "remote.log.copy.disable": "tiered storage",
    "remote.log.delete.on.disable": "tiered storage",
    "remote.storage.enable": "tiered storage",
}


def effective(
    topic_props: Mapping[str, str], broker_props: Mapping[str, str] = NO_PROPERTIES
) -> dict[str, Effective]:
    """Every topic key with its value and where that comes from. Broker keys of other parts are ignored."""
    for name in topic_props:
        if name in UNSUPPORTED_TOPIC_KEYS:
            part = UNSUPPORTED_TOPIC_KEYS[name]
            raise ConfigError(f"{name} is a setting of Kafka that ottla does not have ({part}): remove it")
        if name not in TOPIC_KEYS:
            raise ConfigError(f"Unknown topic config name: {name}")
    return {key.name: resolve(key, topic_props, broker_props) for key in FIELDS.values()}
