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

Handler = Callable[[Services, Call, Any], Any]


class Api(NamedTuple):
    """One kind of request: its versions, and where its handler and its messages are found."""

    key: int
    name: str  # as in Kafka, "Produce"; messages are `ottla.protocol.messages.<snake case>.<name>Request`
    min_version: int
    max_version: int
    module: str  # under ottla.api


_HANDLERS: dict[int, Handler] = {}


def api(key: int) -> Callable[[Handler], Handler]:
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
    Api(0, "Produce", 0, 13, "produce.produce"),
    Api(1, "Fetch", 0, 18, "fetch.fetch"),
    Api(2, "ListOffsets", 1, 11, "list_offsets"),
    Api(3, "Metadata", 0, 13, "metadata"),
    Api(8, "OffsetCommit", 2, 10, "groups.commits"),
    Api(9, "OffsetFetch", 1, 10, "groups.offsets"),
    Api(10, "FindCoordinator", 0, 6, "groups.find_coordinator"),
    Api(11, "JoinGroup", 0, 9, "groups.classic"),
    Api(12, "Heartbeat", 0, 4, "groups.classic"),
    Api(13, "LeaveGroup", 0, 5, "groups.classic"),
    Api(14, "SyncGroup", 0, 5, "groups.classic"),
    Api(15, "DescribeGroups", 0, 6, "groups.admin"),
    Api(16, "ListGroups", 0, 5, "groups.admin"),
    Api(18, "ApiVersions", 0, 4, "api_versions"),
    Api(19, "CreateTopics", 2, 7, "topics"),
    Api(20, "DeleteTopics", 1, 6, "topics"),
    Api(21, "DeleteRecords", 0, 2, "delete_records"),
    Api(22, "InitProducerId", 0, 5, "transactions.init_producer_id"),
    Api(23, "OffsetForLeaderEpoch", 2, 4, "offset_for_leader_epoch"),
    Api(24, "AddPartitionsToTxn", 0, 5, "transactions.transactions"),
    Api(25, "AddOffsetsToTxn", 0, 4, "transactions.transactions"),
    Api(26, "EndTxn", 0, 5, "transactions.transactions"),
    Api(27, "WriteTxnMarkers", 1, 2, "transactions.transactions"),
    Api(28, "TxnOffsetCommit", 0, 5, "transactions.txn_offsets"),
    Api(32, "DescribeConfigs", 1, 4, "configs"),
    Api(33, "AlterConfigs", 0, 2, "alter_configs"),
    Api(34, "AlterReplicaLogDirs", 1, 2, "log_dirs"),
    Api(35, "DescribeLogDirs", 1, 4, "log_dirs"),
    Api(37, "CreatePartitions", 0, 3, "topics"),
    Api(42, "DeleteGroups", 0, 2, "groups.admin"),
    Api(44, "IncrementalAlterConfigs", 0, 1, "alter_configs"),
    Api(47, "OffsetDelete", 0, 0, "groups.offsets"),
    Api(60, "DescribeCluster", 0, 2, "cluster"),
    Api(61, "DescribeProducers", 0, 0, "transactions.admin"),
    Api(65, "DescribeTransactions", 0, 0, "transactions.admin"),
    Api(66, "ListTransactions", 0, 2, "transactions.admin"),
    Api(68, "ConsumerGroupHeartbeat", 0, 1, "groups.consumer"),
    Api(69, "ConsumerGroupDescribe", 0, 1, "groups.consumer"),
    Api(75, "DescribeTopicPartitions", 0, 0, "describe_topic_partitions"),
)}
# fmt: on
