"""Which requests are answered, in which versions, by what. ApiVersions is derived from this table.

A handler is registered where it is defined, with `@api`. Its module is imported at the first request of its kind, or
after the start (server/late_imports.py), so that a start loads nothing it does not need: `APIS` names the module of
every API.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.api.call import Call
from ottla.api.services import Services
from ottla.protocol.api_keys import ApiKey

Handler = Callable[[Services, Call, Any], Any]


class Api(NamedTuple):
    """One kind of request: its versions, and where its handler and its messages are found."""

    key: ApiKey
    name: str  # as in Kafka, "Produce"; messages are `ottla.protocol.messages.<snake case>.<name>Request`
    min_version: int
    max_version: int
    module: str  # under ottla.api


_HANDLERS: dict[int, Handler] = {}


def api(key: ApiKey) -> Callable[[Handler], Handler]:
    """Register the handler of an API of the table."""

    def register(handler: Handler) -> Handler:
        _HANDLERS[key] = handler
        return handler

    return register


def handler(entry: Api) -> Handler:
    """The handler of an API; its module is imported when it is first asked for."""
    found = _HANDLERS.get(entry.key)
    if found is None:
        importlib.import_module(f"ottla.api.{entry.module}")
        found = _HANDLERS[entry.key]
    return found


# fmt: off
APIS: dict[int, Api] = {entry.key: entry for entry in (
    Api(ApiKey.PRODUCE, "Produce", 0, 13, "produce.produce"),
    Api(ApiKey.FETCH, "Fetch", 0, 18, "fetch.fetch"),
    Api(ApiKey.LIST_OFFSETS, "ListOffsets", 1, 11, "list_offsets"),
    Api(ApiKey.METADATA, "Metadata", 0, 13, "metadata"),
    Api(ApiKey.OFFSET_COMMIT, "OffsetCommit", 2, 10, "groups.commits"),
    Api(ApiKey.OFFSET_FETCH, "OffsetFetch", 1, 10, "groups.offsets"),
    Api(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, "groups.find_coordinator"),
    Api(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, "groups.classic"),
    Api(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, "groups.classic"),
    Api(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, "groups.classic"),
    Api(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, "groups.classic"),
    Api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, "groups.admin"),
    Api(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, "groups.admin"),
    Api(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, "api_versions"),
    Api(ApiKey.CREATE_TOPICS, "CreateTopics", 2, 7, "topics"),
    Api(ApiKey.DELETE_TOPICS, "DeleteTopics", 1, 6, "topics"),
    Api(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, "delete_records"),
    Api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, "transactions.init_producer_id"),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 2, 4, "offset_for_leader_epoch"),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, "transactions.transactions"),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, "transactions.transactions"),
    Api(ApiKey.END_TXN, "EndTxn", 0, 5, "transactions.transactions"),
    Api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 1, 2, "transactions.transactions"),
    Api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 5, "transactions.txn_offsets"),
    Api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 1, 4, "configs"),
    Api(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, "alter_configs"),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 1, 2, "log_dirs"),
    Api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 1, 4, "log_dirs"),
    Api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, "topics"),
    Api(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, "groups.admin"),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, "alter_configs"),
    Api(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, "groups.offsets"),
    Api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, "cluster"),
    Api(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, "transactions.admin"),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, "transactions.admin"),
    Api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, "transactions.admin"),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, "groups.consumer"),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, "groups.consumer"),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, "describe_topic_partitions"),
)}
# fmt: on
