"""A broker's directory goes from Kafka to ottla and back, with real clients on either side; nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.serving import OttlaServer

TIMEOUT_S = 120


def ottla(*arguments: object) -> str:
    command = [sys.executable, "-m", "ottla", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def produce(servers: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    errors: list[object] = []
    for value in values:
        producer.produce(
            topic, value.encode(), partition=0, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None] * len(values)


def consume(servers: str, topic: str, count: int) -> list[str]:
    """The first `count` records, and proof that no more follow."""
    settings = {"bootstrap.servers": servers, "group.id": "unused", "enable.partition.eof": True}
    consumer = Consumer({**settings, "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"only {len(values)} of {count} records came"
            if message.error():
                assert len(values) >= count, message.error()
                return values
            values.append((message.value() or b"").decode())
    finally:
        consumer.close()


def create(servers: str, topic: str, **config: str) -> None:
    new = NewTopic(topic, 1, 1, config={key.replace("_", "."): value for key, value in config.items()})
    admin = AdminClient({"bootstrap.servers": servers})  # it must live until the answer is there
    admin.create_topics([new])[topic].result(TIMEOUT_S)


def settings_of(servers: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": servers})
    [described] = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in described.result(TIMEOUT_S).items()}


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_records_written_on_either_side_are_all_there(tmp_path: Path, killed: bool) -> None:
    values = [f"{side} {number}" for side in ("Kafka", "ottla", "Kafka again") for number in range(500)]
    broker = KafkaBroker(NEWEST, tmp_path / "work")
    with broker:
        create(broker.servers, "orders", retention_ms="-1", max_message_bytes="2000000")
        produce(broker.servers, "orders", values[:500])
        topic_id = (broker.data_dir / "orders-0/partition.metadata").read_text()
        if killed:
            broker.kill()
        else:
            broker.stop()
    controller_log = {
        path.name: path.read_bytes() for path in (broker.data_dir / "__cluster_metadata-0").iterdir()
    }

    with pytest.raises(subprocess.CalledProcessError) as refused:
        ottla("serve", "--data", broker.data_dir, "--listen", "127.0.0.1:0", "--http", "off")
    assert "ottla adopt" in refused.value.stderr
    (broker.data_dir / "ottla.db").unlink()
    assert "orders" in ottla("adopt", broker.data_dir)
    with OttlaServer(broker.data_dir) as server:
        servers = server.servers
        assert consume(servers, "orders", 500) == values[:500]
        assert settings_of(servers, "orders")["max.message.bytes"] == "2000000"
        produce(servers, "orders", values[500:1000])
        assert consume(servers, "orders", 1000) == values[:1000]
        create(servers, "made-by-ottla")
        produce(servers, "made-by-ottla", ["lost to Kafka"])
        if killed:
            server.kill()
    assert "made-by-ottla-0" in ottla("release", broker.data_dir)
    assert (broker.data_dir / "orders-0/partition.metadata").read_text() == topic_id
    assert not list(broker.data_dir.glob("ottla*"))
    for name, content in controller_log.items():
        assert (broker.data_dir / "__cluster_metadata-0" / name).read_bytes() == content

    with broker:
        assert consume(broker.servers, "orders", 1000) == values[:1000]
        produce(broker.servers, "orders", values[1000:])
        assert consume(broker.servers, "orders", 1500) == values
        strays = {path.name[:16] for path in broker.data_dir.glob("*-stray")}
        assert {name for name in strays if not name.startswith("__")} == {"made-by-ottla-0."}


def test_a_running_kafka_keeps_its_directory_and_does_not_mind_ottlas_file(tmp_path: Path) -> None:
    broker = KafkaBroker(NEWEST, tmp_path / "work")
    with broker:
        create(broker.servers, "orders")
        broker.stop()
        ottla("adopt", broker.data_dir)
        broker.start()  # with ottla.db in its directory
        with pytest.raises(subprocess.CalledProcessError) as refused:
            ottla("adopt", broker.data_dir)
        assert "is in use by another process, an ottla or a Kafka" in refused.value.stderr
        produce(broker.servers, "orders", ["still Kafka's"])
