"""The kernel reads an OffsetCommit as the general reader does, or leaves it to that; compiled and interpreted."""

from __future__ import annotations

import uuid
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol import frame, request_kernel
from ottla.protocol.decoding import compile_decoder
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.wire import DecodeError
from tests import kernels

VERSIONS = range(OffsetCommitRequest.FLEXIBLE_SINCE, OffsetCommitRequest.VERSIONS[1] + 1)
SHORT_BYTES = 126
BUILDS = [
    pytest.param(request_kernel, id="installed"),
    pytest.param(kernels.interpreted(request_kernel), id="interpreted"),
]

texts = st.text(st.characters(codec="utf-8"), max_size=140)
partitions = st.builds(
    OffsetCommitRequestPartition,
    partition_index=st.integers(-(2**31), 2**31 - 1),
    committed_offset=st.integers(-(2**63), 2**63 - 1),
    committed_leader_epoch=st.integers(-(2**31), 2**31 - 1),
    committed_metadata=st.none() | texts,
)
topics = st.builds(
    OffsetCommitRequestTopic,
    name=texts,
    topic_id=st.none() | st.uuids(),
    partitions=st.lists(partitions, max_size=3),
)
requests = st.builds(
    OffsetCommitRequest,
    group_id=texts,
    generation_id_or_member_epoch=st.integers(-(2**31), 2**31 - 1),
    member_id=texts,
    group_instance_id=st.none() | texts,
    topics=st.lists(topics, max_size=3),
)


def encoded(request: OffsetCommitRequest, version: int) -> tuple[memoryview, int]:
    """The frame, and where the request begins."""
    data = b"".join(frame.request_parts(8, version, 7, "client", request))[4:]
    return memoryview(bytearray(data)), frame.RequestHeader.parse(data).body_position


def usual(version: int) -> tuple[memoryview, int]:
    entry = OffsetCommitRequestPartition(partition_index=3, committed_offset=1 << 40)
    topic = OffsetCommitRequestTopic(name="topic", topic_id=uuid.UUID(int=5), partitions=[entry, entry])
    return encoded(OffsetCommitRequest(group_id="group", member_id="m", topics=[topic, topic]), version)


def strings(request: OffsetCommitRequest, version: int) -> list[str]:
    found = [request.group_id, request.member_id, request.group_instance_id or ""]
    for topic in request.topics:
        found += [topic.name] if version < 10 else []
        found += [entry.committed_metadata or "" for entry in topic.partitions]
    return found


@pytest.mark.parametrize("kernel", BUILDS)
@settings(deadline=None)
@given(request=requests, version=st.sampled_from(VERSIONS))
def test_a_commit_is_read_as_the_general_reader_reads_it(
    kernel: ModuleType, request: OffsetCommitRequest, version: int
) -> None:
    data, position = encoded(request, version)
    read = kernel.read_offset_commit(data, position, version)
    metadata = [entry.committed_metadata for topic in request.topics for entry in topic.partitions]
    if None in metadata or any(len(text.encode()) > SHORT_BYTES for text in strings(request, version)):
        assert read is None
    else:
        assert read == compile_decoder(OffsetCommitRequest, version)(data, position)


@pytest.mark.parametrize("kernel", BUILDS)
@settings(deadline=None)
@given(version=st.sampled_from(VERSIONS), data=st.data())
def test_a_damaged_commit_is_read_in_the_same_way_or_left_to_the_general_reader(
    kernel: ModuleType, version: int, data: st.DataObject
) -> None:
    view, position = usual(version)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(position, len(view) - 1))
        view[at] = data.draw(st.sampled_from((0, 1, 2, 127, 128, 255)))
    view = view[: data.draw(st.integers(position, len(view)))]
    read = kernel.read_offset_commit(view, position, version)
    if read is not None:
        assert read == compile_decoder(OffsetCommitRequest, version)(view, position)


@pytest.mark.parametrize("kernel", BUILDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_is_cut_short_anywhere_is_left_to_the_general_reader(
    kernel: ModuleType, version: int
) -> None:
    whole, position = usual(version)
    assert kernel.read_offset_commit(whole, position, version) is not None
    for size in range(position, len(whole)):
        assert kernel.read_offset_commit(whole[:size], position, version) is None
        with pytest.raises(DecodeError):
            compile_decoder(OffsetCommitRequest, version)(whole[:size], position)
