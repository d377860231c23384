"""The differences that are known, with the reason for each: docs/compatibility.md is made from this table.

An entry covers a difference if all its patterns match as a whole: of the step ("Produce v9: acks 2"), of the field's
path, and of what the two brokers say. Every difference needs an entry, and every entry a difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.conversation.compare import Difference

ANY = r".*"


@dataclass(frozen=True)
class Known:
    """One kind of difference."""

    title: str
    kafka_does: str
    ottla_does: str
    reason: str
    step: str
    path: str = ANY
    kafka: str = ANY
    ottla: str = ANY

    def covers(self, found: Difference) -> bool:
        return all(
            re.fullmatch(pattern, text, re.DOTALL)
            for pattern, text in (
                (self.step, found.step),
                (self.path, found.path),
                (self.kafka, found.kafka),
                (self.ottla, found.ottla),
            )
        )


MORE = "What ottla does that Kafka 4.2 does not"
LATER = "What ottla does not have"
OTHERWISE = "What ottla does otherwise"
CLEARER = "Where Kafka fails, and ottla says why"

SECTIONS: dict[str, tuple[Known, ...]] = {
    MORE: (
        Known(
            "Produce v0 to v2",
            "Names them in ApiVersions, and closes the connection when they are used.",
            "Serves them: messages of magic 0 and 1 are stored as magic 2.",
            "Old clients go on working, and librdkafka compresses only where it sees these versions.",
            step=r"Produce v[0-2]: .*",
            kafka='"the connection is closed"',
        ),
        Known(
            "Fetch v0 to v3",
            "Does not have them any more.",
            "Serves them: records are converted to magic 0 or 1.",
            "Old clients go on working.",
            step=r"Fetch v[0-3]: .*",
            kafka='"the connection is closed"',
        ),
        Known(
            "Fetch v0 to v3 in ApiVersions",
            "Fetch begins at v4.",
            "Fetch begins at v0.",
            "What is served is named.",
            step=r"ApiVersions v.*",
            path=r"api_keys\.1\.min_version",
            kafka="4",
        ),
        Known(
            "Settings of ottla's own",
            "Does not have them.",
            "`ottla.decompression.max.bytes` caps what a compressed batch may unpack to; `ottla.serve.open` says that "
            "what was adopted from a guarded Kafka may be served openly.",
            "A few bytes from a stranger must not fill the memory, and nothing is opened by mistake.",
            step=r"(CreateTopics|DescribeConfigs) v.*",
            path=r".*\.configs\.ottla\..*",
        ),
        Known(
            "Error messages of produce",
            "Leaves the message empty where the form of the records is wrong.",
            "Says what is wrong.",
            "The code is the same; a message helps whoever has to find out.",
            step=r"Produce v\d+: .*",
            path=r".*\.partition_responses\.\d+\.error_message",
            kafka=r"\(default\)",
            ottla='"text"',
        ),
    ),
    LATER: (
        Known(
            "APIs that are not there yet",
            "Serves ACLs, quotas, SCRAM, delegation tokens, reassignments, elections, share "
            "groups and the rest.",
            "Names in ApiVersions only what it serves.",
            "They come with later parts of ottla, share groups and delegation tokens are not planned.",
            step=r"ApiVersions v.*",
            path=r"api_keys\.\d+",
            ottla=r"\(default\)",
        ),
        Known(
            "Features",
            "Names the features of its cluster (`metadata.version` and others) and their levels.",
            "Names `group.version` and `transaction.version` only.",
            "There is no KRaft metadata whose format would have to be agreed on.",
            step=r"ApiVersions v[34]: .*",
            path=r"(supported|finalized)_features(\..*)?",
            ottla=r"\(default\)",
        ),
        Known(
            "Tiered storage",
            "Has its topic settings even where it is turned off.",
            "Does not have them.",
            "Tiered storage is not planned; what has no effect is not shown.",
            step=r"(CreateTopics|DescribeConfigs) v.*",
            path=r".*\.configs\.(remote|local)\..*",
            ottla=r"\(default\)",
        ),
        Known(
            "Throttled replicas",
            "Has `leader.` and `follower.replication.throttled.replicas`.",
            "Refuses them with INVALID_CONFIG, and does not show them.",
            "They come with replication.",
            step=r"CreateTopics v\d+: followers are throttled|(CreateTopics|DescribeConfigs) v.*",
            path=r".*\.configs\.(leader|follower)\.replication\.throttled\.replicas",
            ottla=r"\(default\)",
        ),
        Known(
            "A topic with throttled replicas",
            "Makes it.",
            "Refuses it with INVALID_CONFIG.",
            "As before: what would have no effect is refused, not ignored.",
            step=r"CreateTopics v\d+: followers are throttled",
        ),
        Known(
            "Broker settings",
            "Has some 300.",
            "Has those that mean something here; see [configuration](configuration.md).",
            "What would have no effect is not shown.",
            step=r"DescribeConfigs v4: all of a broker",
            path=r"results\.1\.configs\.[a-z.]*",
            ottla=r"\(default\)",
        ),
    ),
    OTHERWISE: (
        Known(
            "Large patterns of topics",
            "Takes patterns of any size, and looks topics up in threads of their own.",
            "INVALID_REGULAR_EXPRESSION for patterns of more than 5000 characters or 2000 states.",
            "Topics are looked up between other work, in time that grows with the name and the pattern only; "
            "a pattern must not be able to take all of it. The syntax is RE2's, as in Kafka.",
            step=r"ConsumerGroupHeartbeat v1: a (long pattern|pattern with many states)",
        ),
        Known(
            "Offsets that fall inside a batch",
            "Stores a batch whose records have falling offsets as it is.",
            "INVALID_RECORD.",
            "Such a batch breaks consumers and the log's own tools, and can only come from a broken client.",
            step=r"(Produce v\d+: |Fetch v12: what is kept of: )offsets that fall",
        ),
        Known(
            "The largest timestamp of records with negative timestamps",
            "Writes -1 into the header of the batch.",
            "Keeps what the producer wrote.",
            "Neither can be found by time; the producer's batch is not changed without need.",
            step=r"Fetch v12: what is kept of: timestamp negative",
        ),
        Known(
            "A topic of zstd batches for a client that does not know zstd",
            "Sends the batches.",
            "UNSUPPORTED_COMPRESSION_TYPE where the topic's compression.type is zstd, as Kafka 2.1 to 3.9.",
            "An error can be understood, the batches can not.",
            step=r"Fetch v9: as zstd for a client that does not know zstd",
        ),
        Known(
            "Blanks around a setting's value",
            "Shows them, and ignores them.",
            "Shows the value as it is understood.",
            "The value is the same.",
            step=r"CreateTopics v\d+: a number with spaces",
            path=r".*\.value",
        ),
        Known(
            "No time to create a topic",
            "REQUEST_TIMED_OUT if the request leaves no time, and the topic is not made.",
            "Makes the topic, in the time that it takes.",
            "There is no controller elsewhere that would have to be waited for.",
            step=r"CreateTopics v\d+: (a negative time|no time at all)",
        ),
        Known(
            "The default of min.insync.replicas",
            "Is set for the whole cluster when the storage is formatted (eligible leader replicas), and so has the "
            "source DYNAMIC_DEFAULT_BROKER_CONFIG.",
            "Is the default of the setting.",
            "The value is the same; ottla has no eligible leader replicas.",
            step=r"(CreateTopics|DescribeConfigs) v.*",
            path=r".*\.configs\.min\.insync\.replicas\..*|results\.\.configs",
        ),
        Known(
            "AlterConfigs for all brokers",
            "INVALID_CONFIG unless min.insync.replicas is among the settings: to leave it out would delete it, which "
            "is not allowed with eligible leader replicas.",
            "Replaces the settings.",
            "There are no eligible leader replicas to protect.",
            step=r"AlterConfigs v\d+: all of broker '': none|AlterConfigs v\d+: all of broker ''"
            r"|DescribeConfigs v4: after v\d+ all of broker ''",
        ),
        Known(
            "Unknown settings of brokers",
            "Takes any name, and keeps the value for plugins.",
            "INVALID_REQUEST.",
            "There are no plugins, so that an unknown name can only be a mistake.",
            step=r"IncrementalAlterConfigs v\d+: broker '1?': (an unknown key|a topic's key)",
        ),
        Known(
            "Memory for requests that wait",
            "Is not limited (`queued.max.request.bytes` is -1).",
            "Is limited to 128 MiB.",
            "A broker should not be brought down by many large requests at once.",
            step=r"DescribeConfigs v4: all of a broker",
            path=r"results\.1\.configs\.queued\.max\.request\.bytes\..*",
        ),
        Known(
            "Members of a group",
            "As many as like (`group.max.size`, `group.consumer.max.size`).",
            "At most 1000, unless the settings say otherwise; then GROUP_MAX_SIZE_REACHED, as in Kafka.",
            "The leader of a classic group is told of all members in one answer, and a group is one record: both are "
            "made at one go, and everybody else waits meanwhile. What is told to each member, and who gets what in "
            "a consumer group, is done bit by bit.",
            step=r"DescribeConfigs v4: all of a broker",
            path=r"results\.1\.configs\.group\.(consumer\.)?max\.size\..*",
        ),
        Known(
            "Replicas of `__consumer_offsets`",
            "Three, unless `offsets.topic.replication.factor` says otherwise.",
            "One.",
            "There is no replication yet, and one broker should do.",
            step=r"DescribeConfigs v4: all of a broker",
            path=r"results\.1\.configs\.offsets\.topic\.replication\.factor\..*",
        ),
        Known(
            "Replicas of `__transaction_state`",
            "Three, and two of them in sync, unless the settings say otherwise.",
            "One.",
            "There is no replication yet, and one broker should do.",
            step=r"DescribeConfigs v4: all of a broker",
            path=r"results\.1\.configs\.transaction\.state\.log\.(replication\.factor|min\.isr)\..*",
        ),
        Known(
            "The buffers of a connection",
            "Are 100 KiB (`socket.send.buffer.bytes`, `socket.receive.buffer.bytes`).",
            "Are left to the operating system (-1), unless they are set; on loopback it sends from 256 KiB.",
            "With 100 KiB a request of 110 KB took half as much processor time again, and more to arrive.",
            step=r"DescribeConfigs v4: all of a broker",
            path=r"results\.1\.configs\.socket\.(send|receive)\.buffer\.bytes\..*",
        ),
        Known(
            "A default for node.id",
            "Has none.",
            "Is 1.",
            "`ottla serve` needs no configuration.",
            step=r"DescribeConfigs v\d+: .*",
            path=r".*\.configs\.(node|broker)\.id\..*",
        ),
    ),
    CLEARER: (
        Known(
            "OffsetFetch with an epoch, but no member",
            "UNKNOWN_SERVER_ERROR in a consumer group.",
            "UNKNOWN_MEMBER_ID.",
            "It is the member that is missing.",
            step=r"OffsetFetch v(9|10): no member.*",
            kafka="-1",
            ottla="25",
        ),
        Known(
            "A classic group whose assignments are not a consumer's",
            "UNKNOWN_SERVER_ERROR to a member of the newer protocol that joins, without a message.",
            "GROUP_ID_NOT_FOUND, as for other groups that cannot be upgraded, and says why.",
            "The same reason deserves the same answer.",
            step=r"ConsumerGroupHeartbeat v1: a strange assignment",
        ),
        Known(
            "AddPartitionsToTxn for no transaction",
            "Does not answer.",
            "An empty answer.",
            "Whoever asks should not have to wait for a timeout.",
            step=r"AddPartitionsToTxn v[45]: nothing",
            kafka='"no answer"',
        ),
        Known(
            "JoinGroup and SyncGroup that are asked again",
            "A member that asks again before it was answered gets the second answer only: the first never comes.",
            "REBALANCE_IN_PROGRESS for the first.",
            "Whoever still waits on the old connection should not have to wait for a timeout.",
            step=r"(JoinGroup|SyncGroup) v\d+: before the connection was lost",
            kafka='"no answer"',
        ),
        Known(
            "A protocol twice in JoinGroup",
            "UNKNOWN_SERVER_ERROR; the group has a rebalance all the same.",
            "INVALID_REQUEST, and nothing changes.",
            "It is the request that is wrong.",
            step=r"JoinGroup v\d+: a protocol twice",
        ),
        Known(
            "Null records",
            "Does not answer.",
            "INVALID_RECORD.",
            "A producer should learn at once that its request is wrong.",
            step=r"Produce v\d+: null records",
            kafka='"no answer"',
        ),
        Known(
            "Compressed data that cannot be unpacked, and unknown codecs",
            "UNKNOWN_SERVER_ERROR.",
            "INVALID_RECORD.",
            "Both end the producer's retries; one of them says whose fault it is.",
            step=r"Produce v\d+: (codec [57]|(gzip|snappy|lz4|zstd) that is none)",
            path=r".*\.error_code",
            kafka="-1",
            ottla="87",
        ),
        Known(
            "A topic twice in AlterConfigs",
            "Does not answer.",
            "INVALID_REQUEST.",
            "As above.",
            step=r"AlterConfigs v\d+: a topic twice",
            kafka='"no answer"',
        ),
        Known(
            "Operations of IncrementalAlterConfigs that do not exist",
            "UNKNOWN_SERVER_ERROR.",
            "INVALID_REQUEST, with a message.",
            "It is the request that is wrong.",
            step=r"IncrementalAlterConfigs v\d+: (a topic: )?(an unknown|a negative) operation",
        ),
        Known(
            "Fetch with a negative size",
            "UNKNOWN_SERVER_ERROR for the first partition, records for the next.",
            "One batch, as for a size of 0.",
            "The request can be served.",
            step=r"Fetch v\d+: -1 bytes in all",
        ),
        Known(
            "Isolation levels that do not exist",
            "UNKNOWN_SERVER_ERROR.",
            "Reads as with level 0.",
            "The request can be served.",
            step=r"Fetch v\d+: isolation (2|-1)",
        ),
        Known(
            "An empty topic name in DescribeTopicPartitions",
            "UNKNOWN_SERVER_ERROR.",
            "INVALID_TOPIC_EXCEPTION, as for other names that are not allowed.",
            "It is the request that is wrong.",
            step=r"DescribeTopicPartitions v0: an empty name",
        ),
        Known(
            "A hundred thousand partitions",
            "UNKNOWN_SERVER_ERROR.",
            "POLICY_VIOLATION, with a message.",
            "It is the request that is too large.",
            step=r"CreatePartitions v\d+: from five to 100000",
        ),
    ),
}
ENTRIES = [entry for entries in SECTIONS.values() for entry in entries]


def explained(found: Difference) -> Known | None:
    """The first entry that covers a difference."""
    return next((entry for entry in ENTRIES if entry.covers(found)), None)
