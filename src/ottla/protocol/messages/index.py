"""Which messages there are. Written by tools/generate_messages.py; not to be edited."""

from __future__ import annotations

from typing import NamedTuple


class Api(NamedTuple):
    """Where the two messages of an API are found, their versions, and the first with the flexible encoding."""

    key: int
    name: str
    module: str
    min_version: int
    max_version: int
    flexible_since: int


# fmt: off
APIS: dict[int, Api] = {api.key: api for api in (
    Api(0, "Produce", "produce", 0, 13, 9),
    Api(1, "Fetch", "fetch", 0, 18, 12),
    Api(2, "ListOffsets", "list_offsets", 1, 11, 6),
    Api(3, "Metadata", "metadata", 0, 13, 9),
    Api(8, "OffsetCommit", "offset_commit", 2, 10, 8),
    Api(9, "OffsetFetch", "offset_fetch", 1, 10, 6),
    Api(10, "FindCoordinator", "find_coordinator", 0, 6, 3),
    Api(11, "JoinGroup", "join_group", 0, 9, 6),
    Api(12, "Heartbeat", "heartbeat", 0, 4, 4),
    Api(13, "LeaveGroup", "leave_group", 0, 5, 4),
    Api(14, "SyncGroup", "sync_group", 0, 5, 4),
    Api(15, "DescribeGroups", "describe_groups", 0, 6, 5),
    Api(16, "ListGroups", "list_groups", 0, 5, 3),
    Api(17, "SaslHandshake", "sasl_handshake", 0, 1, 2),
    Api(18, "ApiVersions", "api_versions", 0, 4, 3),
    Api(19, "CreateTopics", "create_topics", 2, 7, 5),
    Api(20, "DeleteTopics", "delete_topics", 1, 6, 4),
    Api(21, "DeleteRecords", "delete_records", 0, 2, 2),
    Api(22, "InitProducerId", "init_producer_id", 0, 5, 2),
    Api(23, "OffsetForLeaderEpoch", "offset_for_leader_epoch", 2, 4, 4),
    Api(24, "AddPartitionsToTxn", "add_partitions_to_txn", 0, 5, 3),
    Api(25, "AddOffsetsToTxn", "add_offsets_to_txn", 0, 4, 3),
    Api(26, "EndTxn", "end_txn", 0, 5, 3),
    Api(27, "WriteTxnMarkers", "write_txn_markers", 1, 2, 1),
    Api(28, "TxnOffsetCommit", "txn_offset_commit", 0, 5, 3),
    Api(32, "DescribeConfigs", "describe_configs", 1, 4, 4),
    Api(33, "AlterConfigs", "alter_configs", 0, 2, 2),
    Api(34, "AlterReplicaLogDirs", "alter_replica_log_dirs", 1, 2, 2),
    Api(35, "DescribeLogDirs", "describe_log_dirs", 1, 4, 2),
    Api(36, "SaslAuthenticate", "sasl_authenticate", 0, 2, 2),
    Api(37, "CreatePartitions", "create_partitions", 0, 3, 2),
    Api(42, "DeleteGroups", "delete_groups", 0, 2, 2),
    Api(44, "IncrementalAlterConfigs", "incremental_alter_configs", 0, 1, 1),
    Api(47, "OffsetDelete", "offset_delete", 0, 0, 1),
    Api(60, "DescribeCluster", "describe_cluster", 0, 2, 0),
    Api(61, "DescribeProducers", "describe_producers", 0, 0, 0),
    Api(65, "DescribeTransactions", "describe_transactions", 0, 0, 0),
    Api(66, "ListTransactions", "list_transactions", 0, 2, 0),
    Api(68, "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 0, 1, 0),
    Api(69, "ConsumerGroupDescribe", "consumer_group_describe", 0, 1, 0),
    Api(75, "DescribeTopicPartitions", "describe_topic_partitions", 0, 0, 0),
)}
# fmt: on
