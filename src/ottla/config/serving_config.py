"""The settings of a broker as its clients meet it: who it is, where it listens, and what requests may ask for.

As in log_config.py, each field is also a row of the table. The settings of storage, and the one class that holds
both, are in broker_config.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.config.coordinator_config import CoordinatorConfig
from ottla.config.values import (
    ANY,
    BOOLEAN,
    INT,
    INT_MAX,
    LIST,
    LONG,
    MIB,
    MINUTE_MS,
    NOT_EMPTY,
    SECOND_MS,
    STRING,
    Check,
    Synonym,
    at_least,
    broker_key,
)

_PER_IP = re.compile(r"\s*(?:(?P<ip>[^,]+?)\s*:\s*(?P<count>[0-9]+))?\s*")


def _per_ip_counts(text: str) -> dict[str, int] | None:
    """`host:count,host:count` as a dictionary; None if it is not that. An address of IPv6 may have colons."""
    matches = [_PER_IP.fullmatch(part) for part in text.split(",")]
    if not all(matches) or ("," in text and not all(match and match["ip"] for match in matches)):
        return None
    return {match["ip"]: int(match["count"]) for match in matches if match and match["ip"]}


_PER_IP_COUNTS = Check("host:count pairs separated by commas", lambda text: _per_ip_counts(text) is not None)
_BUDGET = Check("-1 for no limit, or at least 1", lambda value: value == -1 or value >= 1)


# Only fields for `BrokerConfig`: methods of its own would take milliseconds of every start.
@dataclass(init=False, repr=False, eq=False, frozen=True, slots=True)
class ServingConfig(CoordinatorConfig):
    """What a broker says to the outside. `BrokerConfig` adds storage and checks them all."""

    # A table: one row a key (the field's name with dots), kept in its own shape.
    # fmt: off
    node_id: int = broker_key(INT, 1, at_least(0),
        "The number by which the cluster knows this broker.",
        (Synonym("broker.id", INT, -1, ANY),))
    broker_rack: str | None = broker_key(STRING, None, ANY,
        "The rack this broker stands in, told to clients that ask for the nearest replica.")
    listeners: tuple[str, ...] = broker_key(LIST, ("PLAINTEXT://:9092",), NOT_EMPTY,
        "Where the broker listens, as `NAME://host:port`; an empty host is every address of the machine.")
    advertised_listeners: tuple[str, ...] | None = broker_key(LIST, None, NOT_EMPTY,
        "Where clients are told to find the broker, if that is not what `listeners` says.")
    controller_listener_names: tuple[str, ...] = broker_key(LIST, (), ANY,
        "Which of the `listeners` in a Kafka file are its controller's; ottla has none and leaves them out.")
    auto_create_topics_enable: bool = broker_key(BOOLEAN, True, ANY,
        "Whether a topic that a client asks for, and that is not there, is made.")
    delete_topic_enable: bool = broker_key(BOOLEAN, True, ANY,
        "Whether topics can be deleted.")
    num_partitions: int = broker_key(INT, 1, at_least(1),
        "How many partitions a topic gets that does not say it.")
    default_replication_factor: int = broker_key(INT, 1, ANY,
        "How many replicas a topic gets that does not say it; more than 1 is not there yet.")
    socket_request_max_bytes: int = broker_key(INT, 100 * MIB, at_least(1),
        "The largest request; a connection that announces a larger one is closed.")
    socket_send_buffer_bytes: int = broker_key(INT, -1, ANY,
        "The operating system's send buffer of a connection; -1 leaves it to the system, which lets it grow, "
        "but is 256 KiB where only this machine can connect.")
    socket_receive_buffer_bytes: int = broker_key(INT, -1, ANY,
        "The operating system's receive buffer of a connection; -1 leaves it to the system, which lets it grow.")
    socket_listen_backlog_size: int = broker_key(INT, 50, at_least(1),
        "How many connections may wait to be accepted.")
    queued_max_request_bytes: int = broker_key(LONG, 128 * MIB, _BUDGET,
        "The memory for requests being received, waiting or unpacked, all together; past it connections are "
        "not read, and -1, Kafka's default, sets no limit.")
    connections_max_idle_ms: int = broker_key(LONG, 10 * MINUTE_MS, ANY,
        "How long a connection may be idle before it is closed; below 0 for ever.")
    max_connections: int = broker_key(INT, INT_MAX, at_least(0),
        "How many connections the broker takes at once, at most as many as about half of its descriptors.")
    max_connections_per_ip: int = broker_key(INT, INT_MAX, at_least(0),
        "How many connections one address may have at once.")
    max_connections_per_ip_overrides: str = broker_key(STRING, "", _PER_IP_COUNTS,
        "Other limits for some addresses, as in `127.0.0.1:200`.")
    fetch_max_bytes: int = broker_key(INT, 55 * MIB, at_least(1024),
        "The most bytes that one fetch is answered with, a first batch that is larger aside.")
    max_incremental_fetch_session_cache_slots: int = broker_key(INT, 1000, at_least(0),
        "How many fetch sessions are kept.")
    max_request_partition_size_limit: int = broker_key(INT, 2000, at_least(1),
        "The most partitions that one answer to DescribeTopicPartitions holds.")
    request_timeout_ms: int = broker_key(INT, 30 * SECOND_MS, ANY,
        "How long the broker waits for an answer of another broker.")
    producer_purgatory_purge_interval_requests: int = broker_key(INT, 1000, ANY,
        "After how many finished requests the waiting produce requests are swept.")
    fetch_purgatory_purge_interval_requests: int = broker_key(INT, 1000, ANY,
        "After how many finished requests the waiting fetches are swept.")
    delete_records_purgatory_purge_interval_requests: int = broker_key(INT, 1, ANY,
        "After how many finished requests the waiting deletions of records are swept.")
    replica_high_watermark_checkpoint_interval_ms: int = broker_key(LONG, 5 * SECOND_MS, ANY,
        "How often the high watermarks are written down.")
    max_partitions: int = broker_key(INT, -1, at_least(-1),
        "ottla's own: how many partitions the cluster may have for each of its brokers (-1: ten for each descriptor of "
        "the process, at most 100,000); more are refused with POLICY_VIOLATION.", name="ottla.max.partitions")
    serve_open: bool = broker_key(BOOLEAN, False, ANY,
        "ottla's own: whether data that `ottla adopt` took from a Kafka with TLS, SASL or ACLs is served without "
        "them, to everybody who can reach the broker.", name="ottla.serve.open")
    # fmt: on

    # What the settings were made from, for the defaults of topics and for showing where a value comes from.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def max_connections_from(self, address: str) -> int:
        """How many connections this address may have at once."""
        overrides = _per_ip_counts(self.max_connections_per_ip_overrides) or {}
        return overrides.get(address, self.max_connections_per_ip)
