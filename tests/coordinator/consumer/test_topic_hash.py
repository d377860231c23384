"""The hash of a group's topics is the one that Kafka computes."""

from __future__ import annotations

import uuid

import pytest

from ottla.cluster.image import BrokerInfo, ClusterImage, PartitionInfo, TopicInfo
from ottla.coordinator.consumer.topic_hash import TopicHashes
from ottla.coordinator.consumer.xxh3 import xxh3_64

TOPIC = uuid.UUID("b9bbe6ca-548e-42e0-a4eb-4775cd0d76de")

# By hash4j, which Kafka uses: of so many bytes, each 7 more than the one before, the first 3.
HASHES = {
    0: 3244421341483603138,
    1: 1433843135270481901,
    3: 12180141160879835164,
    4: 7895465118229274323,
    8: 6941064856527638883,
    9: 18374517719163151272,
    16: 13314990914799711621,
    17: 8163341949877205007,
    32: 1873302701886544469,
    33: 4486878507168070088,
    64: 2917965298538373825,
    65: 9408609914592003654,
    96: 17331232145433315139,
    97: 2137665177113230204,
    128: 7440608504995537343,
    129: 14295761343243267012,
    144: 6947391739561490738,
    240: 7229805477010515663,
    241: 10082113959289486871,
    256: 4339360625268998362,
    512: 17690705279202729245,
    1024: 11205349619999208113,
    1025: 9253807012321506678,
    1088: 3424848841118183642,
    1300: 17146061527068621944,
    5000: 8762507191635236893,
}


@pytest.mark.parametrize("size", HASHES)
def test_bytes_have_the_hash_that_others_compute(size: int) -> None:
    assert xxh3_64(bytes((at * 7 + 3) & 255 for at in range(size))) == HASHES[size]


def image(partitions: int = 4, rack: str | None = None, name: str = "modern") -> ClusterImage:
    parts = tuple(PartitionInfo(1, (1,), (1,)) for _ in range(partitions))
    topic = TopicInfo(name, TOPIC, parts)
    return ClusterImage("cluster", topics={name: topic}, brokers={1: BrokerInfo(1, "host", 9092, rack)})


def test_a_group_has_the_hash_that_kafka_wrote() -> None:
    assert TopicHashes().of_group(["modern"], image()) == 5416514063992430467


def test_topics_that_are_not_there_do_not_count() -> None:
    hashes = TopicHashes()
    assert hashes.of_group(["nowhere"], image()) == 0
    assert hashes.of_group(["modern", "nowhere"], image()) == hashes.of_group(["modern"], image())


def test_the_hash_changes_with_the_topic() -> None:
    hashes = TopicHashes()
    images = [image(), image(partitions=5), image(rack="a"), image(rack="b")]
    assert len({hashes.of_group(["modern"], one) for one in images}) == 4
