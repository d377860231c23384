"""DescribeLogDirs (v1 to v4) and AlterReplicaLogDirs (v1 to v2): where partitions lie on this broker's disks.

DescribeLogDirs answers every log directory, with the partitions asked for that lie in it; null asks for all of them.
v3 brings an error for the whole request, v4 the size of each directory's file system. A partition that is being moved
is there twice, the new one with `is_future_key` and how far it is behind.

AlterReplicaLogDirs moves partitions from one directory of this broker to another while they are used: the answer says
that the move has begun, DescribeLogDirs how far it is. Of a partition that is given twice the last directory counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.replica.results import LogDirInfo, ReplicaSize


@api(ApiKey.DESCRIBE_LOG_DIRS)
def describe_log_dirs(services: Services, call: Call, request: DescribeLogDirsRequest) -> object:
    if not services.allows(call, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions
        }

    def done(log_dirs: Sequence[LogDirInfo]) -> None:
        call.reply(DescribeLogDirsResponse(results=[_log_dir(log_dir) for log_dir in log_dirs]))

    services.replicas.describe_log_dirs(wanted, done)
    return PENDING


def _log_dir(log_dir: LogDirInfo) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for replica in log_dir.replicas:
        topics.setdefault(replica.partition.topic, []).append(_replica(replica))
    return DescribeLogDirsResult(
        error_code=log_dir.error_code,
        log_dir=log_dir.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()],
        total_bytes=log_dir.total_bytes,
        usable_bytes=log_dir.usable_bytes,
    )


def _replica(replica: ReplicaSize) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=replica.partition.partition,
        partition_size=replica.size_bytes,
        offset_lag=replica.offset_lag,
        is_future_key=replica.is_future,
    )


@api(ApiKey.ALTER_REPLICA_LOG_DIRS)
def alter_replica_log_dirs(
    services: Services, call: Call, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    wanted = {
        TopicPartition(topic.name, number): log_dir.path
        for log_dir in request.dirs
        for topic in log_dir.topics
        for number in topic.partitions
    }
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for key, code in _alter(services, call, wanted).items():
        result = AlterReplicaLogDirPartitionResult(partition_index=key.partition, error_code=code)
        topics.setdefault(key.topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=found) for name, found in topics.items()
        ]
    )


def _alter(services: Services, call: Call, wanted: dict[TopicPartition, str]) -> dict[TopicPartition, int]:
    if not services.allows(call, Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return dict.fromkeys(wanted, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    image = services.metadata.image
    known = {key: path for key, path in wanted.items() if image.partition(key.topic, key.partition)}
    codes: dict[TopicPartition, int] = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {**codes, **services.replicas.alter_replica_log_dirs(known)}
