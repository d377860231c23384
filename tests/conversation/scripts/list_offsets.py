"""ListOffsets: by time, the special times, epochs, isolation, and partitions that are not there."""

from __future__ import annotations

from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.conversation.say import T0, delete_records, list_offsets, produce, records
from tests.conversation.talk import Talk, versions

KEY = ListOffsetsRequest.API_KEY
NAME = "offsets-listed"
CUT = "offsets-cut"
EMPTY = "offsets-empty"
APPEND_TIME = "offsets-append-time"
PRODUCE = 12
SPECIAL = range(-8, 0)


def script(talk: Talk) -> None:
    for name in (NAME, CUT, EMPTY):
        talk.topic(name)
    talk.topic(APPEND_TIME, message_timestamp_type="LogAppendTime")
    for step in (0, 1000, 500, 5000):  # the third batch is older than the second
        for name in (NAME, CUT, APPEND_TIME):
            talk.request(PRODUCE, produce(name, records(b"a", b"b", b"c", time_ms=T0 + step)))
        talk.tick()
    talk.request(2, delete_records(CUT, {0: 7}))
    for version in versions(KEY):
        for time_ms in (0, T0 - 1, T0, T0 + 1, T0 + 3, T0 + 501, T0 + 1002, T0 + 1003, T0 + 5002, T0 + 5003):
            talk.ask(f"time T0{time_ms - T0:+}", version, list_offsets(NAME, time_ms))
        for name in (NAME, CUT, EMPTY, APPEND_TIME):
            for special in SPECIAL:
                talk.ask(f"{name} {special}", version, list_offsets(name, special))
        for time_ms in (0, T0, T0 + 1000):
            talk.ask(f"{CUT} T0{time_ms - T0:+}", version, list_offsets(CUT, time_ms))
        talk.ask("the end of time", version, list_offsets(NAME, 2**63 - 1))
        talk.ask("the beginning of time", version, list_offsets(NAME, -(2**63)))
        _readers(talk, version)
        _unknown(talk, version)


def _readers(talk: Talk, version: int) -> None:
    for isolation in (1, 2, -1):
        talk.ask(f"isolation {isolation}", version, list_offsets(NAME, -1, isolation=isolation))
    talk.ask("isolation 1 by time", version, list_offsets(NAME, T0 + 3, isolation=1))
    for epoch in (0, 1, -2):
        talk.ask(f"leader epoch {epoch}", version, list_offsets(NAME, -1, epoch=epoch))
    for replica in (-2, 0, 1, 7):
        talk.ask(f"replica {replica}", version, list_offsets(NAME, -1, replica_id=replica))


def _unknown(talk: Talk, version: int) -> None:
    talk.ask("unknown topic", version, list_offsets("nowhere", -1))
    talk.ask("impossible topic", version, list_offsets("a/b", -1))
    talk.ask("unknown partition", version, list_offsets(NAME, -1, -1))
    talk.ask("no topics", version, ListOffsetsRequest(replica_id=-1))
    talk.ask("no partitions", version, list_offsets(NAME))
    twice = [ListOffsetsPartition(timestamp=-1), ListOffsetsPartition(timestamp=-2)]
    topics = [ListOffsetsTopic(name=NAME, partitions=twice)]
    talk.ask("a partition twice", version, ListOffsetsRequest(replica_id=-1, topics=topics))
    negative = [ListOffsetsPartition(partition_index=-1, timestamp=-1)]
    topics = [ListOffsetsTopic(name=NAME, partitions=negative), ListOffsetsTopic(name=NAME)]
    talk.ask("a topic twice, a negative partition", version, ListOffsetsRequest(replica_id=-1, topics=topics))
