"""All settings of a broker: those of serving_config.py, and of its storage (directories, background work, cleaner).

As in log_config.py, each field is also a row of the table. A broker's file also holds the defaults of topic
settings under other names (`log.roll.hours` for `segment.ms`); `BROKER_KEYS` lists those as well.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.config.log_config import TOPIC_KEYS
from ottla.config.security import refuse_security
from ottla.config.serving_config import ServingConfig
from ottla.config.values import (
    ANY,
    BOOLEAN,
    DAY_MS,
    DOUBLE,
    INT,
    KIB,
    LIST,
    LONG,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    NOT_EMPTY,
    SECOND_MS,
    Check,
    ConfigKey,
    at_least,
    between,
    broker_key,
    keys_by_field,
    resolve,
)
from ottla.errors import ConfigError

_SHARE = Check("above 0 and at most 1", lambda value: 0 < value <= 1)
_POSITIVE = Check("above 0", lambda value: value > 0)


@dataclass(frozen=True, slots=True)
class BrokerConfig(ServingConfig):
    """Settings of a whole broker. `from_properties` checks what it is given."""

    # A table: one row a key (the field's name with dots), kept in its own shape.
    # fmt: off
    log_dirs: tuple[str, ...] = broker_key(LIST, ("/tmp/kafka-logs",), NOT_EMPTY,
        "The directories that hold the partitions; one that fails goes offline and the others go on.",
        ("log.dir",))
    num_recovery_threads_per_data_dir: int = broker_key(INT, 2, between(1, 1000),
        "How many threads recover the larger partitions of one directory at start; at a stop eight flush, or as many.")
    log_flush_scheduler_interval_ms: int = broker_key(LONG, LONG_MAX, at_least(0),
        "The longest time between two looks for logs whose `flush.ms` has passed; also a default for `flush.ms`.")
    log_flush_offset_checkpoint_interval_ms: int = broker_key(INT, MINUTE_MS, at_least(0),
        "How often the recovery points, up to which logs are known to be flushed, are written down.")
    log_flush_start_offset_checkpoint_interval_ms: int = broker_key(INT, MINUTE_MS, at_least(0),
        "How often the first offsets of the logs are written down.")
    log_retention_check_interval_ms: int = broker_key(LONG, 5 * MINUTE_MS, at_least(1),
        "How often the broker looks for segments that retention allows to drop.")
    log_initial_task_delay_ms: int = broker_key(LONG, 30 * SECOND_MS, at_least(0),
        "How long after start the background work on logs begins; for tests.")
    log_cleaner_enable: bool = broker_key(BOOLEAN, True, ANY,
        "Whether compacted logs are cleaned at all; Kafka has deprecated turning it off.")
    log_cleaner_threads: int = broker_key(INT, 1, at_least(0),
        "How many logs are cleaned at the same time.")
    log_cleaner_dedupe_buffer_size: int = broker_key(LONG, 128 * MIB, ANY,
        "Memory for the cleaner's map of keys, shared by its threads; each must get more than 1 MiB.")
    log_cleaner_io_buffer_size: int = broker_key(INT, 512 * KIB, at_least(0),
        "Memory for the cleaner's reads and writes, shared by its threads.")
    log_cleaner_io_buffer_load_factor: float = broker_key(DOUBLE, 0.9, _SHARE,
        "How full the cleaner's map of keys may get before a pass ends.")
    log_cleaner_io_max_bytes_per_second: float = broker_key(DOUBLE, sys.float_info.max, _POSITIVE,
        "The reads and writes of all cleaner threads together stay below this rate on average.")
    log_cleaner_backoff_ms: int = broker_key(LONG, 15 * SECOND_MS, at_least(0),
        "How long the cleaner rests when no log needs it.")
    producer_id_expiration_ms: int = broker_key(INT, DAY_MS, at_least(1),
        "How long a log remembers an idempotent producer that has stopped writing, open transactions aside.")
    producer_id_expiration_check_interval_ms: int = broker_key(INT, 10 * MINUTE_MS, at_least(1),
        "How often expired producers are looked for; for tests.")
    max_producer_ids: int = broker_key(INT, 100_000, at_least(1),
        "ottla's own: how many producers all partitions together remember, 400 to 1,200 bytes each; beyond that the "
        "partitions that remember most forget those that were silent for the longest time, as if they had expired.",
        name="ottla.max.producer.ids")
    # fmt: on

    @classmethod
    def from_properties(cls, props: Mapping[str, str]) -> BrokerConfig:
        """Checked settings. Keys that are not a broker's are left alone: kafka_keys.py names them."""
        refuse_security(props)
        values = {name: resolve(key, props, props).value for name, key in FIELDS.items()}
        config = cls(**values, properties=dict(props))
        if config.node_id < 0:
            raise ConfigError(f"broker.id = {config.node_id} is not allowed: it must be at least 0")
        budget, largest = config.queued_max_request_bytes, config.socket_request_max_bytes
        if 0 < budget < largest:
            raise ConfigError(
                f"queued.max.request.bytes = {budget} is not allowed: it must be at least "
                f"socket.request.max.bytes, which is {largest}"
            )
        if config.log_cleaner_dedupe_buffer_size <= MIB * config.log_cleaner_threads:
            raise ConfigError(
                f"log.cleaner.dedupe.buffer.size = {config.log_cleaner_dedupe_buffer_size} is not allowed: "
                f"it must be more than {MIB} for each of log.cleaner.threads = {config.log_cleaner_threads}"
            )
        config.check_consumer_groups()
        return config


FIELDS: dict[str, ConfigKey] = keys_by_field(BrokerConfig)


def _with_synonyms(keys: dict[str, ConfigKey]) -> dict[str, ConfigKey]:
    """All that a broker's file may say about logs: its own keys, and the names it has for those of topics."""
    rows = dict(keys)
    for key in (*keys.values(), *TOPIC_KEYS.values()):
        doc = f"The value for topics that do not set `{key.name}`."
        if key.scope == "broker":
            doc = f"Used where `{key.name}` is not set."
        for synonym in key.synonyms:
            row = ConfigKey(synonym.name, synonym.type, synonym.default, synonym.check, doc, "broker")
            rows.setdefault(synonym.name, row)
            doc = f"Used where `{synonym.name}` is not set."
    return dict(sorted(rows.items()))


BROKER_KEYS: dict[str, ConfigKey] = _with_synonyms({key.name: key for key in FIELDS.values()})

# Kafka's own: not shown to those who ask for the settings of a broker or a topic, unless they are set.
INTERNAL_KEYS = frozenset(
    {
        "group.consumer.regex.refresh.interval.ms",
        "internal.segment.bytes",
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
    }
)

# What can be changed while the broker runs, for all brokers or for one; the list is Kafka's, as far as ottla has
# the keys. Kafka can also change `listeners`; here that takes a restart.
DYNAMIC_BROKER_KEYS = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "num.recovery.threads.per.data.dir",
        "producer.id.expiration.ms",
        # A topic's setting has one name that can change; hours and minutes are for the file.
        *(key.synonyms[0].name for key in TOPIC_KEYS.values() if key.synonyms),
        "transaction.partition.verification.enable",
    }
)
