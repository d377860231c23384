"""A number for the topics that a group wants, as they are: it differs when one is new, gone or has more partitions.

It is written with the group's epoch, so it has to be the number that Kafka would compute.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.image import ClusterImage, TopicInfo
from ottla.coordinator.consumer.xxh3 import xxh3_64
from ottla.internal_topics.packing import INT64


class TopicHashes:
    """The hashes of topics; each is computed once, until the topic changes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicInfo, int]] = {}

    def of_group(self, topics: Iterable[str], image: ClusterImage) -> int:
        """The hash of all of these topics that there are; 0 if there is none."""
        found = [image.topics[name] for name in sorted(topics, key=_java_order) if name in image.topics]
        if not found:
            return 0
        data = b"".join(self._of(info, image).to_bytes(8, "little") for info in found)
        return _signed(xxh3_64(data))

    def _of(self, info: TopicInfo, image: ClusterImage) -> int:
        known = self._known.get(info.name)
        if known is None or known[0] is not info:
            known = self._known[info.name] = info, xxh3_64(_described(info, image))
        return known[1]


def _described(info: TopicInfo, image: ClusterImage) -> bytes:
    most, least = info.topic_id.int >> 64, info.topic_id.int & (1 << 64) - 1
    parts = [
        b"\0",
        most.to_bytes(8, "little"),
        least.to_bytes(8, "little"),
        _string(info.name),
        _int(len(info.partitions)),
    ]
    for number, partition in enumerate(info.partitions):
        parts.append(_int(number))
        brokers = (image.brokers.get(replica) for replica in partition.replicas)
        for rack in sorted(
            broker.rack for broker in brokers if broker is not None and broker.rack is not None
        ):
            parts += (_int(len(rack.encode("utf-16-le")) // 2), _string(rack))
    return b"".join(parts)


def _int(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _string(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return data + _int(len(data) // 2)


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be")


def _signed(value: int) -> int:
    signed: int = INT64.unpack(value.to_bytes(8, "big"))[0]
    return signed
