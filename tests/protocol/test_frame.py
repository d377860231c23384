"""Headers and whole frames, as both ends of a connection read and write them."""

from __future__ import annotations

import io
import struct

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.request_header.v1.header import RequestHeader as KioHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioHeaderV2
from kio.serial import entity_writer

from ottla.names import Bytes
from ottla.protocol.codec import DecodeError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frame import (
    RequestHeader,
    decode_request,
    decode_response,
    request_parts,
    response_parts,
)
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def frame_of(parts: list[Bytes]) -> bytes:
    """What follows the length, which must be right."""
    data = b"".join(parts)
    assert struct.unpack_from(">i", data) == (len(data) - 4,)
    return data[4:]


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "ünïcode"])
@pytest.mark.parametrize(("version", "kio_header"), [(8, KioHeaderV1), (9, KioHeaderV2)])
def test_a_request_header_is_read_as_kio_writes_it(
    version: int, kio_header: type, client_id: str | None
) -> None:
    buffer = io.BytesIO()
    header = kio_header(
        request_api_key=3, request_api_version=version, correlation_id=-5, client_id=client_id
    )
    entity_writer(kio_header)(buffer, header)
    parsed = RequestHeader.parse(buffer.getvalue() + b"body")
    assert (parsed.api_key, parsed.version, parsed.correlation_id) == (3, version, -5)
    assert parsed.client_id == client_id
    assert parsed.body_position == len(buffer.getvalue())


def test_tags_in_a_request_header_are_skipped() -> None:
    frame = struct.pack(">hhih", 3, 12, 1, 1) + b"c" + b"\x01\x07\x02xy" + b"body"
    assert RequestHeader.parse(frame).body_position == len(frame) - 4


def test_an_unknown_version_of_api_versions_has_a_header_that_can_be_read() -> None:
    frame = struct.pack(">hhih", 18, 99, 1, 1) + b"c" + b"\0" + b"whatever"
    header = RequestHeader.parse(frame)
    assert (header.api_key, header.version, header.client_id) == (18, 99, "c")


def test_an_unknown_api_has_a_header_that_can_be_read() -> None:
    header = RequestHeader.parse(struct.pack(">hhih", 999, 3, 77, -1))
    assert (header.api_key, header.correlation_id, header.client_id) == (999, 77, None)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(9),
        struct.pack(">hhih", 3, 1, 1, 5) + b"abcd",
        struct.pack(">hhih", 3, 1, 1, 2) + b"\xff\xfe",
        struct.pack(">hhih", 3, 12, 1, -1),
        struct.pack(">hhih", 3, 12, 1, -1) + b"\x01\x05",
        struct.pack(">hhih", 3, 12, 1, -1) + b"\x01\x05\x09ab",
        struct.pack(">hhih", 3, 12, 1, -1) + b"\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 3, 12, 1, -1) + b"\xff" * 9,
    ],
)
def test_a_broken_header_is_refused(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        RequestHeader.parse(frame)


@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_a_request_goes_from_client_to_broker(version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    frame = frame_of(request_parts(3, version, 12, "me", request))
    header = RequestHeader.parse(frame)
    assert (header.api_key, header.version, header.correlation_id, header.client_id) == (3, version, 12, "me")
    assert decode_request(header, frame).topics == request.topics


@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_a_response_goes_from_broker_to_client(version: int) -> None:
    response = MetadataResponse(controller_id=4, cluster_id="c")
    correlation_id, read = decode_response(3, version, frame_of(response_parts(3, version, -3, response)))
    assert correlation_id == -3
    assert read.controller_id == (4 if version >= 1 else -1)
    assert read.cluster_id == ("c" if version >= 2 else None)


def test_a_flexible_response_has_tags_in_its_header_but_that_of_api_versions_has_not() -> None:
    assert frame_of(response_parts(0, 9, 1, ProduceResponse()))[4:5] == b"\0"
    response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = frame_of(response_parts(18, 3, 1, response))
    assert frame[4:6] == b"\0\x23"
    assert decode_response(18, 3, frame) == (1, response)


def test_the_length_counts_records_that_are_not_in_the_run_of_bytes() -> None:
    records = memoryview(bytes(1000))
    partition = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    parts = request_parts(0, 9, 1, None, request)
    assert any(part is records for part in parts)
    frame = frame_of(parts)
    assert decode_request(RequestHeader.parse(frame), frame) == request


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\0\0"])
def test_a_broken_response_is_refused(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_response(3, 12, frame)


def test_a_request_from_a_client_that_says_nothing_about_itself() -> None:
    request = ApiVersionsRequest()
    frame = frame_of(request_parts(18, 0, 1, None, request))
    assert len(frame) == 10
    assert decode_request(RequestHeader.parse(frame), frame) == request


def test_error_codes_are_kafkas() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        code.name.upper(): code.value for code in KioErrorCode
    }
