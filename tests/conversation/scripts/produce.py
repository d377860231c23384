"""Produce in every version: what is appended, and what a request as a whole may be."""

from __future__ import annotations

from uuid import UUID

from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.compression.codec import Codec
from tests.conversation.say import (
    NEWEST_FETCH_BY_NAME,
    UNKNOWN_ID,
    fetch,
    list_offsets,
    old_records,
    produce,
    produce_all,
    records,
)
from tests.conversation.talk import Talk, versions

KEY = ProduceRequest.API_KEY
OLD = range(3)  # Kafka 4 names them in ApiVersions and does not serve them
TODAY = range(3, 14)
NAME = "produce"
OTHER = "produce-other"
OLD_TOPIC = "produce-old"
NEWEST = 13


def script(talk: Talk) -> None:
    topic_id = talk.topic(NAME, 2)
    other_id = talk.topic(OTHER, 1)
    talk.topic(OLD_TOPIC)
    _old_versions(talk)
    for version in TODAY:
        talk.ask("one record", version, produce(NAME, records(b"v"), topic_id=topic_id))
        several = records(b"a", None, b"", key=None)
        talk.ask("null and empty", version, produce(NAME, several, topic_id=topic_id, partition=1))
        _codecs(talk, version, topic_id)
        _acks(talk, version, topic_id)
        _unknown(talk, version, topic_id)
        _shapes(talk, version, topic_id, other_id)
    talk.ask("null records", NEWEST, produce(NAME, None, topic_id=topic_id))
    talk.ask("all that was appended", NEWEST_FETCH_BY_NAME, fetch(NAME))
    talk.ask("where it ends", 7, list_offsets(NAME, -1, -1))
    talk.ask("without a client id", NEWEST, produce(NAME, records(b"v"), topic_id=topic_id), client_id=None)


def _old_versions(talk: Talk) -> None:
    for version in OLD:
        magic = 0 if version < 2 else 1
        talk.ask("a message set", version, produce(OLD_TOPIC, old_records(magic, b"a", b"b")))
        talk.ask("gzip", version, produce(OLD_TOPIC, old_records(magic, b"a", b"b", codec=Codec.GZIP)))
        talk.ask("an unknown topic", version, produce("nobody-made-this", old_records(magic, b"a")))


def _codecs(talk: Talk, version: int, topic_id: UUID) -> None:
    for codec in Codec:
        data = records(b"x" * 300, b"y", codec=codec)
        talk.ask(f"codec {codec.name.lower()}", version, produce(NAME, data, topic_id=topic_id))


def _acks(talk: Talk, version: int, topic_id: UUID) -> None:
    good = records(b"v")
    for acks in (1, -1, 2, -2, 32767):
        talk.ask(f"acks {acks}", version, produce(NAME, good, topic_id=topic_id, acks=acks))
    talk.tell("acks 0", version, produce(NAME, good, topic_id=topic_id, acks=0))
    talk.tell(
        "acks 0, unknown partition", version, produce(NAME, good, topic_id=topic_id, partition=9, acks=0)
    )
    talk.tell("acks 0, unknown topic", version, produce("nowhere", good, topic_id=UNKNOWN_ID, acks=0))
    talk.ask("acks 1 after the connection", version, produce(NAME, good, topic_id=topic_id, acks=1))


def _unknown(talk: Talk, version: int, topic_id: UUID) -> None:
    good = records(b"v")
    talk.ask("unknown topic", version, produce("nowhere", good, topic_id=UNKNOWN_ID))
    talk.ask("topic id of zeros, or no name", version, produce("", good, topic_id=None))
    talk.ask("impossible name", version, produce("a/b", good, topic_id=UNKNOWN_ID))
    talk.ask("unknown partition", version, produce(NAME, good, topic_id=topic_id, partition=2))
    talk.ask("negative partition", version, produce(NAME, good, topic_id=topic_id, partition=-1))
    talk.ask("unknown topic, acks 2", version, produce("nowhere", good, topic_id=UNKNOWN_ID, acks=2))


def _shapes(talk: Talk, version: int, topic_id: UUID, other_id: UUID) -> None:
    good = records(b"v")
    mixed: dict[tuple[str, UUID | None, int], bytes | None] = {
        (NAME, topic_id, 0): good,
        (NAME, topic_id, 7): good,
        (NAME, topic_id, 1): good,
        ("nowhere", UNKNOWN_ID, 0): good,
        (OTHER, other_id, 0): good,
    }
    talk.ask("good and bad partitions", version, produce_all(mixed))
    talk.ask("no topics", version, produce_all({}))
    empty = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=NAME, topic_id=topic_id)]
    )
    talk.ask("a topic without partitions", version, empty)
    talk.ask("empty records", version, produce(NAME, b"", topic_id=topic_id))
    twice = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=NAME,
                topic_id=topic_id,
                partition_data=[
                    PartitionProduceData(index=0, records=memoryview(good)),
                    PartitionProduceData(index=1, records=memoryview(good)),
                ],
            ),
            TopicProduceData(
                name=OTHER,
                topic_id=other_id,
                partition_data=[PartitionProduceData(index=0, records=memoryview(good))],
            ),
        ],
    )
    talk.ask("two topics", version, twice)


assert [*OLD, *TODAY] == list(versions(KEY))
