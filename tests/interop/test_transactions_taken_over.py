"""Transactions that Kafka began end on ottla, and the other way round: `__transaction_state` is the same file."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.client import TIMEOUT_S
from tests.clients.transactors import LAST, ConfluentTransactor
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.serving import OttlaServer
from tests.interop.test_takeover import ottla

TOOL = "org.apache.kafka.tools.TransactionsCommand"
GROUP = "group"


def transact(servers: str, name: str, value: str, offset: int, end: str) -> None:
    """A producer begins anew, and ends its transaction, or leaves it open."""
    producer = ConfluentTransactor(servers, name)
    producer.begin()
    producer.send("t", 0, value)
    producer.send_offset("t", offset, GROUP)
    if end == "commit":
        producer.commit()
    elif end == "abort":
        producer.abort()


def committed(servers: str) -> list[str]:
    last = ConfluentTransactor(servers, "last")
    last.begin()
    last.send("t", 0, LAST)
    last.commit()
    return ConfluentTransactor.read(servers, "t", 0)


def group_offset(servers: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP, "log_level": 0})
    (found,) = consumer.committed([TopicPartition("t", 0)], TIMEOUT_S)
    consumer.close()
    offset: int = found.offset
    return offset


def states(listed: str) -> dict[str, str]:
    """Transactional ids and their states, from what either tool prints."""
    rows = [line.split() for line in listed.splitlines()[1:]]
    return {row[0]: row[-1] for row in rows}


def await_states(list_them: Callable[[], str], **expected: str) -> None:
    """Both may have been killed between a transaction's end and its markers: then these are written at the start."""
    deadline = time.monotonic() + TIMEOUT_S
    while (found := states(list_them())) != expected:
        assert time.monotonic() < deadline, found


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_transactions_go_on_in_other_hands(tmp_path: Path, killed: bool) -> None:
    broker = KafkaBroker(NEWEST, tmp_path / "work")
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        admin.create_topics([NewTopic("t", 1)])["t"].result(TIMEOUT_S)
        transact(broker.servers, "one", "kafka 1", 1, "commit")
        transact(broker.servers, "two", "kafka 2", 2, "abort")
        transact(broker.servers, "three", "kafka 3", 3, "leave open")
        if killed:
            broker.kill()
        else:
            broker.stop()

    ottla("adopt", broker.data_dir)
    with OttlaServer(broker.data_dir) as server:
        await_states(
            lambda: ottla("transactions", "list", "--bootstrap", server.servers),
            one="CompleteCommit", two="CompleteAbort", three="Ongoing",
        )  # fmt: skip
        transact(server.servers, "three", "ottla 3", 4, "commit")
        transact(server.servers, "one", "ottla 1", 5, "commit")
        assert group_offset(server.servers) == 5
        transact(server.servers, "two", "ottla 2", 6, "leave open")
        if killed:
            server.kill()
    ottla("release", broker.data_dir)

    with broker, broker.client() as client:
        await_states(
            lambda: client.run_tool(TOOL, "--bootstrap-server", broker.servers, "list").out,
            one="CompleteCommit", two="Ongoing", three="CompleteCommit",
        )  # fmt: skip
        transact(broker.servers, "two", "kafka again", 7, "commit")
        assert group_offset(broker.servers) == 7
        expected = ["kafka 1", "ottla 3", "ottla 1", "kafka again"]
        assert committed(broker.servers) == expected
        errors = [line for line in broker.log_text().splitlines() if " ERROR " in line]
        assert [line for line in errors if re.search("oordinator|_state|_offsets|t-0", line)] == []
