"""Transactions across two brokers of a cluster: partitions, coordinators and groups on both, and one that dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.serving import Serve, leaders
from tests.clients.client import TIMEOUT_S
from tests.clients.transactors import LAST, AioTransactor, ConfluentTransactor, KafkaPythonTransactor
from tests.ports import free_ports

PARTITIONS = 4
NAMES = [f"name-{number}" for number in range(6)]  # enough that both brokers look after some


class Cluster:
    """`ottla serve --brokers 2`."""

    def __init__(self, directory: Path) -> None:
        port = free_ports(2)
        self.data = directory / "data"
        self.serve = Serve(
            *(directory, "--data", str(self.data), "--listen", f"127.0.0.1:{port}", "--brokers", "2"),
            *("--set", "transaction.state.log.num.partitions=4", "--set", "offsets.topic.num.partitions=4"),
            nodes=2,
        )
        self.bootstrap = f"127.0.0.1:{port}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic("t", PARTITIONS), NewTopic("in", 1)]).values():
            future.result(TIMEOUT_S)
        for one in (self.bootstrap, f"127.0.0.1:{port + 1}"):
            assert sorted(leaders(one, "t", PARTITIONS)) == [1, 1, 2, 2]
            leaders(one, "in", 1)

    def kill(self, node: int) -> None:
        """It is started again by itself."""
        os.kill(int((self.data / f"node.{node}/broker.pid").read_text()), signal.SIGKILL)

    def committed(self) -> list[list[str]]:
        """What read_committed consumers see, by partition."""
        last = ConfluentTransactor(self.bootstrap, "last")
        last.begin()
        for partition in range(PARTITIONS):
            last.send("t", partition, LAST)
        last.commit()
        return [ConfluentTransactor.read(self.bootstrap, "t", partition) for partition in range(PARTITIONS)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    with cluster.serve:
        yield cluster


def group_offset(bootstrap: str, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition("in", 0)], TIMEOUT_S)
    consumer.close()
    offset: int = found.offset
    return offset


@pytest.mark.parametrize("kind", [ConfluentTransactor, KafkaPythonTransactor, AioTransactor])
def test_transactions_reach_the_partitions_of_both(
    cluster: Cluster, kind: type[ConfluentTransactor | KafkaPythonTransactor | AioTransactor]
) -> None:
    for number, name in enumerate(NAMES):
        producer = kind(cluster.bootstrap, name)
        for commits in (True, False):
            producer.begin()
            for partition in range(PARTITIONS):
                producer.send("t", partition, f"{number}-{commits}")
            producer.send_offset("in", 7 if commits else 8, f"group-{name}")
            if commits:
                producer.commit()
            else:
                producer.abort()
        producer.close()
        assert group_offset(cluster.bootstrap, f"group-{name}") == 7
    assert cluster.committed() == [[f"{number}-True" for number in range(len(NAMES))]] * PARTITIONS


@pytest.mark.parametrize("node", [1, 2])
def test_a_transaction_ends_on_a_broker_that_was_gone_when_it_is_back(cluster: Cluster, node: int) -> None:
    for name in NAMES[:2]:
        producer = ConfluentTransactor(cluster.bootstrap, name)
        producer.begin()
        for partition in range(PARTITIONS):
            producer.send("t", partition, name)
        producer.send_offset("in", 7, f"group-{name}")
        cluster.kill(node)
        producer.commit()
        cluster.serve.next_ready()
        assert group_offset(cluster.bootstrap, f"group-{name}") == 7
    assert cluster.committed() == [NAMES[:2]] * PARTITIONS
