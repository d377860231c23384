"""The client commands against ottla's own broker: the suite that also runs against Apache Kafka."""

from __future__ import annotations

import select
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.testing.embedded import EmbeddedBroker
from ottla.testing.request_faults import Faults
from tests import client_behaviours
from tests.client_behaviours import Ottla


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def bootstrap(broker: EmbeddedBroker) -> str:
    return broker.bootstrap


class TestTopics(client_behaviours.Topics):
    def test_a_topics_id_is_the_one_in_its_directory(self, ottla: Ottla, broker: EmbeddedBroker) -> None:
        names = [f"id-{n}" for n in range(20)]  # so that some ids have a - or _
        ottla.ok("topics", "create", *names, "-p", 1)
        for described in ottla.lines("topics", "describe", *names, "--json"):
            noted = Path(broker.data, f"{described['topic']}-0", "partition.metadata").read_text()
            assert noted.split()[-1] == described["id"]
        ottla.ok("topics", "delete", *names, "--yes")


class TestConfigs(client_behaviours.Configs):
    pass


class TestCluster(client_behaviours.Cluster):
    pass


class TestRecords(client_behaviours.Records):
    pass


class TestProduceAndConsume(client_behaviours.ProduceAndConsume):
    pass


class TestReading(client_behaviours.Reading):
    pass


class TestPipes(client_behaviours.Pipes):
    pass


class TestTrouble(client_behaviours.Behaviours):
    """What only a broker that can be told to misbehave shows."""

    @pytest.fixture(autouse=True)
    def faults(self, broker: EmbeddedBroker) -> Iterator[Faults]:
        yield broker.faults
        broker.faults.clear()

    def test_records_without_an_acknowledgement_are_counted(
        self, ottla: Ottla, topic: str, faults: Faults, tmp_path: Path
    ) -> None:
        faults.delay("Produce", 60_000)
        file = tmp_path / "lines"
        file.write_text("a\nb\n")
        done = ottla("produce", topic, file, "--timeout", 3)
        assert done.exit_code == 1
        assert f"{topic}: no acknowledgement for 3 s" in done.stderr
        assert "0 records acknowledged, 0 refused, 2 unknown" in done.stderr

    def test_a_second_ctrl_c_does_not_wait_for_acknowledgements(
        self, ottla: Ottla, topic: str, faults: Faults
    ) -> None:
        faults.delay("Produce", 60_000)
        with (
            ottla.start("consume", topic, "--follow", "--max", 1) as reader,
            ottla.start("produce", topic) as writer,
        ):
            assert writer.stdin is not None
            assert writer.stderr is not None
            writer.stdin.write(b"a\n")
            writer.stdin.flush()
            assert reader.communicate(timeout=client_behaviours.DEADLINE_S)[0] == b"a\n"
            while not select.select([writer.stderr], [], [], 1.5)[0]:
                writer.send_signal(signal.SIGINT)
            told = f"ottla: {topic}: 0 records acknowledged, 0 refused, 1 unknown\n"
            assert writer.stderr.read().decode() == told
            assert writer.wait(client_behaviours.DEADLINE_S) == 130

    def test_a_connection_that_breaks_loses_and_repeats_nothing(
        self, ottla: Ottla, topic: str, faults: Faults, tmp_path: Path
    ) -> None:
        faults.drop("Produce", handled=True)
        file = tmp_path / "lines"
        file.write_text("".join(f"{n}\n" for n in range(5000)))
        ottla.ok("produce", topic, file, "-p", 0, "-X", "batch.num.messages=1000")
        faults.drop("Fetch")
        assert ottla.ok("consume", topic) == file.read_text()

    def test_a_broker_that_says_nothing_is_given_up(
        self, ottla: Ottla, topic: str, faults: Faults, send: Any
    ) -> None:
        send("a\n")
        faults.delay("Fetch", 60_000)
        done = ottla("consume", topic, "--timeout", 3)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "nothing came for 3 s" in done.stderr

    def test_an_error_of_the_broker_is_told(self, ottla: Ottla, new_topic: str, faults: Faults) -> None:
        faults.fail("CreateTopics", "POLICY_VIOLATION")
        done = ottla("topics", "create", new_topic)
        assert done.exit_code == 1
        assert done.stderr.startswith(f"ottla: {new_topic}: ")


class TestOwnBroker(client_behaviours.Behaviours):
    """With a broker for each test."""

    def test_to_follow_goes_on_when_the_broker_comes_back(
        self, ottla_broker: EmbeddedBroker, tmp_path: Path
    ) -> None:
        ottla = Ottla(ottla_broker.bootstrap)
        ottla_broker.create_topic("t", partitions=1)
        with ottla.start("consume", "t", "--follow") as reader:
            assert reader.stdout is not None
            assert reader.stderr is not None
            for round_ in ("before", "after"):
                file = tmp_path / "lines"
                file.write_text(f"{round_}\n")
                ottla.ok("produce", "t", file)
                assert reader.stdout.readline().decode() == f"{round_}\n"
                if round_ == "before":
                    ottla_broker.stop()
                    assert reader.stderr.readline().startswith(b"ottla: the broker is gone")
                    ottla_broker.start()
            reader.send_signal(signal.SIGINT)
            assert reader.wait(client_behaviours.DEADLINE_S) == 130

    def test_a_broker_that_makes_topics_by_itself_makes_this_one(
        self, ottla_broker: EmbeddedBroker, new_topic: str, tmp_path: Path
    ) -> None:
        ottla = Ottla(ottla_broker.bootstrap)
        file = tmp_path / "lines"
        file.write_text("a\n")
        ottla.ok("produce", new_topic, file)
        assert ottla.ok("consume", new_topic) == "a\n"


class TestGroups(client_behaviours.Groups):
    pass


class TestTransactions(client_behaviours.Transactions):
    pass
