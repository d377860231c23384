"""Produce v0 to v2: sets of messages of magic 0 and 1, taken as Kafka took them."""

from __future__ import annotations

import pytest

from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.compression.codec import Codec
from ottla.records.legacy.conversion import LegacyRecord, build_message_set
from ottla.testing.runtime import START_MS
from tests.api.world import World
from tests.storage.world import read_all

OLD = [(0, 0), (1, 0), (2, 1)]  # version, magic
T0 = TopicPartition("t", 0)
LIMIT = 1000


def messages(magic: int, *values: bytes, codec: Codec = Codec.NONE) -> bytes:
    records = [LegacyRecord(n, START_MS if magic else -1, 0, None, value) for n, value in enumerate(values)]
    return build_message_set(records, magic, codec)


def send(world: World, version: int, data: bytes | None, *, acks: int = 1) -> tuple[int, int]:
    part = PartitionProduceData(index=0, records=data)  # type: ignore[arg-type]
    topic = TopicProduceData(name="t", partition_data=[part])
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])
    (answer,) = world.ask(request, version).responses[0].partition_responses
    return answer.error_code, answer.base_offset


def values(world: World) -> list[bytes | None]:
    log = world.logs.get(T0)
    assert log is not None
    return [record.value for record in read_all(log)]


@pytest.fixture
def old(world: World) -> World:
    world.make_topic("t", max_message_bytes=str(LIMIT))
    return world


@pytest.mark.parametrize(("version", "magic"), OLD)
@pytest.mark.parametrize("left", [1, 11, 12, 16, 17, 20])
def test_a_message_that_is_cut_off_at_the_end_is_dropped(
    old: World, version: int, magic: int, left: int
) -> None:
    data = messages(magic, b"a", b"b") + messages(magic, b"never whole")[:left]
    assert send(old, version, data) == (0, 0)
    assert values(old) == [b"a", b"b"]


@pytest.mark.parametrize(("version", "magic"), OLD)
def test_a_set_without_a_whole_message_is_no_error(old: World, version: int, magic: int) -> None:
    for data in (b"", messages(magic, b"a")[:-1], None):
        assert send(old, version, data) == (0, -1)
        assert send(old, version, data, acks=5)[0] == ErrorCode.INVALID_REQUIRED_ACKS
    assert values(old) == []
    assert old.metrics.topic("t").produce_requests == 3


@pytest.mark.parametrize(("version", "magic"), OLD)
def test_each_message_of_a_set_is_measured_by_itself(old: World, version: int, magic: int) -> None:
    several = [bytes([n]) * (LIMIT // 2) for n in range(5)]
    assert send(old, version, messages(magic, *several)) == (0, 0)
    assert values(old) == several
    cut_off = messages(magic, bytes(LIMIT))[:-1]
    assert send(old, version, messages(magic, *several) + cut_off) == (0, 5)
    several *= 2
    assert values(old) == several
    too_large = messages(magic, b"small", bytes(LIMIT), b"small")
    assert send(old, version, too_large) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
    assert values(old) == several
    assert old.metrics.topic("t").bytes_rejected == len(too_large)


@pytest.mark.parametrize(("version", "magic"), OLD)
def test_a_plain_message_may_follow_a_compressed_one_and_not_the_other_way_round(
    old: World, version: int, magic: int
) -> None:
    packed, plain = messages(magic, b"a", b"b", codec=Codec.GZIP), messages(magic, b"c")
    assert send(old, version, packed + plain) == (0, 0)
    assert values(old) == [b"a", b"b", b"c"]
    for data in (plain + packed, packed + packed):
        assert send(old, version, data)[0] == ErrorCode.INVALID_RECORD
    assert values(old) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(("version", "magic"), OLD)
def test_a_message_in_the_middle_that_is_damaged_refuses_all(old: World, version: int, magic: int) -> None:
    data = bytearray(messages(magic, b"a", b"b", b"c"))
    data[len(messages(magic, b"a", b"b")) - 1] ^= 1
    assert send(old, version, bytes(data)) == (ErrorCode.CORRUPT_MESSAGE, -1)
    assert values(old) == []


def test_bytes_in_are_counted_as_they_were_sent(old: World) -> None:
    data = messages(1, b"a", b"b")
    send(old, 2, data)
    assert old.metrics.topic("t").bytes_in == len(data)
