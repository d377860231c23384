"""Every option of format("ottla"), with its meaning: the one table that parsing, error messages and the docs share.

Names are those of Spark's Kafka connector; those that it does not have are marked as ottla's. Spark hands options
over in lower case, so case does not count.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

READ = "read"
STREAM = "stream"  # readStream only
BATCH = "batch"  # read only
WRITE = "write"
ALL = "read, write"


class Option(NamedTuple):
    """One row of the table in docs/spark.md."""

    name: str
    where: str
    default: str
    meaning: str
    is_ours: bool = False


# One row an option, kept in its own shape.
OPTIONS = (
    Option("path", READ, "",
           "A data or partition directory, or several (`load([...])`, a JSON list); ottla's or Apache Kafka's", True),
    Option("kafka.bootstrap.servers", ALL, "", "Brokers as host:port, with commas between; any of Kafka's protocol"),
    Option("bootstrap.servers", ALL, "", "The same", True),
    Option("assign", READ, "", 'Partitions to read: `{"orders": [0, 1]}`'),
    Option("subscribe", READ, "", "Topics to read, with commas between"),
    Option("subscribePattern", READ, "", "Topics to read, by a regular expression that matches the whole name"),
    Option("startingOffsets", READ, "earliest; streams: latest",
           '`earliest`, `latest`, or `{"orders": {"0": 23, "1": -2}}` with -2 for earliest and -1 for latest'),
    Option("endingOffsets", BATCH, "latest", "`latest`, or offsets by partition with -1 for latest"),
    Option("startingTimestamp", READ, "", "From the first record at this time: milliseconds, or an ISO 8601 time"),
    Option("endingTimestamp", BATCH, "", "Up to the first record at this time, which is left out"),
    Option("startingOffsetsByTimestamp", READ, "", 'Times by partition: `{"orders": {"0": 1700000000000}}`'),
    Option("endingOffsetsByTimestamp", BATCH, "", "Times by partition"),
    Option("startingOffsetsByTimestampStrategy", READ, "error",
           "Where no record is as late as the starting time: `error` or `latest`"),
    Option("failOnDataLoss", READ, "true",
           "Fail when offsets that should be read are gone, and name them; `false` warns and goes on"),
    Option("minPartitions", READ, "", "At least so many tasks, if there is data for them"),
    Option("maxRecordsPerPartition", READ, "", "At most so many offsets in a task"),
    Option("targetBytesPerPartition", READ, "64m", "About so many bytes of log in a task", True),
    Option("maxOffsetsPerTrigger", STREAM, "", "At most so many offsets in a micro-batch"),
    Option("maxBytesPerTrigger", STREAM, "", "About so many bytes of log in a micro-batch"),
    Option("minOffsetsPerTrigger", STREAM, "", "Wait for so many offsets, but no longer than maxTriggerDelay"),
    Option("maxTriggerDelay", STREAM, "15m", "How long minOffsetsPerTrigger may hold data back: `30s`, `15m`, `2h`"),
    Option("includeHeaders", ALL, "false", "Add the column `headers`"),
    Option("columns", READ, "", "The columns to decode, with commas between; or give a schema", True),
    Option("mode", READ, "failfast",
           "`failfast` stops at a torn or corrupt batch; `permissive` puts its bytes into the column `corrupt`", True),
    Option("quarantinePath", READ, "",
           "With mode=permissive: corrupt batches go into files of this directory, not into a column", True),
    Option("groupIdPrefix", READ, "spark-kafka-source", "Accepted; reads need no consumer group"),
    Option("kafka.group.id", READ, "",
           "The consumer group that the listener `GroupProgress` commits a stream's progress to"),
    Option("kafka.isolation.level", READ, "read_uncommitted", "`read_committed` leaves out what is not committed"),
    Option("topic", WRITE, "", "The topic of rows without a column `topic`"),
    Option("runId", WRITE, "", "Makes a batch write exactly once: the same id again writes nothing", True),
)  # fmt: skip

BY_NAME = {option.name.lower(): option for option in OPTIONS}

# What Spark itself passes on to sources and sinks.
PASSED_BY_SPARK = ("paths", "checkpointlocation", "queryname", "outputmode")

# Settings of a consumer that cannot mean anything here, and what to use instead.
REFUSED = {
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.key.deserializer": "keys are bytes: cast the column",
    "kafka.value.deserializer": "values are bytes: cast the column",
    "kafka.key.serializer": "keys are bytes or strings: cast the column",
    "kafka.value.serializer": "values are bytes or strings: cast the column",
    "kafka.enable.auto.commit": "progress is in Spark's checkpoint; the listener GroupProgress commits it too",
    "kafka.interceptor.classes": "there are no Java classes in this reader",
}


def unknown(name: str) -> str:
    """What to say about an option that does not exist."""
    nearest = get_close_matches(name.lower(), BY_NAME, n=1, cutoff=0.6)
    hint = f"; did you mean {BY_NAME[nearest[0]].name}?" if nearest else "; docs/spark.md lists all options"
    return f"unknown option {name}{hint}"
