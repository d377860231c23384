"""Asking a cluster and reading raw batches, also when connections break and leaders move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client import groups, reading
from ottla.client.cluster import GROUP, Cluster
from ottla.client.connection import Connection
from ottla.client.producing import Producer
from ottla.errors import BrokerError, ConfigError, ConnectionLostError, UnsupportedVersionError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.records.record import read_batches, read_records
from ottla.testing.embedded import EmbeddedBroker
from tests.client.sending import batch_of

TIMEOUT_S = 60.0


@pytest.fixture
def cluster(ottla_broker: EmbeddedBroker) -> Iterator[Cluster]:
    ottla_broker.create_topic("t", 3)
    with Cluster(ottla_broker.bootstrap, timeout_s=TIMEOUT_S) as found:
        yield found


def _send(cluster: Cluster, partition: int, *values: bytes) -> None:
    producer = Producer(cluster)
    producer.send({("t", partition): batch_of(*values)})
    producer.flush()


def _values(records: memoryview) -> list[bytes | None]:
    return [
        record.value for position, _ in read_batches(records) for record in read_records(records, position)
    ]


def test_topics_have_leaders_and_ids(cluster: Cluster, ottla_broker: EmbeddedBroker) -> None:
    topic = cluster.topics(["t"])["t"]
    assert topic.leaders == {0: 1, 1: 1, 2: 1}
    assert topic.topic_id == ottla_broker.broker.metadata.image.topics["t"].topic_id
    assert set(cluster.topics()) == {"t"}
    assert cluster.nodes() == [1]


def test_a_topic_that_is_not_there_is_told_or_left_out(cluster: Cluster) -> None:
    with pytest.raises(BrokerError, match="topic nope: UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.topics(["t", "nope"])
    assert set(cluster.topics(["t", "nope"], skip_missing=True)) == {"t"}
    with pytest.raises(BrokerError, match="no partition 3"):
        cluster.leader(("t", 3))


def test_offsets_are_found_at_both_ends_and_by_time(cluster: Cluster) -> None:
    _send(cluster, 0, b"a", b"b")
    times = reading.list_offsets(cluster, {("t", 0): 0, ("t", 1): 0})
    _send(cluster, 0, b"c")
    assert reading.end_offsets(cluster, [("t", 0), ("t", 1)]) == {("t", 0): 3, ("t", 1): 0}
    assert reading.list_offsets(cluster, {("t", 0): reading.EARLIEST})["t", 0].offset == 0
    assert times["t", 0].offset == 0
    assert times["t", 1].offset == reading.NO_OFFSET
    assert reading.list_offsets(cluster, {("t", 0): times["t", 0].timestamp})["t", 0].offset == 0
    assert reading.list_offsets(cluster, {("t", 0): 1 << 50})["t", 0].offset == reading.NO_OFFSET


def test_a_fetch_gives_whole_batches_and_where_to_go_on(cluster: Cluster) -> None:
    for number in range(10):
        _send(cluster, 0, b"%d" % number, b"x" * 1000)
    offset, found = 0, []
    while offset < 20:
        fetched = reading.fetch_raw(cluster, ("t", 0), offset, 2500)
        assert offset < fetched.next_offset <= offset + 4  # two batches and a cut one
        assert fetched.high_watermark == 20
        found += _values(fetched.records)[::2]
        offset = fetched.next_offset
    assert found == [b"%d" % number for number in range(10)]
    assert reading.fetch_raw(cluster, ("t", 0), 20, max_wait_ms=0).next_offset == 20


def test_a_batch_larger_than_the_fetch_comes_all_the_same(cluster: Cluster) -> None:
    _send(cluster, 0, b"x" * 100_000)
    assert _values(reading.fetch_raw(cluster, ("t", 0), 0, 100).records) == [b"x" * 100_000]


def test_an_offset_that_is_not_there_is_told(cluster: Cluster) -> None:
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE") as caught:
        reading.fetch_raw(cluster, ("t", 0), 7)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_committed_read_stops_before_open_transactions_and_names_aborted_ones(cluster: Cluster) -> None:
    producer = Producer(cluster, "id")
    producer.send({("t", 0): batch_of(b"no")})
    producer.abort()
    producer.send({("t", 0): batch_of(b"yes")})
    producer.commit()
    producer.send({("t", 0): batch_of(b"open")})
    producer.flush()
    ends = [reading.end_offsets(cluster, [("t", 0)], isolation)["t", 0] for isolation in (0, 1)]
    assert ends == [5, 4]
    fetched = reading.fetch_raw(cluster, ("t", 0), 0, isolation=reading.READ_COMMITTED)
    assert fetched.last_stable_offset == fetched.next_offset == 4
    assert [first for _, first in fetched.aborted] == [0]


def test_groups_without_members_keep_offsets(cluster: Cluster) -> None:
    assert groups.fetch_offsets(cluster, "g") == {}
    groups.commit_offsets(cluster, "g", {("t", 0): 5})
    groups.commit_offsets(cluster, "g", {("t", 1): groups.Committed(6, "note")})
    groups.commit_offsets(cluster, "g", {})
    everything = {("t", 0): groups.Committed(5), ("t", 1): groups.Committed(6, "note")}
    assert groups.fetch_offsets(cluster, "g") == everything
    assert groups.fetch_offsets(cluster, "g", [("t", 1), ("t", 2)]) == {("t", 1): groups.Committed(6, "note")}


def test_offsets_in_an_open_transaction_are_waited_for(cluster: Cluster) -> None:
    producer = Producer(cluster, "id")
    producer.commit_offsets("g", {("t", 0): groups.Committed(9)})
    assert groups.fetch_offsets(cluster, "g") == {}
    cluster.timeout_s = 0.1
    with pytest.raises(BrokerError, match="UNSTABLE_OFFSET_COMMIT"):
        groups.fetch_offsets(cluster, "g", [("t", 0)], require_stable=True)
    cluster.timeout_s = TIMEOUT_S
    producer.commit()
    assert groups.fetch_offsets(cluster, "g", require_stable=True) == {("t", 0): groups.Committed(9)}


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR", "UNKNOWN_LEADER_EPOCH"])
def test_what_passes_is_tried_again(cluster: Cluster, ottla_broker: EmbeddedBroker, error: str) -> None:
    _send(cluster, 0, b"a")
    ottla_broker.faults.fail("Fetch", error, count=2)
    ottla_broker.faults.fail("ListOffsets", error, count=2)
    assert _values(reading.fetch_raw(cluster, ("t", 0), 0).records) == [b"a"]
    assert reading.end_offsets(cluster, [("t", 0), ("t", 1)]) == {("t", 0): 1, ("t", 1): 0}
    assert ottla_broker.faults.pending == 0


def test_what_does_not_pass_is_told_at_once(cluster: Cluster, ottla_broker: EmbeddedBroker) -> None:
    ottla_broker.faults.fail("ListOffsets", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        reading.end_offsets(cluster, [("t", 0)])
    ottla_broker.faults.fail("OffsetFetch", "GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
        groups.fetch_offsets(cluster, "g")


def test_a_connection_that_breaks_is_made_again(cluster: Cluster, ottla_broker: EmbeddedBroker) -> None:
    _send(cluster, 0, b"a")
    ottla_broker.faults.drop("Fetch", count=2)
    assert reading.fetch_raw(cluster, ("t", 0), 0).next_offset == 1
    ottla_broker.restart()
    assert reading.fetch_raw(cluster, ("t", 0), 0).next_offset == 1


def test_a_coordinator_that_is_not_ready_is_asked_again(
    cluster: Cluster, ottla_broker: EmbeddedBroker
) -> None:
    ottla_broker.faults.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", count=2)
    ottla_broker.faults.fail("OffsetCommit", "NOT_COORDINATOR", count=1)
    groups.commit_offsets(cluster, "g", {("t", 0): 1})
    assert cluster.coordinator(GROUP, "g") == 1


def test_nobody_at_the_address_is_told_with_the_address() -> None:
    with (
        Cluster("127.0.0.1:1", timeout_s=0.01) as nobody,
        pytest.raises(ConnectionLostError, match=r"127.0.0.1:1"),
    ):
        nobody.topics()


def test_the_second_address_will_do(ottla_broker: EmbeddedBroker) -> None:
    with Cluster(f"127.0.0.1:1,{ottla_broker.bootstrap}", timeout_s=TIMEOUT_S) as cluster:
        assert cluster.topics() == {}


def test_options_may_be_named_as_spark_names_them(ottla_broker: EmbeddedBroker) -> None:
    for name in ("bootstrap.servers", "kafka.bootstrap.servers"):
        with Cluster.from_options({name: ottla_broker.bootstrap}) as cluster:
            assert cluster.nodes() == [1]
    with pytest.raises(ConfigError, match="bootstrap"):
        Cluster.from_options({})


def test_a_request_that_the_broker_does_not_know_is_not_sent(ottla_broker: EmbeddedBroker) -> None:
    with Connection.connect("127.0.0.1", ottla_broker.port) as connection:
        with pytest.raises(UnsupportedVersionError, match="SaslHandshake"):
            connection.send(SaslHandshakeRequest())
        assert connection.version(MetadataRequest, newest=4) == 4


def test_answers_come_in_the_order_of_the_requests(cluster: Cluster) -> None:
    connection = cluster.connection()
    for _ in range(3):
        connection.post(MetadataRequest(topics=None))
    with pytest.raises(RuntimeError, match="3 earlier answers"):
        connection.send(MetadataRequest(topics=None))
    assert [len(connection.take().topics) for _ in range(3)] == [1, 1, 1]
