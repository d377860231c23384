"""Fetch v0 to v3: what clients get that know only messages of magic 0 and 1."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.fetch import old_messages
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.records.compression.codec import Codec
from ottla.records.legacy.conversion import read_message_set
from tests.api.world import World

OLD = [(0, 0), (1, 0), (2, 1), (3, 1)]  # version, magic


def fetch(world: World, version: int, offset: int = 0, max_bytes: int = 1 << 20) -> Any:
    wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[wanted])], max_bytes=1 << 20)
    return world.ask(request, version).responses[0].partitions[0]


def offsets(world: World, version: int, offset: int = 0, max_bytes: int = 1 << 20) -> list[int]:
    records = fetch(world, version, offset, max_bytes).records
    return [record.offset for record in read_message_set(records, 0, len(records), max_output_bytes=1 << 20)]


@pytest.fixture
def two_batches(world: World) -> World:
    world.make_topic("t")
    for _ in range(2):
        world.append("t", count=3)
    return world


@pytest.mark.parametrize(("version", "magic"), OLD)
def test_records_come_in_the_format_of_the_version(two_batches: World, version: int, magic: int) -> None:
    records = fetch(two_batches, version).records
    assert records[16] == magic
    assert offsets(two_batches, version) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("version", range(4))
def test_records_before_the_wanted_one_are_left_out(two_batches: World, version: int) -> None:
    assert offsets(two_batches, version, offset=2) == [2, 3, 4, 5]


@pytest.mark.parametrize("version", range(4))
def test_a_batch_that_does_not_fit_behind_another_is_left_out(two_batches: World, version: int) -> None:
    assert offsets(two_batches, version, max_bytes=150) == [0, 1, 2]


@pytest.mark.parametrize("version", range(3))
def test_of_a_first_batch_that_does_not_fit_the_beginning_comes(two_batches: World, version: int) -> None:
    data = fetch(two_batches, version, max_bytes=30)
    assert (data.error_code, len(data.records)) == (0, 30)


def test_since_v3_the_first_batch_always_comes(two_batches: World) -> None:
    assert offsets(two_batches, 3, max_bytes=30) == [0, 1, 2]


@pytest.mark.parametrize("version", range(4))
def test_zstd_is_refused(world: World, version: int) -> None:
    world.make_topic("t")
    world.append("t", codec=Codec.ZSTD)
    data = fetch(world, version)
    assert (data.error_code, data.records) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")


@pytest.mark.parametrize("version", [0, 3])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_batch_of_many_records_is_read_in_parts(world: World, version: int, codec: Codec) -> None:
    world.make_topic("t")
    count = old_messages.MAX_RECORDS + 5
    world.append("t", count=count, codec=codec)
    world.append("t", count=3)
    read: list[int] = []
    sizes = []
    while len(read) < count + 3:
        found = offsets(world, version, offset=len(read))
        sizes.append(len(found))
        read += found
    assert read == list(range(count + 3))
    assert max(sizes) == old_messages.MAX_RECORDS
