"""The client commands against Apache Kafka: the suite that also runs against ottla's own broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests import client_behaviours
from tests.conversation.brokers import await_coordinators
from tests.interop.kafka import NEWEST, KafkaBroker


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with KafkaBroker(NEWEST, tmp_path_factory.mktemp("clients")) as broker:
        await_coordinators(int(broker.servers.rpartition(":")[2]))  # that takes longer than commands wait
        yield broker.servers


class TestTopics(client_behaviours.Topics):
    def test_internal_topics_are_shown_only_when_asked_for(
        self, ottla: client_behaviours.Ottla, topic: str
    ) -> None:
        # The client library asks for a group's coordinator, and Kafka then makes its topic of offsets.
        with ottla.start("consume", topic, "--follow", "--quiet") as process:
            while "__consumer_offsets" not in ottla.ok("topics", "list", "--internal").split():
                assert process.poll() is None
            process.kill()
        assert "__consumer_offsets" not in ottla.ok("topics", "list").split()
        (described,) = ottla.lines("topics", "describe", "__consumer_offsets", "--json")
        assert described["internal"]


class TestConfigs(client_behaviours.Configs):
    pass


class TestCluster(client_behaviours.Cluster):
    pass


class TestRecords(client_behaviours.Records):
    pass


class TestProduceAndConsume(client_behaviours.ProduceAndConsume):
    pass


class TestReading(client_behaviours.Reading):
    def test_what_was_aborted_is_left_out_and_markers_are_no_records(
        self, ottla: client_behaviours.Ottla, topic: str
    ) -> None:
        producer = Producer({"bootstrap.servers": ottla.bootstrap, "transactional.id": topic})
        producer.init_transactions()
        for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            producer.flush()
            end()
        assert ottla.ok("consume", topic) == "kept\n"
        assert ottla.ok("consume", topic, "--isolation", "read_uncommitted") == "kept\ndropped\n"
        producer.begin_transaction()
        producer.produce(topic, "open", partition=0)
        producer.flush()
        assert ottla.ok("consume", topic) == "kept\n"
        assert ottla.ok("consume", topic, "--isolation", "read_uncommitted", "--from", -1) == "open\n"
        producer.abort_transaction()


class TestPipes(client_behaviours.Pipes):
    pass


class TestGroups(client_behaviours.Groups):
    pass


class TestTransactions(client_behaviours.Transactions):
    pass
