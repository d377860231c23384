"""Fetch in every version, without sessions: offsets, sizes, epochs, and partitions that are not there."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.records.compression.codec import Codec
from tests.conversation.say import (
    MAX_BYTES,
    UNKNOWN_ID,
    delete_records,
    fetch,
    fetch_all,
    produce,
    records,
)
from tests.conversation.talk import Talk, versions

KEY = FetchRequest.API_KEY
NAME = "fetch"
EMPTY = "fetch-empty"
CUT = "fetch-cut"
ZSTD = "fetch-zstd"
END = 9
PRODUCE = 12


def script(talk: Talk) -> None:
    topic_id = talk.topic(NAME, 2)
    empty_id = talk.topic(EMPTY)
    cut_id = talk.topic(CUT)
    zstd_id = talk.topic(ZSTD)
    batches = (
        records(b"a", b"b", b"c"),
        records(b"x" * 1000, b"e", key=None),
        records(b"1", b"2", b"3", b"4", codec=Codec.GZIP),
    )
    for data in batches:
        for name, partition in ((NAME, 0), (NAME, 1), (CUT, 0)):
            talk.request(PRODUCE, produce(name, data, partition=partition))
    talk.request(PRODUCE, produce(ZSTD, records(b"z" * 100, codec=Codec.ZSTD)))
    talk.request(2, delete_records(CUT, {0: 4}))
    for version in versions(KEY):
        _offsets(talk, version, topic_id)
        _sizes(talk, version, topic_id)
        _unknown(talk, version, topic_id)
        _readers(talk, version, topic_id)
        _shapes(talk, version, topic_id, empty_id)
        for offset in (0, 3, 4, 9):
            talk.ask(f"after a deletion, from {offset}", version, fetch(CUT, offset, topic_id=cut_id))
        talk.ask("nothing there", version, fetch(EMPTY, topic_id=empty_id))
        talk.ask("zstd", version, fetch(ZSTD, topic_id=zstd_id))


def _offsets(talk: Talk, version: int, topic_id: UUID) -> None:
    for offset in (0, 1, 3, END, END + 1, END + 1000, -1, -2):
        talk.ask(f"from {offset}", version, fetch(NAME, offset, topic_id=topic_id))


def _sizes(talk: Talk, version: int, topic_id: UUID) -> None:
    for size in (0, 1, 100, 1200):
        wanted = FetchPartition(partition_max_bytes=size)
        talk.ask(f"{size} bytes of a partition", version, fetch_all([(NAME, topic_id, wanted)]))
    for size in (0, 1, 100, 1200, -1):
        wanted = FetchPartition(partition_max_bytes=MAX_BYTES)
        other = FetchPartition(partition=1, partition_max_bytes=MAX_BYTES)
        both = [(NAME, topic_id, wanted), (NAME, topic_id, other)]
        talk.ask(f"{size} bytes in all", version, fetch_all(both, max_bytes=size))
    talk.ask("less than is wanted", version, fetch(NAME, topic_id=topic_id, min_bytes=1 << 20, max_wait_ms=5))
    talk.ask("all that is wanted", version, fetch(NAME, topic_id=topic_id, min_bytes=1, max_wait_ms=60_000))
    talk.ask("at the end, in vain", version, fetch(NAME, END, topic_id=topic_id, min_bytes=1, max_wait_ms=5))
    talk.ask(
        "an error does not wait", version, fetch(NAME, 99, topic_id=topic_id, min_bytes=1, max_wait_ms=60_000)
    )


def _unknown(talk: Talk, version: int, topic_id: UUID) -> None:
    talk.ask("unknown topic", version, fetch("nowhere", topic_id=UNKNOWN_ID))
    talk.ask("no topic id, no name", version, fetch("", topic_id=None))
    for index in (2, -1):
        wanted = FetchPartition(partition=index, partition_max_bytes=MAX_BYTES)
        talk.ask(f"partition {index}", version, fetch_all([(NAME, topic_id, wanted)]))
    for epoch in (0, 1, -1, -2):
        wanted = FetchPartition(current_leader_epoch=epoch, partition_max_bytes=1)
        talk.ask(f"leader epoch {epoch}", version, fetch_all([(NAME, topic_id, wanted)]))
    for epoch, offset in ((0, 3), (1, 3), (0, 10), (-2, 3)):
        wanted = FetchPartition(last_fetched_epoch=epoch, fetch_offset=offset, partition_max_bytes=1)
        step = f"fetched up to {offset} in epoch {epoch}"
        talk.ask(step, version, fetch_all([(NAME, topic_id, wanted)]))


def _readers(talk: Talk, version: int, topic_id: UUID) -> None:
    for isolation in (1, 2, -1):
        talk.ask(f"isolation {isolation}", version, fetch(NAME, topic_id=topic_id, isolation_level=isolation))
    talk.ask("a rack", version, fetch(NAME, 3, topic_id=topic_id, rack_id="rack"))
    talk.ask("another cluster", version, fetch(NAME, 3, topic_id=topic_id, cluster_id="other"))
    for replica in (-2, 7):
        state = ReplicaState(replica_id=replica)
        request = fetch(NAME, 3, topic_id=topic_id, replica_id=replica, replica_state=state)
        talk.ask(f"replica {replica}", version, request)


def _shapes(talk: Talk, version: int, topic_id: UUID, empty_id: UUID) -> None:
    talk.ask("no topics", version, fetch_all([]))
    talk.ask(
        "a topic without partitions",
        version,
        FetchRequest(topics=[FetchTopic(topic=NAME, topic_id=topic_id)]),
    )
    wanted = [
        (NAME, topic_id, FetchPartition(fetch_offset=END, partition_max_bytes=MAX_BYTES)),
        ("nowhere", UNKNOWN_ID, FetchPartition()),
        (EMPTY, empty_id, FetchPartition(partition_max_bytes=MAX_BYTES)),
        (NAME, topic_id, FetchPartition(partition=1, fetch_offset=3, partition_max_bytes=MAX_BYTES)),
        (NAME, topic_id, FetchPartition(partition=5, fetch_offset=3, partition_max_bytes=MAX_BYTES)),
    ]
    talk.ask("good and bad", version, fetch_all(wanted))
