"""Real requests of every API and version, and ways to damage them."""

from __future__ import annotations

import functools
import struct
from random import Random
from typing import Any

from ottla.api.registry import APIS
from ottla.protocol import frame
from ottla.protocol.message import Message
from ottla.protocol.messages import request_class
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from tests.protocol.samples import sample

_PRODUCE = 0
TOPICS = ("t", "u", "new")
SHAPES = 12  # different requests of one version
_NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 1 << 20, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
_NAMES = ("name", "topic", "topic_name", "resource_name", "topic_names")
# So that requests of one block meet the same groups, members and transactions.
_COORDINATED = {
    "group_id": ("g", "h"),
    "member_id": ("", "m"),
    "group_instance_id": ("i",),
    "transactional_id": ("x", "y"),
    "protocol_type": ("consumer",),
    "protocol_name": ("range",),
    "key_type": (0, 1),
}
_VERSIONS = [
    (api.key, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)
]


def a_stream(random: Random, topic_ids: list[Any]) -> bytearray:
    """One frame or a few, most of them damaged, lengths and all."""
    if random.random() < 0.1:
        return _a_run(random, topic_ids)
    stream = bytearray()
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        key, version = random.choice(_VERSIONS)
        body = bytearray(_real(key, version, random.randrange(SHAPES), tuple(topic_ids)))
        if random.random() < 0.85:
            _damage(random, body)
        length = len(body) if random.random() < 0.9 else random.choice(_NUMBERS) & 0xFFFFFFFF
        stream += struct.pack(">I", length) + body
    return stream


def _a_run(random: Random, topic_ids: list[Any]) -> bytearray:
    """What a busy producer sends: requests for one partition one behind another, here and there damaged."""
    stream = bytearray()
    version = random.randint(9, 13)
    partition = random.choice((0, 0, 1, 2))
    for number in range(random.choice((2, 5, 70))):
        rows = [NewRecord(1_700_000_000_000, b"k", b"value" * random.choice((1, 9, 3000)), [])]
        data = PartitionProduceData(index=partition, records=memoryview(bytes(build_batch(rows))))
        topic = TopicProduceData(name=TOPICS[0], topic_id=topic_ids[0], partition_data=[data])
        request = ProduceRequest(acks=random.choice((-1, -1, -1, 1)), timeout_ms=1000, topic_data=[topic])
        body = bytearray(b"".join(frame.request_parts(_PRODUCE, version, number, "fuzz", request))[4:])
        if random.random() < 0.05:
            _damage(random, body)
        stream += struct.pack(">I", len(body)) + body
    return stream


@functools.lru_cache(maxsize=20_000)
def _real(api_key: int, version: int, shape: int, topic_ids: tuple[Any, ...]) -> bytes:
    random = Random(f"{api_key}/{version}/{shape}")
    request = sample(request_class(api_key), version, random)
    _make_real(request, random, topic_ids)
    return b"".join(frame.request_parts(api_key, version, shape, "fuzz", request))[4:]


def _make_real(message: Message, random: Random, topic_ids: tuple[Any, ...]) -> None:
    """Names, ids, numbers and records that mean something to the broker."""
    for field in message.FIELDS:
        value: Any = getattr(message, field.name)
        if field.of is not None:
            parts = value if field.array else [value]
            for part in parts or ():
                if part is not None:
                    _make_real(part, random, topic_ids)
        elif field.name in _NAMES and value is not None:
            setattr(message, field.name, [random.choice(TOPICS)] if field.array else random.choice(TOPICS))
        elif field.name in _COORDINATED and value is not None and not field.array:
            setattr(message, field.name, random.choice(_COORDINATED[field.name]))
        elif field.kind == "uuid" and value is not None:
            setattr(message, field.name, random.choice(topic_ids))
        elif field.kind == "records" and value is not None:
            setattr(message, field.name, _records(random))
        elif field.kind in ("int32", "int16", "int64") and not field.array and random.random() < 0.7:
            setattr(message, field.name, random.choice((-1, 0, 0, 0, 1, 2, 3)))
    if hasattr(message, "acks"):
        message.acks = random.choice((-1, 0, 1, 1))


def _records(random: Random) -> bytes:
    rows = [
        NewRecord(
            1_700_000_000_000 + number, random.choice((None, b"k")), random.choice((None, b"value" * 9)), []
        )
        for number in range(random.choice((1, 1, 3, 40)))
    ]
    producer: dict[str, Any] = (
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if random.random() < 0.2 else {}
    )
    return bytes(build_batch(rows, codec=random.choice(list(Codec)), **producer))


def _damage(random: Random, data: bytearray) -> None:
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            return
        at = random.randrange(len(data))
        kind = random.randrange(7)
        if kind <= 1:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            size = random.choice((1, 2, 4, 8))
            data[at : at + size] = (random.choice(_NUMBERS) & (1 << 8 * size) - 1).to_bytes(size, "big")
        elif kind == 3:
            del data[at : at + random.choice((1, 2, 4, 50))]
        elif kind == 4:
            data[at:at] = data[at : at + random.choice((1, 4, 30))]
        elif kind == 5:
            data[at:at] = b"\xff" * random.choice((1, 4, 5, 10))  # varints that do not end
        elif random.random() < 0.3:
            del data[at:]
        else:
            data[0:4] = struct.pack(">hh", random.choice(list(APIS)), random.randrange(-1, 20))
