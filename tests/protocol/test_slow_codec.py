"""Readers and writers that stop now and then do the same as those that do not."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest

from ottla.protocol import frame
from ottla.protocol.codec import (
    DecodeError,
    Output,
    TooManyElementsError,
    decoder,
    encoder,
    slow_decoder,
    slow_encoder,
)
from ottla.protocol.message import Message
from ottla.protocol.messages import APIS
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.protocol.samples import MESSAGES, sample


def finished(steps: Generator[None, None, Any]) -> tuple[int, Any]:
    """How often it stopped, and what it returned."""
    stops = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return stops, end.value
        stops += 1


def encoded(message: Message, version: int) -> bytes:
    output = Output()
    encoder(type(message), version)(message, output)
    return b"".join(output.parts())


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_both_kinds_read_and_write_the_same(api_key: int) -> None:
    chance = random.Random(api_key)
    for message_class, version in MESSAGES:
        if api_key != message_class.API_KEY:
            continue
        message = sample(message_class, version, chance)
        data = encoded(message, version)
        output = Output()
        finished(slow_encoder(message_class, version)(message, output))
        assert b"".join(output.parts()) == data
        _, (read, _) = finished(slow_decoder(message_class, version)(data, 0))
        assert read == decoder(message_class, version)(data, 0)


def names(count: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(count)]
    return encoded(MetadataRequest(topics=topics), 9)


def test_much_is_read_and_written_in_many_steps() -> None:
    data = names(5000)
    stops, (read, elements) = finished(slow_decoder(MetadataRequest, 9)(data, 0))
    assert stops >= 20
    assert elements == 5000
    assert read == decoder(MetadataRequest, 9)(data, 0)
    stops, _ = finished(slow_encoder(MetadataRequest, 9)(read, Output()))
    assert stops >= 20


def test_what_is_damaged_in_the_middle_is_refused_there() -> None:
    data = names(5000)[:-1000]
    with pytest.raises(DecodeError):
        finished(slow_decoder(MetadataRequest, 9)(data, 0))


def test_a_reader_stops_at_what_it_was_told_to_read_at_once() -> None:
    decode = decoder(MetadataRequest, 9)
    assert len(decode(names(500), 0, 500).topics) == 500
    with pytest.raises(TooManyElementsError):
        decode(names(501), 0, 500)


@pytest.mark.parametrize(("topics", "partitions"), [(1, 100), (4, 100), (100, 5), (20, 50), (126, 126)])
def test_the_quick_reader_of_produce_requests_counts_too(topics: int, partitions: int) -> None:
    data = [
        TopicProduceData(
            name=f"t{number}",
            partition_data=[
                PartitionProduceData(index=n, records=memoryview(b"xyz")) for n in range(partitions)
            ],
        )
        for number in range(topics)
    ]
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=data)
    view = memoryview(bytearray(encoded(request, 9)))
    decode = decoder(ProduceRequest, 9)
    assert decode(view, 0) == request
    if topics * (partitions + 1) <= 610:
        assert decode(view, 0, 610) == request
    else:
        with pytest.raises(TooManyElementsError):
            decode(view, 0, 610)


def test_a_whole_response_is_the_same_and_can_be_taken_apart() -> None:
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=f"t{number}",
                partitions=[ListOffsetsPartitionResponse(partition_index=n) for n in range(count)],
            )
            for number, count in enumerate((0, 3, 1000, 0, 2))
        ]
    )
    parts = b"".join(frame.response_parts(2, 9, 5, response))
    stops, slow = finished(frame.slow_responder(2, 9)(5, response))
    assert stops >= 4
    assert b"".join(slow) == parts
    stops, _ = finished(frame.take_apart(response))
    assert stops >= 5
    assert response.topics == []
