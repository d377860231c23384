"""Fetch v0 to v3: batches become the old messages that such a client can read."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.records.codec import Codec
from ottla.records.message_set import read_message_set
from ottla.storage.layout import TopicPartition
from tests.api.world import World

OLD = [0, 1, 2, 3]


def fetch(world: World, version: int, max_bytes: int) -> Any:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    request = FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="t", partitions=[part])])
    return world.ask(request, version).responses[0].partitions[0]


def batch_bytes(world: World) -> int:
    log = world.logs.get(TopicPartition("t", 0))
    assert log is not None
    return log.size_bytes


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_batch_of_which_only_the_beginning_fits_is_left_out(world: World, version: int) -> None:
    world.make_topic("t")
    world.append("t", count=3)
    first_bytes = batch_bytes(world)
    world.append("t", count=3)
    found = fetch(world, version, max_bytes=first_bytes + 20)
    assert found.error_code == ErrorCode.NONE
    messages = read_message_set(found.records, 0, len(found.records), max_output_bytes=1 << 20)
    assert [message.offset for message in messages] == [0, 1, 2]


@pytest.mark.parametrize("version", OLD)
def test_zstd_which_such_a_client_cannot_read_is_an_error_of_the_partition(
    world: World, version: int
) -> None:
    world.make_topic("t")
    world.append("t", count=3, codec=Codec.ZSTD)
    found = fetch(world, version, max_bytes=1 << 20)
    assert found.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert not found.records
