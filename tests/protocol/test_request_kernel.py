"""The kernel's readers give what the general ones give, or leave it to them; compiled and interpreted."""

from __future__ import annotations

import uuid
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol import frame, request_kernel
from ottla.protocol.decoding import compile_decoder
from ottla.protocol.message import Message
from ottla.protocol.messages import APIS
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.wire import DecodeError
from tests import kernels

VERSIONS = range(ProduceRequest.FLEXIBLE_SINCE, ProduceRequest.VERSIONS[1] + 1)
FLEXIBLE_SINCE = {api.key: api.flexible_since for api in APIS.values()}


BUILDS = [
    pytest.param(request_kernel, id="installed"),
    pytest.param(kernels.interpreted(request_kernel), id="interpreted"),
]

partitions = st.builds(
    PartitionProduceData,
    index=st.integers(-1, 2**31 - 1),
    records=st.none() | st.binary(max_size=300).map(lambda data: memoryview(data)),
)
topics = st.builds(
    TopicProduceData,
    name=st.text(max_size=140),
    topic_id=st.none() | st.uuids(),
    partition_data=st.lists(partitions, max_size=3),
)
requests = st.builds(
    ProduceRequest,
    transactional_id=st.none() | st.just("t"),
    acks=st.sampled_from((-1, 0, 1)),
    timeout_ms=st.integers(-1, 2**31 - 1),
    topic_data=st.lists(topics, max_size=3),
)


def plain(message: Any) -> Any:
    """A message as something that can be compared."""
    if isinstance(message, Message):
        return {field.name: plain(getattr(message, field.name)) for field in message.FIELDS}
    if isinstance(message, list):
        return [plain(item) for item in message]
    return bytes(message) if isinstance(message, memoryview) else message


def encoded(request: ProduceRequest, version: int) -> bytes:
    return b"".join(frame.request_parts(0, version, 7, "client", request))[4:]


def usual(version: int) -> bytes:
    part = PartitionProduceData(index=3, records=memoryview(b"r" * 200))
    topic = TopicProduceData(name="topic", topic_id=uuid.UUID(int=5), partition_data=[part, part])
    return encoded(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic, topic]), version)


@pytest.mark.parametrize("kernel", BUILDS)
@given(request=requests, version=st.sampled_from(VERSIONS))
def test_a_request_is_read_as_the_general_reader_reads_it(
    kernel: ModuleType, request: ProduceRequest, version: int
) -> None:
    data = memoryview(bytearray(encoded(request, version)))
    *_, position = kernel.read_header(data, FLEXIBLE_SINCE)
    read = kernel.read_produce(data, position, version)
    expected = compile_decoder(ProduceRequest, version)(data, position)
    if read is not None:
        assert plain(read) == plain(expected)
    else:
        names = [topic.name for topic in request.topic_data] if version < 13 else []
        records = [part.records for topic in request.topic_data for part in topic.partition_data]
        is_usual = request.transactional_id is None and None not in records
        assert not is_usual or any(len(name.encode()) > 126 for name in names)


@pytest.mark.parametrize("kernel", BUILDS)
@given(version=st.sampled_from(VERSIONS), data=st.data())
def test_a_damaged_request_is_read_in_the_same_way_or_left_to_the_general_reader(
    kernel: ModuleType, version: int, data: st.DataObject
) -> None:
    damaged = bytearray(usual(version))
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, 60))] = data.draw(st.sampled_from((0, 1, 2, 127, 128, 255)))
    view = memoryview(damaged)[: data.draw(st.integers(0, len(damaged)))]
    header = kernel.read_header(view, FLEXIBLE_SINCE)
    if header is None:
        return
    parsed = frame.RequestHeader.parse(view)
    assert header == (
        parsed.api_key, parsed.version, parsed.correlation_id, parsed.client_id, parsed.body_position,
    )  # fmt: skip
    read = kernel.read_produce(view, header[4], version)
    if read is not None:
        assert plain(read) == plain(compile_decoder(ProduceRequest, version)(view, header[4]))


@pytest.mark.parametrize("kernel", BUILDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_is_cut_short_anywhere_is_left_to_the_general_reader(
    kernel: ModuleType, version: int
) -> None:
    whole = memoryview(bytearray(usual(version)))
    *_, position = kernel.read_header(whole, FLEXIBLE_SINCE)
    assert kernel.read_produce(whole, position, version) is not None
    for size in range(position, len(whole)):
        assert kernel.read_produce(whole[:size], position, version) is None
        with pytest.raises(DecodeError):
            frame.decode_request(frame.RequestHeader.parse(whole), whole[:size])


@pytest.mark.parametrize("kernel", BUILDS)
def test_records_are_views_into_the_frame(kernel: ModuleType) -> None:
    whole = bytearray(usual(12))
    view = memoryview(whole)
    *_, position = kernel.read_header(view, FLEXIBLE_SINCE)
    records = kernel.read_produce(view, position, 12).topic_data[1].partition_data[0].records
    records[:4] = b"seen"
    assert whole.count(b"seen") == 1
    assert kernel.read_produce(bytes(whole), position, 12) is None  # nothing could be written there
