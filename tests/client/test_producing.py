"""Batches are written once however often they are sent, and transactions are all or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client import groups, reading
from ottla.client.cluster import Cluster
from ottla.client.producing import Producer
from ottla.errors import BrokerError, ProducerFencedError
from ottla.records.compression.codec import Codec
from ottla.records.record import read_batches, read_records
from ottla.testing.embedded import EmbeddedBroker
from tests.client.sending import batch_of

TIMEOUT_S = 60.0


@pytest.fixture
def cluster(ottla_broker: EmbeddedBroker) -> Iterator[Cluster]:
    ottla_broker.create_topic("t", 3)
    with Cluster(ottla_broker.bootstrap, timeout_s=TIMEOUT_S) as found:
        yield found


def _committed(cluster: Cluster, partition: int = 0) -> list[bytes | None]:
    """What a reader of committed records sees."""
    end = reading.end_offsets(cluster, [("t", partition)], reading.READ_COMMITTED)["t", partition]
    found, offset = [], 0
    while offset < end:
        fetched = reading.fetch_raw(cluster, ("t", partition), offset, isolation=reading.READ_COMMITTED)
        aborted = fetched.aborted
        offset = fetched.next_offset
        for position, header in read_batches(fetched.records):
            begun = [one for one in aborted if one[0] == header.producer_id and one[1] <= header.base_offset]
            if header.is_control:
                aborted = [one for one in aborted if one not in begun]
            elif not begun:
                found += [record.value for record in read_records(fetched.records, position)]
    return found


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_written_in_order(cluster: Cluster, codec: Codec) -> None:
    producer = Producer(cluster, codec=codec)
    for number in range(5):
        producer.send({("t", index): batch_of(b"%d" % number, b"x") for index in range(3)})
    producer.flush()
    for index in range(3):
        assert _committed(cluster, index)[::2] == [b"%d" % number for number in range(5)]


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("transactional_id", [None, "id"])
def test_a_batch_whose_answer_is_lost_is_written_once(
    cluster: Cluster, ottla_broker: EmbeddedBroker, handled: bool, transactional_id: str | None
) -> None:
    producer = Producer(cluster, transactional_id)
    producer.send({("t", 0): batch_of(b"a")})
    producer.flush()
    ottla_broker.faults.drop("Produce", count=3, handled=handled)
    for value in (b"b", b"c", b"d"):
        producer.send({("t", 0): batch_of(value), ("t", 1): batch_of(value)})
    producer.flush()
    if transactional_id is not None:
        producer.commit()
    assert ottla_broker.faults.pending == 0
    assert _committed(cluster) == [b"a", b"b", b"c", b"d"]
    assert _committed(cluster, 1) == [b"b", b"c", b"d"]


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"])
def test_a_batch_that_was_refused_for_now_is_sent_again(
    cluster: Cluster, ottla_broker: EmbeddedBroker, error: str
) -> None:
    producer = Producer(cluster)
    ottla_broker.faults.fail("Produce", error, count=2)
    producer.send({("t", 0): batch_of(b"a")})
    producer.send({("t", 0): batch_of(b"b")})
    producer.flush()
    assert _committed(cluster) == [b"a", b"b"]


def test_a_batch_that_is_refused_for_good_is_told(cluster: Cluster, ottla_broker: EmbeddedBroker) -> None:
    producer = Producer(cluster)
    ottla_broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
    producer.send({("t", 0): batch_of(b"a")})
    with pytest.raises(BrokerError, match="t-0: TOPIC_AUTHORIZATION_FAILED"):
        producer.flush()
    assert _committed(cluster) == []


def test_a_batch_too_large_for_the_topic_is_told(cluster: Cluster) -> None:
    producer = Producer(cluster)
    producer.send({("t", 0): batch_of(b"x" * 2_000_000)})
    with pytest.raises(BrokerError, match=r"MESSAGE_TOO_LARGE, a batch of 2.* a smaller batch.size may help"):
        producer.flush()


def test_transactions_are_all_or_nothing_and_offsets_go_with_them(cluster: Cluster) -> None:
    producer = Producer(cluster, "id")
    producer.send({("t", 0): batch_of(b"a"), ("t", 1): batch_of(b"b")})
    producer.commit_offsets("g", {("t", 2): groups.Committed(1, "first")})
    producer.commit()
    producer.send({("t", 0): batch_of(b"c")})
    producer.commit_offsets("g", {("t", 2): groups.Committed(2)})
    producer.abort()
    producer.send({("t", 1): batch_of(b"d")})
    producer.commit()
    producer.commit()  # there is nothing open: nothing happens
    assert _committed(cluster, 0) == [b"a"]
    assert _committed(cluster, 1) == [b"b", b"d"]
    assert groups.fetch_offsets(cluster, "g") == {("t", 2): groups.Committed(1, "first")}


@pytest.mark.parametrize(
    "api",
    [
        "InitProducerId",
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
        "TxnOffsetCommit",
        "EndTxn",
        "FindCoordinator",
    ],
)
@pytest.mark.parametrize("handled", [False, True])
def test_a_transaction_survives_lost_answers(
    cluster: Cluster, ottla_broker: EmbeddedBroker, api: str, handled: bool
) -> None:
    ottla_broker.faults.drop(api, count=2, handled=handled)
    producer = Producer(cluster, "id")
    producer.send({("t", 0): batch_of(b"a")})
    producer.commit_offsets("g", {("t", 0): groups.Committed(1)})
    producer.commit()
    assert ottla_broker.faults.pending == 0
    assert _committed(cluster) == [b"a"]
    assert groups.fetch_offsets(cluster, "g", require_stable=True) == {("t", 0): groups.Committed(1)}


def test_a_broker_that_dies_in_a_transaction_loses_nothing(
    cluster: Cluster, ottla_broker: EmbeddedBroker
) -> None:
    producer = Producer(cluster, "id")
    producer.send({("t", 0): batch_of(b"a")})
    producer.flush()
    ottla_broker.kill()
    ottla_broker.start()
    producer.send({("t", 0): batch_of(b"b"), ("t", 1): batch_of(b"c")})
    producer.commit()
    assert _committed(cluster) == [b"a", b"b"]
    assert _committed(cluster, 1) == [b"c"]


@pytest.mark.parametrize("step", ["send", "commit_offsets", "commit"])
def test_who_takes_the_id_fences_its_former_owner(
    cluster: Cluster, ottla_broker: EmbeddedBroker, step: str
) -> None:
    zombie = Producer(cluster, "id")
    zombie.send({("t", 0): batch_of(b"zombie")})
    zombie.flush()
    with Cluster(ottla_broker.bootstrap, timeout_s=TIMEOUT_S) as other:
        owner = Producer(other, "id")
        owner.send({("t", 0): batch_of(b"owner")})
        owner.flush()

        def go_on() -> None:
            if step == "send":
                zombie.send({("t", 1): batch_of(b"zombie")})
                zombie.flush()
            elif step == "commit_offsets":
                zombie.commit_offsets("g", {("t", 0): groups.Committed(1)})
            else:
                zombie.commit()

        with pytest.raises(ProducerFencedError, match="has taken over id"):
            go_on()
        owner.commit()
    assert _committed(cluster) == [b"owner"]
    assert _committed(cluster, 1) == []


def test_a_producer_without_an_id_has_no_transactions(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError, match="no transactions"):
        Producer(cluster).commit()


def test_a_timeout_that_the_brokers_do_not_allow_is_told(cluster: Cluster) -> None:
    with pytest.raises(BrokerError, match=r"allow less than transaction.timeout.ms=1000000000"):
        Producer(cluster, "id", transaction_timeout_ms=1_000_000_000)
