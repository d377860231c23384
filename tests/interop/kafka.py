"""Real Apache Kafka brokers for the interop tests, the corpus and the benchmarks."""

from __future__ import annotations

import base64
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Self

from tests.interop.client import JVM_OPTIONS, KafkaClient
from tests.interop.maven import class_path
from tests.ports import free_ports

NEWEST = "4.2.0"
START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 120.0
START_ATTEMPTS = 3
PORT_TAKEN = "Address already in use"
ZOOKEEPER_TICK_MS = "1000"
ZOOKEEPER_SESSION_MS = "6000"

# Small, quick to start and stop, and with nothing going on behind a test's back.
QUIET = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "log.index.size.max.bytes": "16384",
    "controlled.shutdown.enable": "false",
    # A restarted broker is let in only after the session of the one before is over.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
}


def run_tool(version: str, main_class: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a Kafka tool in a JVM of its own; an exit code other than 0 is an error."""
    done = subprocess.run(
        [
            *("java", *JVM_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
            *("-cp", class_path(version), main_class, *args),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"{main_class} {' '.join(args)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done


class JavaServer:
    """A server in a JVM of its own whose log goes to a file; it is up when a line of that log says so."""

    def __init__(self, command: list[str], log_file: Path, ready: str) -> None:
        self.log_file = log_file
        self._log: IO[bytes] = log_file.open("wb")
        self.process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)
        try:
            self.wait_until(lambda text: ready in text)
        except RuntimeError:
            self.kill()
            raise

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace")

    def wait_until(self, condition: Callable[[str], bool]) -> None:
        """Wait until the log says it."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not condition(self.log_text()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"not what was waited for:\n{self.log_text()[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop cleanly (SIGTERM) and wait."""
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill (SIGKILL) and wait."""
        self.process.kill()
        self.process.wait()
        self._log.close()


class KafkaBroker:
    """One broker of a given version with one data directory: KRaft, or with a ZooKeeper beside it for 2.x.

    The work directory holds `data` (Kafka's log directory), its configuration, its log and ZooKeeper's data;
    a copy of the whole work directory can be started as a broker of its own.
    """

    def __init__(
        self,
        version: str,
        work_dir: Path,
        overrides: dict[str, str] | None = None,
        jvm_options: tuple[str, ...] = JVM_OPTIONS,
    ) -> None:
        self.version = version
        self.work_dir = work_dir
        self.data_dir = work_dir / "data"
        self._overrides = overrides or {}
        self._jvm_options = jvm_options
        self._zookeeper: JavaServer | None = None
        self._server: JavaServer | None = None
        self.servers = ""

    @property
    def uses_zookeeper(self) -> bool:
        return self.version.startswith("2.")

    @property
    def log_file(self) -> Path:
        return self.work_dir / "server.log"

    @property
    def pid(self) -> int:
        """Of the broker that runs."""
        assert self._server is not None
        return self._server.process.pid

    def start(self) -> KafkaBroker:
        """Start and wait until it serves. A free port may be somebody else's a moment later: then on others."""
        for _ in range(START_ATTEMPTS - 1):
            try:
                return self._start()
            except RuntimeError:
                if PORT_TAKEN not in self.log_text():
                    raise
        return self._start()

    def _start(self) -> KafkaBroker:
        self.work_dir.mkdir(parents=True, exist_ok=True)
        port = free_ports(1)
        self.servers = f"127.0.0.1:{port}"
        if self.uses_zookeeper:
            mode, ready = self._start_zookeeper(), "[KafkaServer id=1] started"
        else:
            mode, ready = self._kraft_settings(free_ports(1)), "Kafka Server started"
        settings = {
            "log.dirs": str(self.data_dir),
            "listeners": f"PLAINTEXT://{self.servers}",
            **mode,
            **QUIET,
            **self._overrides,
        }
        config = self.work_dir / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        if not self.uses_zookeeper and not (self.data_dir / "meta.properties").exists():
            # Of letters and digits alone: an id that begins with a dash would be taken for an option.
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
            run_tool(self.version, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config))
        self._server = self._start_server(config, ready)
        return self

    def _start_server(self, config: Path, ready: str) -> JavaServer:
        """A killed broker stays registered in ZooKeeper until its session is over: try again until then."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return self._launch("kafka.Kafka", [str(config)], self.log_file, ready)
            except RuntimeError:
                if "NodeExists" not in self.log_text() or time.monotonic() > deadline:
                    self._stop_zookeeper()
                    raise

    def stop(self) -> None:
        """Stop cleanly."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        self._stop_zookeeper()

    def kill(self) -> None:
        """Kill the broker as a crash would."""
        if self._server is not None:
            self._server.kill()
            self._server = None
        self._stop_zookeeper()

    def wait_until(self, condition: Callable[[str], bool]) -> None:
        """Wait until the broker's log says it."""
        assert self._server is not None
        self._server.wait_until(condition)

    def client(self) -> KafkaClient:
        return KafkaClient(self.version, self.servers, self.work_dir / "client.log")

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _kraft_settings(self, controller_port: int) -> dict[str, str]:
        controller = f"127.0.0.1:{controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }

    def _start_zookeeper(self) -> dict[str, str]:
        port = free_ports(1)
        data = self.work_dir / "zookeeper"
        data.mkdir(exist_ok=True)
        self._zookeeper = self._launch(
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            [str(port), str(data), ZOOKEEPER_TICK_MS],
            self.work_dir / "zookeeper.log",
            "binding to port",
        )
        return {
            "broker.id": "1",
            "zookeeper.connect": f"127.0.0.1:{port}",
            "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_MS,
        }

    def _stop_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper = None

    def _launch(self, main_class: str, args: list[str], log_file: Path, ready: str) -> JavaServer:
        logging = [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
            "-Dorg.slf4j.simpleLogger.showThreadName=false",
            "-Dzookeeper.admin.enableServer=false",
        ]
        command = ["java", *self._jvm_options, *logging, "-cp", class_path(self.version), main_class, *args]
        return JavaServer(command, log_file, ready)
