"""DeleteRecords and OffsetForLeaderEpoch: where logs begin, and where epochs end."""

from __future__ import annotations

from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.conversation.say import (
    NEWEST_FETCH_BY_NAME,
    WAIT_MS,
    delete_records,
    fetch,
    list_offsets,
    produce,
    records,
)
from tests.conversation.talk import Talk, versions

DELETE = DeleteRecordsRequest.API_KEY
EPOCHS = OffsetForLeaderEpochRequest.API_KEY
PRODUCE = 12
LIST_OFFSETS = 7


def script(talk: Talk) -> None:
    talk.topic("epochs-compacted", cleanup_policy="compact")
    talk.topic("epochs-both", cleanup_policy="compact,delete")
    talk.topic("__consumer_offsets", cleanup_policy="compact")
    for version in versions(DELETE):
        _deleted(talk, version)
        _not_deleted(talk, version)
    talk.topic("epochs", 2)
    for _ in range(3):
        talk.request(PRODUCE, produce("epochs", records(b"a", b"b")))
    for version in versions(EPOCHS):
        _epochs(talk, version)


def _deleted(talk: Talk, version: int) -> None:
    name = f"deleted-{version}"
    talk.topic(name, 2)
    for _ in range(3):
        talk.request(PRODUCE, produce(name, records(b"a", b"b")))
    for offset in (0, 1, 3, 3, 2, 6, 7, -1, -2):
        # The step before has an influence, so it is part of the name.
        step = f"up to {offset}" if offset != 3 else f"up to {offset} ({len(talk.answers)})"
        talk.ask(step, version, delete_records(name, {0: offset}))
    talk.ask(f"v{version} first and last", LIST_OFFSETS, list_offsets(name, -2, -1))
    talk.ask(f"v{version} below the start", NEWEST_FETCH_BY_NAME, fetch(name, 2))
    talk.ask("of an empty partition", version, delete_records(name, {1: -1}))
    talk.ask("of an empty partition, up to 1", version, delete_records(name, {1: 1}))


def _not_deleted(talk: Talk, version: int) -> None:
    talk.ask("unknown topic", version, delete_records("nowhere", {0: 0}))
    talk.ask("unknown partition", version, delete_records(f"deleted-{version}", {5: 0, 1: -1}))
    talk.ask("negative partition", version, delete_records(f"deleted-{version}", {-1: 0}))
    talk.ask("a compacted topic", version, delete_records("epochs-compacted", {0: 0}))
    talk.ask("a topic that is compacted and deleted", version, delete_records("epochs-both", {0: 0}))
    talk.ask("an internal topic", version, delete_records("__consumer_offsets", {0: 0}))
    talk.ask("no topics", version, DeleteRecordsRequest(timeout_ms=WAIT_MS))
    talk.ask("no partitions", version, delete_records(f"deleted-{version}", {}))
    partitions = [DeleteRecordsPartition(partition_index=1, offset=offset) for offset in (0, -1)]
    twice = [DeleteRecordsTopic(name=f"deleted-{version}", partitions=partitions)]
    talk.ask("a partition twice", version, DeleteRecordsRequest(topics=twice, timeout_ms=WAIT_MS))
    several = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=1, offset=-1)])
        for name in (f"deleted-{version}", "nowhere")
    ]
    talk.ask("good and bad", version, DeleteRecordsRequest(topics=several, timeout_ms=WAIT_MS))


def _epoch_request(
    name: str, *asked: tuple[int, int, int], replica_id: int = -1
) -> OffsetForLeaderEpochRequest:
    """(partition, the client's current leader epoch, the epoch whose end is wanted)."""
    partitions = [
        OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        for partition, current, epoch in asked
    ]
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=name, partitions=partitions)]
    )


def _epochs(talk: Talk, version: int) -> None:
    for partition in (0, 1):
        for current in (-1, 0, 1, -2):
            for epoch in (-1, 0, 1, 7, -2):
                step = f"partition {partition}, epoch {epoch}, current {current}"
                talk.ask(step, version, _epoch_request("epochs", (partition, current, epoch)))
    for replica in (-2, 1, 9):
        talk.ask(f"replica {replica}", version, _epoch_request("epochs", (0, -1, 0), replica_id=replica))
    talk.ask("unknown topic", version, _epoch_request("nowhere", (0, -1, 0)))
    talk.ask("impossible topic", version, _epoch_request("a/b", (0, -1, 0)))
    talk.ask("unknown partition", version, _epoch_request("epochs", (0, -1, 0), (9, -1, 0)))
    talk.ask("a partition twice", version, _epoch_request("epochs", (0, -1, 0), (0, -1, 5)))
    talk.ask("no partitions", version, _epoch_request("epochs"))
    talk.ask("no topics", version, OffsetForLeaderEpochRequest(replica_id=-1))
