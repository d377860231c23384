"""`ottla configs --data`: the way in to a broker that lets nobody in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from ottla.cluster.config_changes import Alteration, BrokerAlterations, alter_configs
from ottla.cluster.sqlite import SqliteStore
from ottla.config import BrokerConfig
from ottla.testing.embedded import EmbeddedBroker
from tests.cli.serving import TIMEOUT_S, Serve
from tests.server.wire import Wire


def ottla(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


class Stopping(Serve):
    """A broker whose data stay."""

    def __init__(self, directory: Path) -> None:
        self.data = str(directory / "data")
        super().__init__(directory, "--data", self.data, "--listen", "127.0.0.1:0")
        self.port = int(self.bootstrap.rpartition(":")[2])

    def __enter__(self) -> Stopping:
        return self


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Of a broker with a topic, that is stopped."""
    with EmbeddedBroker(data=tmp_path / "data") as broker:
        broker.create_topic("orders", config={"retention.ms": 5000})
    return broker.data


def lock_out(data: str) -> None:
    """As an ottla did that did not check it."""
    store = SqliteStore(f"{data}/ottla.db", "")
    store.open()
    setting = BrokerAlterations(None, [Alteration("max.connections", "1")])
    config = BrokerConfig.from_properties({})
    store.update(lambda image: alter_configs(image, [setting], config))
    store._connection.execute("UPDATE broker_config SET value = '0' WHERE key = 'max.connections'")
    store.close()


def test_a_broker_that_lets_nobody_in_is_mended_while_it_is_stopped(tmp_path: Path, data: str) -> None:
    lock_out(data)
    with Stopping(tmp_path) as broker:
        with Wire(broker) as wire:
            assert wire.is_closed()
        assert broker.end() == 0
    assert ottla("configs", "show", "broker", "default", "--data", data).stdout == (
        "max.connections=0  # cluster default; How many connections the broker takes at once, at most as many as "
        "about half of its descriptors.\n"
    )
    mended = ottla("configs", "unset", "broker", "default", "max.connections", "--data", data)
    assert (mended.returncode, mended.stdout) == (0, "broker default: changed\n")
    with Stopping(tmp_path) as broker, Wire(broker) as wire:
        wire.ping()
        wire.socket.close()
        assert broker.end() == 0


def test_what_is_set_there_holds_when_the_broker_is_back(tmp_path: Path, data: str) -> None:
    words = ("topic", "orders", "segment.ms=7000", "--data", data)
    assert ottla("configs", "set", *words, "--validate-only").stdout == "topic orders: could be changed\n"
    assert ottla("configs", "show", "topic", "orders", "--data", data).stdout == "retention.ms=5000\n"
    assert ottla("configs", "set", *words).stdout == "topic orders: changed\n"
    shown = ottla("configs", "show", "topic", "orders", "--json", "--data", data).stdout
    with Stopping(tmp_path) as broker:
        asked = ottla("configs", "show", "topic", "orders", "--json", "-b", broker.bootstrap).stdout
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (answer,) = admin.describe_configs([ConfigResource("topic", "orders")]).values()
        assert answer.result(TIMEOUT_S)["segment.ms"].value == "7000"
        assert broker.end() == 0
    assert shown == asked
    assert {entry["key"] for entry in map(json.loads, shown.splitlines())} == {"retention.ms", "segment.ms"}


def test_a_running_broker_is_not_changed_behind_its_back(tmp_path: Path) -> None:
    with Stopping(tmp_path) as broker:
        for words in (("show", "broker", "1"), ("set", "broker", "1", "log.cleaner.threads=2")):
            refused = ottla("configs", *words, "--data", broker.data)
            assert refused.returncode == 1
            assert f"in use by another process (pid {broker.process.pid})" in refused.stderr
            assert "leave --data out" in refused.stderr
        assert broker.end() == 0


def test_a_broker_with_its_logs_elsewhere_is_noticed_too(tmp_path: Path) -> None:
    place = tmp_path / "store"
    log_dirs = ("--set", f"log.dirs={tmp_path / 'logs'}")
    with Serve(tmp_path, "--data", str(place), *log_dirs, "--listen", "127.0.0.1:0") as broker:
        refused = ottla("configs", "show", "broker", "1", "--data", str(place))
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "ottla.db is in use" in refused.stderr
        assert broker.end() == 0
    assert ottla("configs", "show", "broker", "1", "--data", str(place)).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "broker", "1", "max.connections=0"), "would let nobody in any more"),
        (("set", "broker", "1", "listeners=PLAINTEXT://:1"), "Cannot update these configs dynamically: listeners"),
        (("set", "topic", "orders", "retention.ms=soon"), "retention.ms = 'soon' is not allowed"),
        (("set", "topic", "order", "retention.ms=1"), "did you mean orders?"),
        (("show", "broker", "7"), "there are: 1, default"),
    ],
)  # fmt: skip
def test_a_stopped_broker_refuses_what_a_running_one_refuses(
    data: str, words: tuple[str, ...], said: str
) -> None:
    refused = ottla("configs", *words, "--data", data)
    assert refused.returncode == 1
    assert said in refused.stderr


def test_a_directory_that_is_none_is_said_so(tmp_path: Path) -> None:
    refused = ottla("configs", "show", "broker", "1", "--data", str(tmp_path))
    assert refused.returncode == 2
    assert f"{tmp_path} is no data directory of ottla: there is no ottla.db" in refused.stderr
