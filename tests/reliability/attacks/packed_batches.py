"""Produce requests of a few hundred kilobytes that unpack to gigabytes."""

from __future__ import annotations

import random

from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records import batch
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from ottla.records.compression.streams import compress
from tests.reliability.attacks.brokers import Attacked
from tests.server.bombs import resealed
from tests.server.wire import PRODUCE, Wire

TOPIC = "packed"
MIB = 1 << 20


def packed_batch(codec: Codec, value_bytes: int, records: int = 1) -> bytes:
    """A batch that is right, with records of nothing but zeros."""
    plain = build_batch([NewRecord(1_700_000_000_000, b"k", bytes(value_bytes), [])] * records)
    data = plain[: batch.HEADER_SIZE] + compress(codec, memoryview(plain)[batch.HEADER_SIZE :])
    data[8:12] = (len(data) - batch.OVERHEAD_SIZE).to_bytes(4, "big")
    data[batch.ATTRIBUTES_AT + 1] = codec
    return bytes(resealed(data))


def attack(broker: Attacked, seed: int, share: float) -> None:
    """200 batches of 127 MB in one zstd request, 50 in one of gzip, and each has its answer."""
    chance = random.Random(seed)
    value_bytes = max(MIB * 2, int(127 * MIB * share))
    for codec, count in ((Codec.ZSTD, 200), (Codec.GZIP, 50), (Codec.LZ4, 20), (Codec.SNAPPY, 4)):
        partitions = max(3, int(count * share))
        topic = f"{TOPIC}-{codec.name.lower()}"
        broker.create_topic(topic, partitions, {"max.message.bytes": 100 * MIB})
        whole = packed_batch(codec, value_bytes)
        many = packed_batch(codec, 10, 2 * MIB // 20)
        with Wire(broker) as wire:
            answer = wire.ask(
                PRODUCE,
                9,
                ProduceRequest(
                    transactional_id=None,
                    acks=-1,
                    timeout_ms=60_000,
                    topic_data=[
                        TopicProduceData(
                            name=topic,
                            partition_data=[
                                PartitionProduceData(
                                    index=index, records=memoryview(chance.choice((whole, many)))
                                )
                                for index in range(partitions)
                            ],
                        )
                    ],
                ),
            )
        codes = [slot.error_code for slot in answer.responses[0].partition_responses]
        assert codes == [0] * partitions, codes
