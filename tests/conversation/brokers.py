"""The two that are talked to: ottla in a thread of this process, and Apache Kafka in a JVM, with the same settings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from ottla.broker import Address, Broker, Settings
from ottla.config import BrokerConfig
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.conversation.talk import Talk

KAFKA = "4.2.0"
GROUP, TRANSACTION = 0, 1
SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "num.recovery.threads.per.data.dir": "2",
    "log.retention.ms": "-1",
    "log.index.size.max.bytes": "16384",
    "log.segment.bytes": "104857600",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.max.size": "4",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # One thread each: what one connection has sent is taken up before what another sends after it (`Talk.begin`).
    "num.network.threads": "1",
    "num.io.threads": "1",
}


@contextmanager
def ottla(work_dir: Path) -> Iterator[int]:
    """The port of an ottla broker whose data lies in `work_dir`."""
    dirs = f"{work_dir / 'data-1'},{work_dir / 'data-2'}"
    config = BrokerConfig.from_properties({"log.dirs": dirs, "node.id": "1", **SETTINGS})
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> Broker:
        broker = Broker(Settings(config, str(work_dir / "ottla.db"), Address("127.0.0.1", 0)))
        await broker.start()
        return broker

    try:
        broker = asyncio.run_coroutine_threadsafe(start(), loop).result()
        try:
            yield broker.address.port
        finally:
            asyncio.run_coroutine_threadsafe(broker.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def kafka(work_dir: Path) -> Iterator[int]:
    """The port of a Kafka broker whose data lies in `work_dir`."""
    from tests.interop.kafka import KafkaBroker

    dirs = f"{work_dir / 'data'},{work_dir / 'data-2'}"
    recorded_with = {"broker.session.timeout.ms": "3000"}  # it tells its settings, too
    with KafkaBroker(KAFKA, work_dir, {**SETTINGS, **recorded_with, "log.dirs": dirs}) as broker:
        port = int(broker.servers.rpartition(":")[2])
        await_coordinators(port)
        yield port


def await_coordinators(port: int) -> None:
    """Kafka makes the topics of its coordinators when somebody first asks for them."""
    talk = Talk("127.0.0.1", port)
    for kind in (GROUP, TRANSACTION):
        request = FindCoordinatorRequest(key="x", key_type=kind)
        talk.until(1, request, lambda response: response.error_code == 0)
    talk.until(5, InitProducerIdRequest(transactional_id=None), lambda response: response.error_code == 0)
    talk.close()
