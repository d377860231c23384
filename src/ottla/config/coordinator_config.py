"""Settings of the coordinators: consumer groups, transactions, and the topics that keep them.

As in log_config.py, each field is also a row of the table. serving_config.py goes on from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.config.values import (
    ANY,
    BOOLEAN,
    INT,
    LIST,
    LONG,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    SHORT,
    STRING,
    at_least,
    broker_key,
    check_between,
    each_of,
    one_of_in_any_case,
)


# Only fields for `BrokerConfig`: methods of its own would take milliseconds of every start.
@dataclass(init=False, repr=False, eq=False, frozen=True, slots=True)
class CoordinatorConfig:
    """What a broker does for groups and transactions."""

    # A table: one row a key (the field's name with dots), kept in its own shape.
    # fmt: off
    group_min_session_timeout_ms: int = broker_key(INT, 6 * SECOND_MS, ANY,
        "The shortest session timeout that a member of a group may ask for.")
    group_max_session_timeout_ms: int = broker_key(INT, 30 * MINUTE_MS, ANY,
        "The longest session timeout that a member of a group may ask for.")
    group_initial_rebalance_delay_ms: int = broker_key(INT, 3 * SECOND_MS, ANY,
        "How long the first member of an empty group waits for others before it gets everything.")
    group_max_size: int = broker_key(INT, 1000, at_least(1),
        "How many members a group may have (in Kafka as many as like; here a part of a rebalance is done at one go).")
    group_consumer_session_timeout_ms: int = broker_key(INT, 45 * SECOND_MS, at_least(1),
        "How long a member of a consumer group (KIP-848) may be silent.")
    group_consumer_min_session_timeout_ms: int = broker_key(INT, 45 * SECOND_MS, at_least(1),
        "The shortest session timeout that a consumer group may be given.")
    group_consumer_max_session_timeout_ms: int = broker_key(INT, MINUTE_MS, at_least(1),
        "The longest session timeout that a consumer group may be given.")
    group_consumer_heartbeat_interval_ms: int = broker_key(INT, 5 * SECOND_MS, at_least(1),
        "How often the members of a consumer group are told to send a heartbeat.")
    group_consumer_min_heartbeat_interval_ms: int = broker_key(INT, 5 * SECOND_MS, at_least(1),
        "The shortest interval between heartbeats that a consumer group may be given.")
    group_consumer_max_heartbeat_interval_ms: int = broker_key(INT, 15 * SECOND_MS, at_least(1),
        "The longest interval between heartbeats that a consumer group may be given.")
    group_consumer_max_size: int = broker_key(INT, 1000, at_least(1),
        "How many members a consumer group may have (in Kafka as many as like).")
    group_consumer_assignors: tuple[str, ...] = broker_key(LIST, ("uniform", "range"), each_of("uniform", "range"),
        "Who may say which member of a consumer group gets what; the first one does where members do not ask.")
    group_consumer_migration_policy: str = broker_key(STRING, "bidirectional",
        one_of_in_any_case("disabled", "upgrade", "downgrade", "bidirectional"),
        "Whether groups at work may change from the classic to the consumer protocol, or back.")
    group_consumer_regex_refresh_interval_ms: int = broker_key(INT, 10 * MINUTE_MS, at_least(10 * SECOND_MS),
        "How often it is looked up which topics the patterns of consumer groups stand for.")
    offset_metadata_max_bytes: int = broker_key(INT, 4096, ANY,
        "The most text that may go with a committed offset.")
    offsets_retention_minutes: int = broker_key(INT, 7 * 24 * 60, at_least(1),
        "How long committed offsets are kept that no group needs any more.")
    offsets_retention_check_interval_ms: int = broker_key(LONG, 10 * MINUTE_MS, at_least(1),
        "How often offsets are looked for that need not be kept.")
    offsets_commit_timeout_ms: int = broker_key(INT, 5 * SECOND_MS, at_least(1),
        "How long a commit of offsets may wait for the replicas of the topic that keeps them.")
    offsets_topic_num_partitions: int = broker_key(INT, 50, at_least(1),
        "How many partitions `__consumer_offsets` is made with.")
    offsets_topic_replication_factor: int = broker_key(SHORT, 1, at_least(1),
        "How many replicas `__consumer_offsets` is made with; more than 1 is not there yet.")
    offsets_topic_segment_bytes: int = broker_key(INT, 100 * MIB, at_least(1),
        "The `segment.bytes` that `__consumer_offsets` is made with.")
    max_groups: int = broker_key(INT, 20_000, at_least(1),
        "ottla's own: how many groups a broker looks after, about 1 KB each; more are refused with "
        "GROUP_MAX_SIZE_REACHED.", name="ottla.max.groups")
    max_committed_offsets: int = broker_key(INT, 500_000, at_least(1),
        "ottla's own: how many committed offsets a broker keeps, of all groups, about 150 bytes each (250 bytes of the "
        "text that goes with one count as one more); others are refused with INVALID_COMMIT_OFFSET_SIZE.",
        name="ottla.max.committed.offsets")
    transaction_max_timeout_ms: int = broker_key(INT, 15 * MINUTE_MS, at_least(1),
        "The longest timeout that a transactional producer may ask for.")
    transactional_id_expiration_ms: int = broker_key(INT, 7 * 24 * 60 * MINUTE_MS, at_least(1),
        "How long a transactional id is remembered that nobody uses.")
    max_transactional_ids: int = broker_key(INT, 100_000, at_least(1),
        "ottla's own: how many transactional ids a broker remembers, about 300 bytes each (ten partitions of an open "
        "transaction count as one more); beyond that those are forgotten that were not used for 15 minutes after they "
        "began, then new ones refused with POLICY_VIOLATION.", name="ottla.max.transactional.ids")
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = broker_key(INT, 10 * SECOND_MS, at_least(1),
        "How often transactions are looked for that have timed out; they are aborted.")
    transaction_remove_expired_transaction_cleanup_interval_ms: int = broker_key(INT, 60 * MINUTE_MS, at_least(1),
        "How often transactional ids are looked for that need not be remembered.")
    transaction_partition_verification_enable: bool = broker_key(BOOLEAN, True, ANY,
        "Whether records of a transaction are refused in partitions that are no part of it.")
    transaction_state_log_num_partitions: int = broker_key(INT, 50, at_least(1),
        "How many partitions `__transaction_state` is made with.")
    transaction_state_log_replication_factor: int = broker_key(SHORT, 1, at_least(1),
        "How many replicas `__transaction_state` is made with; more than 1 is not there yet.")
    transaction_state_log_min_isr: int = broker_key(INT, 1, at_least(1),
        "The `min.insync.replicas` that `__transaction_state` is made with.")
    transaction_state_log_segment_bytes: int = broker_key(INT, 100 * MIB, at_least(1),
        "The `segment.bytes` that `__transaction_state` is made with.")
    # fmt: on

    def check_consumer_groups(self) -> None:
        """ConfigError where the settings of consumer groups do not fit together."""
        session_ms = self.group_consumer_session_timeout_ms
        low, high = self.group_consumer_min_session_timeout_ms, self.group_consumer_max_session_timeout_ms
        check_between("group.consumer.session.timeout.ms", session_ms, low, high)
        interval_ms = self.group_consumer_heartbeat_interval_ms
        low, high = (
            self.group_consumer_min_heartbeat_interval_ms,
            self.group_consumer_max_heartbeat_interval_ms,
        )
        check_between("group.consumer.heartbeat.interval.ms", interval_ms, low, min(high, session_ms - 1))
