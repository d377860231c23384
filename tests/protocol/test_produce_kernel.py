"""Runs of Produce requests are found as the general reader sees them; compiled and interpreted."""

from __future__ import annotations

import uuid
from array import array
from struct import pack
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol import frame, produce_kernel, request_kernel
from ottla.protocol.decoding import compile_decoder
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.wire import DecodeError
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from tests import kernels

BUILDS = [
    pytest.param(produce_kernel, id="installed"),
    pytest.param(kernels.interpreted(produce_kernel, request_kernel), id="interpreted"),
]
PLACES = 8
ID = uuid.UUID(int=5)
PLAIN = bytes(build_batch([NewRecord(1000, None, b"v")]))
LARGE = bytes(build_batch([NewRecord(1000, None, b"v" * 300)]))


def request(
    records: bytes | None = PLAIN,
    *,
    version: int = 12,
    correlation_id: int = 7,
    client_id: str | None = "client",
    acks: int = -1,
    topic: str = "orders",
    topic_id: uuid.UUID | None = ID,
    index: int = 3,
    **fields: Any,
) -> bytes:
    part = PartitionProduceData(index=index, records=None if records is None else memoryview(records))
    data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[part])
    message = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data], **fields)
    return b"".join(frame.request_parts(0, version, correlation_id, client_id, message))


def read(kernel: ModuleType, stream: bytes, max_size: int = 1 << 16) -> tuple[Any, list[list[int]]]:
    places = array("q", bytes(8 * 4 * PLACES))
    # What lies around it is none of its business.
    found = kernel.read_run(
        memoryview(bytearray(b"\x00" * 5 + stream + b"\x00" * 5)), 5, 5 + len(stream), max_size, places
    )
    count = 0 if found is None else found[0]
    return found, [places[at : at + 4].tolist() for at in range(0, 4 * count, 4)]


@pytest.mark.parametrize("kernel", BUILDS)
@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("client_id", ["client", "", None])
def test_requests_that_differ_in_records_and_correlation_id_are_one_run(
    kernel: ModuleType, version: int, client_id: str | None
) -> None:
    requests = [
        request(records, version=version, client_id=client_id, correlation_id=number)
        for number, records in enumerate((PLAIN, LARGE, PLAIN), 2**31 - 3)
    ]
    stream = b"".join(requests)
    found, places = read(kernel, stream)
    name, topic_id = ("orders", None) if version < 13 else (None, ID)
    assert found == (3, version, -1, name, topic_id, 3)
    assert [place[0] for place in places] == [2**31 - 3, 2**31 - 2, 2**31 - 1]
    assert [stream[at - 5 : at - 5 + size] for _, at, size, _ in places] == [PLAIN, LARGE, PLAIN]
    assert [place[3] - 5 for place in places] == [
        len(requests[0]), len(requests[0] + requests[1]), len(stream)
    ]  # fmt: skip


@pytest.mark.parametrize("kernel", BUILDS)
@pytest.mark.parametrize(
    "other",
    [
        request(topic="ordert"), request(index=4), request(acks=1), request(client_id="clienu"), request(version=11),
        request(topic="orders2"), request(PLAIN, index=2), request(b"x" * 60), b"",
        b"".join(frame.request_parts(18, 3, 7, "client", ApiVersionsRequest())),
    ],
)  # fmt: skip
def test_a_run_ends_at_the_first_request_that_is_another(kernel: ModuleType, other: bytes) -> None:
    assert read(kernel, request() + other + request())[0][0] == (1 if other else 2)


@pytest.mark.parametrize("kernel", BUILDS)
@pytest.mark.parametrize(
    "stream",
    [
        b"", request()[:-1], request(client_id="ä"), request(None), request(b""), request(PLAIN[:60]),
        request(transactional_id="t"), request(version=8), request(version=13, topic_id=None)[:-1],
        request(bytes(build_batch([NewRecord(1000, None, b"v" * 50)], codec=Codec.GZIP))),
        request(bytes(build_batch([NewRecord(1, None, b"v")], transactional=True, producer_id=1))),
        request(PLAIN[:16] + b"\x01" + PLAIN[17:]), pack(">i", -1) + request()[4:], pack(">i", 0),
    ],
)  # fmt: skip
def test_what_is_special_is_no_run(kernel: ModuleType, stream: bytes) -> None:
    assert read(kernel, stream)[0] is None


@pytest.mark.parametrize("kernel", BUILDS)
def test_a_run_has_no_more_requests_than_places_and_none_that_is_too_large(kernel: ModuleType) -> None:
    assert read(kernel, request() * (PLACES + 1))[0][0] == PLACES
    small = len(request()) - 4
    assert read(kernel, request() + request(LARGE), max_size=small)[0][0] == 1
    assert read(kernel, request(), max_size=small - 1)[0] is None


@pytest.mark.parametrize("kernel", BUILDS)
def test_it_does_not_leave_the_buffer(kernel: ModuleType) -> None:
    places = array("q", bytes(32))
    for start, end in ((-1, 4), (0, 11), (5, 4)):
        with pytest.raises(ValueError, match="does not lie within"):
            kernel.read_run(b"0123456789", start, end, 100, places)


@pytest.mark.parametrize("kernel", BUILDS)
@given(data=st.data())
def test_a_damaged_request_is_read_as_the_general_reader_reads_it_or_not_at_all(
    kernel: ModuleType, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(range(9, 14)))
    whole = bytearray(request(version=version))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    found, places = read(kernel, bytes(whole))
    if found is None:
        return
    view = memoryview(whole)[4 : places[0][3] - 5]
    api_key, read_version, correlation_id, _, position = frame.read_header(view)
    try:
        expected = compile_decoder(ProduceRequest, read_version)(view, position)
    except DecodeError:
        raise AssertionError("read what cannot be read") from None
    (topic,) = expected.topic_data
    (part,) = topic.partition_data
    name, topic_id = (topic.name, None) if read_version < 13 else (None, topic.topic_id)
    assert api_key == 0
    assert found == (1, read_version, expected.acks, name, topic_id, part.index)
    _, at, size, _ = places[0]
    assert places[0][0] == correlation_id
    assert whole[at - 5 : at - 5 + size] == part.records
