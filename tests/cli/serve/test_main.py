"""`ottla serve` as a person meets it: a real process, real signals, real files."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.cli.serve.settings import Options, one_broker
from ottla.errors import ConfigError
from tests.cli.serving import TIMEOUT_S, Serve, leaders
from tests.ports import free_ports
from tests.server.wire import wait_until

ANY_PORT = ("--listen", "127.0.0.1:0")


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions)]).values():
        future.result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [message.value() for message in consumer.consume(count, TIMEOUT_S)]


def test_sigterm_flushes_and_marks_the_clean_stop(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serve(tmp_path, "--data", str(data), *ANY_PORT) as serve:
        assert (data / "broker.pid").read_text() == f"{serve.process.pid}\n"
        create(serve.bootstrap, "orders")
        produce(serve.bootstrap, "orders", b"one")
        assert serve.end() == 0
    names = {path.name for path in data.iterdir()}
    assert {".kafka_cleanshutdown", "meta.properties", "ottla.db", "orders-0"} <= names
    assert "broker.pid" not in names
    with Serve(tmp_path, "--data", str(data), *ANY_PORT) as again:
        assert again.ready[0][1:] == (1, 1)
        assert consume(again.bootstrap, "orders", 1) == [b"one"]


def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serve(tmp_path, "--data", str(data), *ANY_PORT) as serve:
        create(serve.bootstrap, "orders")
        produce(serve.bootstrap, "orders", *(b"%d" % number for number in range(100)))
        assert serve.end(signal.SIGKILL) == -signal.SIGKILL
    assert not (data / ".kafka_cleanshutdown").exists()
    with Serve(tmp_path, "--data", str(data), *ANY_PORT) as again:
        assert consume(again.bootstrap, "orders", 100) == [b"%d" % number for number in range(100)]


def test_records_that_are_gone_are_told_of_at_every_start_until_that_is_acknowledged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serve(tmp_path, "--data", str(data), *ANY_PORT) as serve:
        create(serve.bootstrap, "orders")
        produce(serve.bootstrap, "orders", *(b"%d" % number for number in range(100)))
        assert serve.end() == 0
    log = data / "orders-0" / f"{0:020d}.log"
    log.write_bytes(bytes(log.stat().st_size))
    said = f"{data}/orders-0: records are lost: 100 offsets (0 to 99) missing in {0:020d}.log at position 0"
    for _ in range(2):
        with Serve(tmp_path, "--data", str(data), *ANY_PORT) as again:
            assert again.end() == 0
        assert said in again.errors.read_text()
    assert CliRunner().invoke(app, ["log", "losses", str(data), "--acknowledge"]).exit_code == 0
    with Serve(tmp_path, "--data", str(data), *ANY_PORT) as again:
        assert again.end() == 0
    assert "lost" not in again.errors.read_text()


def test_ctrl_c_is_a_clean_stop_too(tmp_path: Path) -> None:
    with Serve(tmp_path, "--data", str(tmp_path / "data"), *ANY_PORT) as serve:
        assert serve.end(signal.SIGINT) == 0
    assert (tmp_path / "data/.kafka_cleanshutdown").exists()


def test_kafkas_own_file_is_taken_and_what_has_no_effect_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        f"process.roles=broker,controller\nnode.id=7\nlog.dirs={tmp_path}/a,{tmp_path}/b\nnum.partitions=3\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
        "num.network.threads=3\n"
    )
    with Serve(tmp_path, "--config", str(file), "--data", str(tmp_path / "elsewhere")) as serve:
        assert serve.ready[0][1] == 7
        produce(serve.bootstrap, "made.by.the.first.record", b"x")
        assert serve.end() == 0
    made = {path.name for place in "ab" for path in (tmp_path / place).glob("made*")}
    assert made == {f"made.by.the.first.record-{number}" for number in range(3)}
    assert not list((tmp_path / "elsewhere").glob("made*"))
    warnings = [line for line in serve.errors.read_text().splitlines() if "WARNING" in line]
    assert len(warnings) == 1
    assert "num.network.threads" in warnings[0]


def test_every_request_is_told_of_when_asked_for(tmp_path: Path) -> None:
    with Serve(tmp_path, "--data", str(tmp_path / "data"), "--log-requests", *ANY_PORT) as serve:
        create(serve.bootstrap, "orders")
        produce(serve.bootstrap, "orders", b"one")
        assert serve.end() == 0
    lines = serve.errors.read_text().splitlines()
    assert any(" CreateTopics v" in line and " orders -> OK " in line for line in lines)
    assert any(" Produce v" in line and " orders -> OK " in line for line in lines)


def test_several_brokers_share_a_cluster_and_one_that_dies_comes_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ExitStack() as stack:
        # Ports that follow each other: a free one whose next is free as well.
        port = free_ports(2)
        serve = stack.enter_context(
            Serve(tmp_path, "--data", str(data), "--listen", f"127.0.0.1:{port}", "--brokers", "2", nodes=2)
        )
        assert {node for _, node, _ in serve.ready} == {1, 2}
        create(f"127.0.0.1:{port}", "spread", 4)
        assert sorted(leaders(f"127.0.0.1:{port + 1}", "spread", 4)) == [1, 1, 2, 2]
        wait_until(lambda: len(list((data / "node.2").glob("spread-*"))) == 2)

        os.kill(int((data / "node.2/broker.pid").read_text()), signal.SIGKILL)
        assert serve.next_ready()[1:] == (2, 1)
        produce(f"127.0.0.1:{port}", "spread", b"x")
        assert serve.end() == 0
    assert all((data / f"node.{node}/.kafka_cleanshutdown").exists() for node in (1, 2))
    assert refusal("--data", str(data)) == "holds the data of several brokers"


def test_brokers_whose_parent_is_killed_stop_by_themselves(tmp_path: Path) -> None:
    data = tmp_path / "data"
    listen = f"127.0.0.1:{free_ports(2)}"
    with Serve(tmp_path, "--data", str(data), "--listen", listen, "--brokers", "2", nodes=2) as serve:
        serve.process.kill()
        assert serve.process.stdout is not None
        assert serve.process.stdout.read() == ""  # it ends when the last of them has ended
    assert all((data / f"node.{node}/.kafka_cleanshutdown").exists() for node in (1, 2))


def refusal(*args: str) -> str:
    """What of the known reasons the command gives up with."""
    command = [sys.executable, "-m", "ottla", "serve", *ANY_PORT, "--http", "off", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    known = ("holds the data of several brokers", "holds the data of one broker", "in use by another process")
    return next(reason for reason in known if reason in done.stderr)


def test_a_directory_serves_one_process_and_stays_what_it_is(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Serve(tmp_path, "--data", data, *ANY_PORT):
        assert refusal("--data", data) == "in use by another process"
    assert refusal("--data", data, "--brokers", "2") == "holds the data of one broker"


class TestSettings:
    def test_every_address_is_never_published(self, tmp_path: Path) -> None:
        settings = one_broker(Options(data=tmp_path, listen="0.0.0.0:9092"))
        assert settings.advertise is not None
        assert (settings.advertise.host, settings.advertise.port) == (socket.gethostname(), 9092)
        with pytest.raises(ConfigError, match="cannot be advertised"):
            one_broker(Options(data=tmp_path, advertise="0.0.0.0:9092"))

    def test_what_is_advertised_is_what_clients_are_told(self, tmp_path: Path) -> None:
        settings = one_broker(Options(data=tmp_path, listen=":9192", advertise="kafka.example.org:19092"))
        assert (settings.listen.host, settings.listen.port) == ("", 9192)
        assert str(settings.advertise) == "kafka.example.org:19092"

    def test_the_command_line_wins_over_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "server.properties"
        file.write_text("num.partitions=3\nlisteners=PLAINTEXT://127.0.0.1:1234\n")
        options = Options(data=tmp_path, config=file, assignments=("num.partitions=5",))
        assert one_broker(options).config.num_partitions == 5
        assert one_broker(options).listen.port == 1234
        assert one_broker(Options(config=file, data=tmp_path, listen="127.0.0.1:9")).listen.port == 9

    def test_clients_are_shown_the_addresses_that_hold(self, tmp_path: Path) -> None:
        file = tmp_path / "server.properties"
        file.write_text("listeners=PLAINTEXT://127.0.0.1:1234\nadvertised.listeners=PLAINTEXT://a:1234\n")

        def shown(**options: Any) -> tuple[Any, Any]:
            config = one_broker(Options(data=tmp_path, **options)).config
            return config.listeners, config.advertised_listeners

        assert shown() == (("PLAINTEXT://127.0.0.1:9092",), None)
        assert shown(config=file) == (("PLAINTEXT://127.0.0.1:1234",), ("PLAINTEXT://a:1234",))
        assert shown(config=file, listen=":9") == (("PLAINTEXT://:9",), None)
        there = shown(config=file, listen="[::1]:9", advertise="b:7", node=2)
        assert there == (("PLAINTEXT://[::1]:10",), ("PLAINTEXT://b:8",))

    def test_the_next_broker_has_the_next_port_and_a_directory_of_its_own(self, tmp_path: Path) -> None:
        third = one_broker(Options(data=tmp_path, listen="127.0.0.1:9092", http="127.0.0.1:9644", node=3))
        assert (third.listen.port, third.config.node_id) == (9094, 3)
        assert third.http is not None
        assert third.http.port == 9646
        assert third.config.log_dirs == (f"{tmp_path}/node.3",)
        assert third.store_path == f"{tmp_path}/ottla.db"

    @pytest.mark.parametrize("text", ["nowhere", "host:", "host:99999", "host:port"])
    def test_what_is_no_address_is_refused(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigError, match="HOST:PORT"):
            one_broker(Options(data=tmp_path, listen=text))
