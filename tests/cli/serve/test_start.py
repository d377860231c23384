"""How `ottla serve` begins and ends: what it refuses, with what sentence, and which signals it minds."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ottla.broker import Broker
from ottla.cli.serve.settings import Options, notes, one_broker
from ottla.errors import ConfigError
from tests.cli.serving import TIMEOUT_S, Serve
from tests.server.wire import wait_until

ANY_PORT = ("--listen", "127.0.0.1:0")
KAFKAS_OWN = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
num.network.threads=3
share.coordinator.state.topic.replication.factor=1
num.partitions=1
"""


def refusal(*words: str) -> str:
    """The one line that the command gives up with."""
    command = [sys.executable, "-m", "ottla", "serve", *ANY_PORT, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("ottla: ")
    return done.stderr


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


class TestSettings:
    def options(self, tmp_path: Path, text: str = "", *assignments: str) -> Options:
        file = tmp_path / "server.properties"
        file.write_text(text)
        return Options(data=tmp_path / "data", config=file, assignments=assignments)

    def test_kafkas_own_file_works_and_a_controllers_listener_is_not_opened(self, tmp_path: Path) -> None:
        options = self.options(tmp_path, KAFKAS_OWN)
        settings = one_broker(options)
        assert (str(settings.listen), str(settings.advertise)) == ("127.0.0.1:0", "localhost:9092")
        assert [note for _, note in notes(options)] == [
            "these settings of Kafka have no effect here: controller.quorum.bootstrap.servers, num.network.threads, "
            "share.coordinator.state.topic.replication.factor",
            "CONTROLLER://:9093 is a controller's listener; ottla has no controller and does not open it",
        ]

    def test_a_misspelt_key_in_a_file_is_named_apart_with_what_was_meant(self, tmp_path: Path) -> None:
        options = self.options(tmp_path, "num.partitons=3\nnum.io.threads=8\nmy.own.plugin=1\n")
        assert [note for _, note in notes(options)] == [
            "neither ottla nor Kafka has these settings: my.own.plugin, num.partitons (did you mean num.partitions?)",
            "these settings of Kafka have no effect here: num.io.threads",
        ]

    def test_a_misspelt_key_on_the_command_line_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"did you mean num\.partitions\?"):
            one_broker(self.options(tmp_path, "", "num.partitons=3"))

    def test_nothing_is_said_of_settings_that_work(self, tmp_path: Path) -> None:
        assert list(notes(self.options(tmp_path, "num.partitions=3\n", "log.retention.hours=1"))) == []

    @pytest.mark.parametrize("key", ["listeners", "advertised.listeners"])
    def test_a_second_listener_is_refused(self, tmp_path: Path, key: str) -> None:
        text = f"{key}=PLAINTEXT://a:1,INSIDE://b:2\nlistener.security.protocol.map=INSIDE:PLAINTEXT\n"
        with pytest.raises(ConfigError, match=rf"{key} has 2 listeners .*PLAINTEXT://a:1, INSIDE://b:2"):
            one_broker(self.options(tmp_path, text))

    def test_a_listener_may_have_a_name_of_its_own(self, tmp_path: Path) -> None:
        text = "listeners=INSIDE://127.0.0.1:7\nlistener.security.protocol.map=INSIDE:PLAINTEXT\n"
        assert one_broker(self.options(tmp_path, text)).listen.port == 7

    def test_listen_does_not_open_what_the_file_wants_guarded(self, tmp_path: Path) -> None:
        file = tmp_path / "server.properties"
        file.write_text("listeners=SASL_SSL://:9093\n")
        with pytest.raises(ConfigError, match="is to be SASL_SSL"):
            one_broker(Options(data=tmp_path, config=file, listen="0.0.0.0:9092"))

    def test_the_file_of_a_controller_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"process\.roles=controller is that of a controller"):
            one_broker(self.options(tmp_path, "process.roles=controller\n"))


class TestRefusals:
    def test_settings_that_would_not_guard_it(self, tmp_path: Path) -> None:
        said = refusal("--data", str(tmp_path / "data"), "--set", "ssl.keystore.location=/x")
        assert "these settings would have no effect: ssl.keystore.location" in said
        assert not (tmp_path / "data").exists()

    def test_http_on_a_port_that_is_taken(self, tmp_path: Path, taken: int) -> None:
        said = refusal("--data", str(tmp_path), "--http", f"127.0.0.1:{taken}")
        assert f"/metrics cannot be served on 127.0.0.1:{taken}: Address already in use" in said
        assert "choose another place with --http HOST:PORT, or none with --http off" in said

    def test_several_brokers_give_up_together(self, tmp_path: Path, taken: int) -> None:
        words = ("--brokers", "2", "--http", f"127.0.0.1:{taken - 1}")  # the second one's is taken
        command = [sys.executable, "-m", "ottla", "serve", *ANY_PORT, "--data", str(tmp_path), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 2
        assert "/metrics cannot be served on 127.0.0.1:" in done.stderr
        assert "starting it again" not in done.stderr

    def test_the_lock_names_the_process_that_holds_it(self, tmp_path: Path) -> None:
        data = str(tmp_path / "data")
        with Serve(tmp_path, "--data", data, *ANY_PORT) as serve:
            said = refusal("--data", data, "--http", "off")
            assert f"{data} is in use by another process (pid {serve.process.pid})" in said

    def test_a_file_where_the_data_is_to_lie(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.touch()
        for data in (file, file / "deeper"):
            said = refusal("--data", str(data), "--http", "off")
            assert (
                f"{file} is a file, where the data directory was to be; choose another place with --data"
                in said
            )
        said = refusal("--data", str(tmp_path), "--set", f"log.dirs={file}", "--http", "off")
        assert "It is a file, and a log directory is needed" in said

    def test_a_store_that_cannot_be_opened_or_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "a/ottla.db").mkdir(parents=True)
        said = refusal("--data", str(tmp_path / "a"), "--http", "off")
        assert "ottla.db cannot be opened: it is a directory, and a file is needed; move it away" in said
        (tmp_path / "b").mkdir()
        (tmp_path / "b/ottla.db").write_text("this is no database, but a letter\n" * 50)
        assert "run `ottla adopt` to make it anew" in refusal("--data", str(tmp_path / "b"), "--http", "off")

    def test_a_file_of_settings_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "binary").write_bytes(bytes(range(256)))
        assert "is not a server.properties" in refusal("--config", str(tmp_path / "binary"))
        assert "No such file" in refusal("--config", str(tmp_path / "missing"))


def test_a_default_port_for_metrics_that_is_taken_is_told_and_another_one_served(
    tmp_path: Path, taken: int
) -> None:
    """Nobody has asked for that port, so a second broker on a machine starts all the same."""
    default = one_broker(Options(data=tmp_path, http=None))
    assert (str(default.http), default.http_may_move) == ("127.0.0.1:9644", True)
    asked_for = one_broker(Options(data=tmp_path, listen="127.0.0.1:0", http=f"127.0.0.1:{taken}"))
    assert not asked_for.http_may_move

    async def port_of_metrics() -> int:
        broker = Broker(dataclasses.replace(asked_for, http_may_move=True))
        await broker.start()
        await broker.stop()
        assert broker.http is not None
        return broker.http.port

    assert asyncio.run(port_of_metrics()) not in (0, taken)


def test_sighup_does_not_end_it_and_a_clean_stop_is_told(tmp_path: Path) -> None:
    with Serve(tmp_path, "--data", str(tmp_path / "data"), *ANY_PORT) as serve:
        serve.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "SIGHUP is ignored" in serve.errors.read_text())
        assert serve.process.poll() is None
        assert serve.end() == 0
    lines = serve.errors.read_text().splitlines()
    assert re.search(r"INFO ottla: stopped cleanly: 0 partitions flushed in \d+ ms$", lines[-1])


def test_log_lines_as_json_and_only_those_that_were_asked_for(tmp_path: Path) -> None:
    words = ("--data", str(tmp_path / "data"), *ANY_PORT, "--log-format", "json")
    with Serve(tmp_path, *words, "--set", "num.io.threads=3") as serve:
        assert serve.end() == 0
    entries = [json.loads(line) for line in serve.errors.read_text().splitlines()]
    assert {(entry["level"], entry["message"].partition(":")[0]) for entry in entries} >= {
        ("WARNING", "these settings of Kafka have no effect here"),
        ("INFO", "stopped cleanly"),
    }
    with Serve(tmp_path, *words, "--log-level", "ERROR", "--set", "num.io.threads=3") as serve:
        assert serve.end() == 0
    assert serve.errors.read_text() == ""


def test_the_options_for_log_lines_may_stand_before_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "--log-level", "error", "--log-format", "json", "serve"]
    words = ["--data", str(tmp_path), *ANY_PORT, "--http", "off", "--set", "num.io.threads=3"]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as serve:
        assert serve.stdout is not None
        assert serve.stdout.readline().startswith("ottla: ready")
        serve.terminate()
        assert serve.communicate(timeout=TIMEOUT_S)[1] == ""
    assert serve.returncode == 0
