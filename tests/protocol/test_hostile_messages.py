"""Bytes from people who do not wish us well: a DecodeError or a message, quickly, in bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest

from ottla.protocol.codec import DecodeError, Output, decoder, encoder
from ottla.protocol.message import Message
from ottla.protocol.messages import APIS, request_class, response_class
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.wire import MAX_ELEMENTS
from tests.protocol.samples import sample


def encoded(message: Message, version: int) -> bytes:
    output = Output()
    encoder(type(message), version)(message, output)
    return b"".join(output.parts())


def versions(api_key: int) -> Iterator[tuple[type[Message], int]]:
    """The oldest and the newest version of both messages, and the first that is flexible."""
    api = APIS[api_key]
    for version in sorted({api.min_version, min(api.flexible_since, api.max_version), api.max_version}):
        yield request_class(api_key), version
        yield response_class(api_key), version


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_a_message_that_ends_too_early_is_refused(api_key: int) -> None:
    rng = random.Random(api_key)
    for message_class, version in versions(api_key):
        data = encoded(sample(message_class, version, rng), version)
        decode = decoder(message_class, version)
        for end in {0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(60))} if data else ():
            with pytest.raises(DecodeError):
                decode(data[:end], 0)


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_mutated_messages_are_read_or_refused(api_key: int) -> None:
    rng = random.Random(api_key)
    for message_class, version in versions(api_key):
        decode = decoder(message_class, version)
        for _ in range(60):
            data = bytearray(encoded(sample(message_class, version, rng), version))
            for _ in range(rng.randrange(1, 4)):
                mutate(data, rng)
            try:
                message = decode(data, 0)
            except DecodeError:
                continue
            assert type(message) is message_class


def mutate(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(5):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at : at + 4] = rng.choice(
                [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", bytes(4)]
            )
        case 2:
            data[at:at] = rng.choice([b"\xff\xff\xff\xff\x0f", b"\xff" * 12, rng.randbytes(3)])
        case 3:
            del data[at : at + rng.randrange(1, 9)]
        case _:
            data[at:at] = data[: rng.randrange(40)]


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (12, b"\xff\xff\xff\xff\x0f"),  # a compact array of 2^32 - 2
        (12, b"\xff\xff\xff\xff\x07"),
        (4, b"\x7f\xff\xff\xff"),
        (4, b"\x80\0\0\0"),
        (4, b"\0\0\0\1\x7f\xff"),  # a name of 32,767 bytes
        (12, b"\1\0\0" + b"\xff\xff\xff\xff\x0f"),  # as many tags
        (12, b"\1\0\0\1\0" + b"\xff\xff\xff\xff\x0f"),  # a tag of that size
        (12, b"\x80\x80\x80\x80\x80\x01"),  # a varint of six bytes
        (12, b"\xff\xff\xff\xff\xff\xff\xff"),
        (12, b"\2" + bytes(16) + b"\3\xff\xfe\0\0\0\0\0"),  # a name that is not UTF-8
    ],
)
def test_lengths_that_lie_allocate_nothing(version: int, body: bytes) -> None:
    decode = decoder(MetadataRequest, version)
    tracemalloc.start()
    try:
        if version == 4 and body[0] == 0x80:
            assert decode(body + b"\0", 0).topics is None  # any negative count is null, as in Kafka
        else:
            with pytest.raises(DecodeError):
                decode(body, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def test_elements_that_are_there_but_too_many_are_refused() -> None:
    tiny_topics = varint(1_000_001) + (bytes(16) + b"\0\0") * 1_000_000 + bytes(4)
    with pytest.raises(DecodeError, match="more than 100000 elements"):
        decoder(MetadataRequest, 12)(tiny_topics, 0)
    empty_tags = b"\1\0\0" + varint(10_000_000) + b"\x05\0" * 10_000_000
    with pytest.raises(DecodeError, match="more elements"):
        decoder(MetadataRequest, 12)(empty_tags, 0)


def test_text_that_would_fill_the_memory_is_refused() -> None:
    """One sign outside the first plane, and every sign of a string takes four bytes."""
    name = "𝄞" + "a" * 32_000
    topic = bytes(16) + varint(len(name.encode()) + 1) + name.encode() + b"\0"
    assert len(decoder(MetadataRequest, 12)(varint(701) + topic * 700 + bytes(3), 0).topics) == 700
    with pytest.raises(DecodeError, match="name is too long"):
        decoder(MetadataRequest, 12)(varint(901) + topic * 900 + bytes(3), 0)


@pytest.mark.parametrize(("size", "is_fine"), [(32_767, True), (32_768, False)])
def test_a_string_is_no_longer_than_kafka_allows(size: int, is_fine: bool) -> None:
    body = b"\2" + bytes(16) + varint(size + 1) + b"a" * size + bytes(4)
    if is_fine:
        assert len(decoder(MetadataRequest, 12)(body, 0).topics[0].name) == size
    else:
        with pytest.raises(DecodeError, match="name is too long"):
            decoder(MetadataRequest, 12)(body, 0)


def test_the_limit_is_one_for_the_whole_message() -> None:
    """Arrays within arrays share it: a thousand topics of a thousand partitions each are a million elements."""
    partition = b"\0\0\0\0" + b"\0" + b"\0"
    topic = b"\2t" + varint(1001) + partition * 1000 + b"\0"
    for topics, is_fine in ((99, True), (100, False)):
        body = b"\0" + b"\0\1" + b"\0\0\0\1" + varint(topics + 1) + topic * topics + b"\0"
        if is_fine:
            assert len(decoder(ProduceRequest, 9)(body, 0).topic_data) == topics
        else:
            with pytest.raises(DecodeError, match=f"more than {MAX_ELEMENTS} elements"):
                decoder(ProduceRequest, 9)(body, 0)
