"""What the compiled readers and writers do beyond the bytes of valid messages."""

from __future__ import annotations

import uuid

import pytest

from ottla.protocol.codec import DecodeError, Output, decoder, encoder
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def encoded(message: Message, version: int) -> bytes:
    output = Output()
    encoder(type(message), version)(message, output)
    return b"".join(output.parts())


def produce(records: memoryview | None) -> ProduceRequest:
    return ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=records)])]
    )


def test_records_are_views_of_the_buffer_and_can_be_patched() -> None:
    frame = bytearray(encoded(produce(memoryview(b"abcdef")), 9))
    message = decoder(ProduceRequest, 9)(memoryview(frame), 0)
    records = message.topic_data[0].partition_data[0].records
    records[0] = ord("X")
    assert b"Xbcdef" in frame


def test_records_of_an_immutable_buffer_are_views_too() -> None:
    frame = encoded(produce(memoryview(b"abcdef")), 9)
    records = decoder(ProduceRequest, 9)(frame, 0).topic_data[0].partition_data[0].records
    assert records.obj is frame


def test_records_are_written_without_a_copy() -> None:
    pieces = [memoryview(b"first"), memoryview(b"second")]
    message = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=uuid.UUID(int=5),
                partitions=[
                    PartitionData(partition_index=0, records=pieces),
                    PartitionData(partition_index=1, records=b"third"),
                    PartitionData(partition_index=2, records=b""),
                    PartitionData(partition_index=3, records=None),
                ],
            )
        ]
    )
    output = Output()
    encoder(FetchResponse, 16)(message, output)
    parts = output.parts()
    assert parts[1] is pieces[0]
    assert parts[2] is pieces[1]
    assert any(part is message.responses[0].partitions[1].records for part in parts)
    assert len(parts) == 6  # no empty piece for the partition without records
    assert len(output) == sum(map(len, parts))
    back = decoder(FetchResponse, 16)(b"".join(parts), 0).responses[0].partitions
    assert [p.records and bytes(p.records) for p in back] == [b"firstsecond", b"third", b"", None]


def test_a_null_that_a_version_cannot_say_is_written_as_empty() -> None:
    message = JoinGroupResponse(protocol_name=None, leader="a")
    assert decoder(JoinGroupResponse, 6)(encoded(message, 6), 0).protocol_name == ""
    assert decoder(JoinGroupResponse, 7)(encoded(message, 7), 0).protocol_name is None


def test_a_null_where_none_may_be_is_refused() -> None:
    with pytest.raises(DecodeError, match="client_software_name is null"):
        decoder(ApiVersionsRequest, 3)(b"\0\0\0", 0)


def test_unknown_tags_are_skipped() -> None:
    plain = encoded(ApiVersionsRequest(client_software_name="a", client_software_version="b"), 3)
    assert plain[-1:] == b"\0"
    tagged = plain[:-1] + b"\x02" + b"\x05\x03abc" + b"\xff\x01\x00"
    assert decoder(ApiVersionsRequest, 3)(tagged, 0) == decoder(ApiVersionsRequest, 3)(plain, 0)


def test_a_tag_whose_size_lies_is_refused() -> None:
    message = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])
    plain = encoded(message, 12)
    body = b"\x00\x00\x00\x01" + bytes(8) + b"\x00"  # an epoch and its end offset, 13 bytes
    at = plain.rindex(b"\x00\x00\x00")  # the tags of the partition, of the topic, of the response
    good = plain[:at] + b"\x01\x00" + bytes([len(body)]) + body + b"\x00\x00"
    assert decoder(FetchResponse, 12)(good, 0).responses[0].partitions[0].diverging_epoch.epoch == 1
    bad = plain[:at] + b"\x01\x00" + bytes([len(body) - 1]) + body + b"\x00\x00"
    with pytest.raises(DecodeError, match="diverging_epoch is not as long"):
        decoder(FetchResponse, 12)(bad, 0)


def test_an_error_names_the_message_and_the_version() -> None:
    with pytest.raises(DecodeError, match="ProduceRequest v9"):
        decoder(ProduceRequest, 9)(b"\0", 0)
