"""Settings: Kafka's table, types, checks and precedence."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path

import pytest

from ottla.config import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    TOPIC_KEYS,
    BrokerConfig,
    ConfigKey,
    LogConfig,
    effective,
    parse,
    to_text,
)
from ottla.errors import ConfigError
from tools import generate_docs as docs

ROOT = Path(__file__).parent.parent
OURS = {
    "ottla.decompression.max.bytes",
    "ottla.max.committed.offsets",
    "ottla.max.groups",
    "ottla.max.partitions",
    "ottla.max.producer.ids",
    "ottla.max.transactional.ids",
    "ottla.serve.open",
}
# Kafka's default, and ours: Kafka wants to be told its id and its roles, sets no limit to its memory, and has
# replicas.
OTHER_DEFAULTS: dict[str, tuple[str, object]] = {
    "node.id": ("<none>", 1),
    "controller.listener.names": ("<none>", ()),
    "queued.max.request.bytes": ("-1", 128 << 20),
    "socket.receive.buffer.bytes": ("102400", -1),
    "socket.send.buffer.bytes": ("102400", -1),
    "group.max.size": ("2147483647", 1000),
    "group.consumer.max.size": ("2147483647", 1000),
    "offsets.topic.replication.factor": ("3", 1),
    "transaction.state.log.min.isr": ("2", 1),
    "transaction.state.log.replication.factor": ("3", 1),
}


def kafka_rows() -> list[dict[str, str]]:
    """What Apache Kafka 4.2.0 itself says: printed by its ConfigDef."""
    with (ROOT / "tests/data/kafka-4.2.0-settings.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def ours(row: dict[str, str]) -> ConfigKey:
    return (TOPIC_KEYS if row["scope"] == "topic" else BROKER_KEYS)[row["key"]]


def refused(key: ConfigKey, value: object) -> bool:
    try:
        parse(key, value)
    except ConfigError:
        return True
    return False


def test_the_keys_are_kafkas_and_some_of_our_own() -> None:
    rows = kafka_rows()
    assert set(TOPIC_KEYS) == {r["key"] for r in rows if r["scope"] == "topic"} | {
        "ottla.decompression.max.bytes"
    }
    assert set(BROKER_KEYS) == {r["key"] for r in rows if r["scope"] == "broker"} | OURS


@pytest.mark.parametrize("row", kafka_rows(), ids=lambda r: f"{r['scope']}:{r['key']}")
def test_a_key_has_kafkas_type_default_synonyms_and_range(row: dict[str, str]) -> None:
    key = ours(row)
    assert key.type.name == row["type"]
    if row["key"] == "log.dirs":  # Kafka's is null and stands for log.dir; ours says so outright
        assert key.default == BROKER_KEYS["log.dir"].default
    elif row["key"] in OTHER_DEFAULTS:
        assert (row["default"], key.default) == OTHER_DEFAULTS[row["key"]]
    elif row["default"] == "null":
        assert key.default is None
    elif row["type"] == "double":
        assert key.default == float(row["default"])
    else:
        assert to_text(key.default) == row["default"]
    if row["scope"] == "topic":
        assert ",".join(s.name for s in key.synonyms) == row["broker keys"]
    if match := re.match(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?]", row["check"]):
        low, high = int(match[1]), match[2] and int(match[2])
        assert not refused(key, low)
        assert refused(key, low - 1)
        assert refused(key, (high or 1 << 63) + 1)
        assert not refused(key, high or low + 1)


def test_defaults_pass_their_own_check_and_survive_text() -> None:
    for key in (*TOPIC_KEYS.values(), *BROKER_KEYS.values()):
        if key.default is not None:
            assert parse(key, to_text(key.default)) == key.default
            assert parse(key, key.default) == key.default


def test_every_key_is_explained_in_one_sentence() -> None:
    for key in (*TOPIC_KEYS.values(), *BROKER_KEYS.values()):
        assert key.doc.endswith("."), key.name
        assert ". " not in key.doc, key.name


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("segment.bytes", " 2097152 ", 2097152),
        ("segment.ms", "+7", 7),
        ("retention.bytes", "-5", -5),
        ("flush.ms", "9223372036854775807", 2**63 - 1),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("min.cleanable.dirty.ratio", ".5", 0.5),
        ("min.cleanable.dirty.ratio", "1", 1.0),
        ("cleanup.policy", "compact , delete", frozenset({"compact", "delete"})),
        ("cleanup.policy", "", frozenset()),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
    ],
)
def test_text_is_read_as_kafka_reads_it(name: str, text: str, value: object) -> None:
    parsed = parse(TOPIC_KEYS[name], text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "1048575"),
        ("segment.bytes", "2147483648"),  # an int has 32 bits
        ("segment.bytes", "2_000_000"),
        ("segment.bytes", "2e6"),
        ("segment.bytes", "٢٠٠٠٠٠٠"),  # only ASCII digits
        ("segment.bytes", ""),
        ("segment.bytes", True),
        ("segment.bytes", 2e6),
        ("segment.bytes", None),
        ("flush.ms", "9223372036854775808"),
        ("preallocate", "yes"),
        ("preallocate", 1),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "1e999"),
        ("min.cleanable.dirty.ratio", float("nan")),
        ("cleanup.policy", "compact,compact"),
        ("cleanup.policy", "compact,,delete"),
        ("cleanup.policy", "compress"),
        ("cleanup.policy", "Compact"),
        ("cleanup.policy", 5),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.type", "none"),
        ("compression.type", 4),
        ("message.timestamp.type", "createtime"),
    ],
)
def test_a_wrong_value_is_refused_with_key_value_and_what_is_allowed(name: str, value: object) -> None:
    key = TOPIC_KEYS[name]
    with pytest.raises(ConfigError) as error:
        parse(key, value)
    message = str(error.value)
    assert name in message
    assert repr(value) in message
    assert key.type.meaning in message
    assert key.check.allowed in message


def test_a_topic_setting_beats_a_broker_setting_beats_the_default() -> None:
    broker = {"log.segment.bytes": "3000000", "log.retention.hours": "2", "listeners": "PLAINTEXT://:9092"}
    config = LogConfig.from_properties({"segment.bytes": "2000000"}, broker)
    assert (config.segment_bytes, config.retention_ms, config.flush_messages) == (
        2000000,
        7_200_000,
        2**63 - 1,
    )
    assert LogConfig.from_properties({}) == LogConfig()


def test_the_strongest_broker_synonym_wins() -> None:
    every = {"log.retention.ms": "5", "log.retention.minutes": "4", "log.retention.hours": "3"}
    assert LogConfig.from_properties({}, every).retention_ms == 5
    del every["log.retention.ms"]
    assert LogConfig.from_properties({}, every).retention_ms == 240_000
    del every["log.retention.minutes"]
    assert LogConfig.from_properties({}, every).retention_ms == 3 * 3_600_000
    rolls = {"log.roll.ms": "9", "log.roll.hours": "1", "log.roll.jitter.hours": "1"}
    assert LogConfig.from_properties({}, rolls).segment_ms == 9
    assert LogConfig.from_properties({}, rolls).segment_jitter_ms == 3_600_000
    assert LogConfig.from_properties({}, {"log.flush.scheduler.interval.ms": "8"}).flush_ms == 8


def test_a_wrong_broker_setting_is_refused_even_when_another_wins_over_it() -> None:
    with pytest.raises(ConfigError, match=r"log\.roll\.hours"):
        LogConfig.from_properties({"segment.ms": "5"}, {"log.roll.ms": "9", "log.roll.hours": "x"})


def test_a_broker_says_no_time_limit_with_any_negative_number_but_never_with_zero() -> None:
    assert LogConfig.from_properties({}, {"log.retention.minutes": "-7"}).retention_ms == -1
    assert LogConfig.from_properties({"retention.ms": "0"}).retention_ms == 0
    with pytest.raises(ConfigError, match=r"log\.retention\.ms"):
        LogConfig.from_properties({}, {"log.retention.ms": "0"})


def test_an_unknown_topic_setting_is_refused_and_unknown_broker_settings_are_not_ours() -> None:
    with pytest.raises(ConfigError, match=r"Unknown topic config name: segment\.byte$"):
        LogConfig.from_properties({"segment.byte": "1"})
    with pytest.raises(ConfigError, match=r"does not have \(tiered storage\)"):
        LogConfig.from_properties({"remote.storage.enable": "true"})
    assert LogConfig.from_properties({}, {"segment.byte": "1"}) == LogConfig()


def test_the_compaction_lags_must_not_cross() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms = 6 .*lag\.ms, which is 5"):
        LogConfig.from_properties({"min.compaction.lag.ms": "6"}, {"log.cleaner.max.compaction.lag.ms": "5"})


def test_effective_settings_name_their_source() -> None:
    values = effective({"segment.ms": "5"}, {"log.roll.hours": "1", "log.retention.hours": "1"})
    assert values["segment.ms"] == (5, "topic")
    assert values["retention.ms"] == (3_600_000, "broker")
    assert values["segment.bytes"] == (1 << 30, "default")


def test_derived_fields_follow_their_sources() -> None:
    plain = LogConfig()
    assert (plain.compact, plain.delete, plain.effective_segment_bytes) == (False, True, 1 << 30)
    both = LogConfig.from_properties({"cleanup.policy": "compact,delete", "max.compaction.lag.ms": "7"})
    assert (both.compact, both.delete, both.max_segment_ms) == (True, True, 7)
    small = dataclasses.replace(both, internal_segment_bytes=100, cleanup_policy=frozenset())
    assert (small.compact, small.delete, small.effective_segment_bytes) == (False, False, 100)
    assert small.max_segment_ms == small.segment_ms


def test_broker_settings_come_from_the_file_a_broker_has() -> None:
    config = BrokerConfig.from_properties({"log.dir": "/a", "log.cleaner.threads": "2", "node.id": "1"})
    assert config.log_dirs == ("/a",)
    assert config.log_cleaner_threads == 2
    assert BrokerConfig.from_properties({"log.dirs": "/b, /c", "log.dir": "/a"}).log_dirs == ("/b", "/c")
    assert BrokerConfig.from_properties({}) == BrokerConfig()
    with pytest.raises(ConfigError, match=r"log\.dirs"):
        BrokerConfig.from_properties({"log.dirs": ""})


def test_a_broker_is_known_by_its_node_id_or_by_the_older_name_for_it() -> None:
    assert BrokerConfig.from_properties({"broker.id": "4"}).node_id == 4
    assert BrokerConfig.from_properties({"broker.id": "4", "node.id": "5"}).node_id == 5
    with pytest.raises(ConfigError, match=r"broker\.id = -1 "):
        BrokerConfig.from_properties({"broker.id": "-1"})


def test_the_budget_for_requests_holds_at_least_one_of_the_largest() -> None:
    with pytest.raises(
        ConfigError, match=r"queued\.max\.request\.bytes = 5 .*socket\.request\.max\.bytes, which is 6"
    ):
        BrokerConfig.from_properties({"queued.max.request.bytes": "5", "socket.request.max.bytes": "6"})
    with pytest.raises(ConfigError, match=r"queued\.max\.request\.bytes = '0'"):
        BrokerConfig.from_properties({"queued.max.request.bytes": "0"})
    assert BrokerConfig.from_properties({"queued.max.request.bytes": "-1"}).queued_max_request_bytes == -1


def test_single_addresses_can_have_a_limit_of_their_own() -> None:
    limits = {"max.connections.per.ip": "9", "max.connections.per.ip.overrides": "10.0.0.1:2, ::1:0"}
    config = BrokerConfig.from_properties(limits)
    assert [config.max_connections_from(host) for host in ("10.0.0.1", "::1", "10.0.0.2")] == [2, 0, 9]
    for wrong in ("10.0.0.1", "10.0.0.1:", "10.0.0.1:-1", "10.0.0.1:1,", ":5"):
        with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
            BrokerConfig.from_properties({"max.connections.per.ip.overrides": wrong})


def test_what_can_change_while_the_broker_runs_is_kafkas_list() -> None:
    with (ROOT / "tests/data/kafka-4.2.0-dynamic-keys.txt").open(encoding="utf-8") as file:
        kafkas = set(file.read().split())
    ours = {"ottla.decompression.max.bytes"}
    assert (kafkas & set(BROKER_KEYS) - {"listeners"}) | ours == DYNAMIC_BROKER_KEYS


def test_each_cleaner_thread_needs_more_than_a_mebibyte() -> None:
    two = {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": str(2 << 20)}
    with pytest.raises(ConfigError, match=r"log\.cleaner\.dedupe\.buffer\.size = 2097152"):
        BrokerConfig.from_properties(two)
    one_more = {**two, "log.cleaner.dedupe.buffer.size": str((2 << 20) + 1)}
    assert BrokerConfig.from_properties(one_more).log_cleaner_threads == 2


def test_the_configuration_page_is_up_to_date() -> None:
    page = (ROOT / docs.PAGE).read_text(encoding="utf-8")
    assert page == docs.configuration_page(), "run `make docs`"
