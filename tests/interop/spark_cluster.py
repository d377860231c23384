"""A real Spark cluster from the pyspark wheel: a master and workers, or a Spark Connect server, as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from ottla.spark.session.java import prepare_java

_STARTS_S = 180.0
_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER = re.compile(r"Successfully registered with master")
_CONNECT = re.compile(r"Spark Connect server started at: \S*?:(\d+)")


class SparkProcess:
    """One of Spark's processes with what it started, in a process group of its own."""

    def __init__(self, place: Path, name: str, *command: str) -> None:
        self._log = place / f"{name}.log"
        self._place = place
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(_HOME / "bin" / command[0]), *command[1:]],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(place),
                cwd=place,
                start_new_session=True,
            )

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Until the log has a line."""
        deadline = time.monotonic() + _STARTS_S
        while time.monotonic() < deadline:
            found = pattern.search(self.log_text())
            if found:
                return found
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{pattern.pattern!r} did not come:\n{self.log_text()[-4000:]}")

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """kill -9, with its executors."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def start_master(place: Path) -> tuple[SparkProcess, str]:
    words = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    master = SparkProcess(place, "master", "spark-class", "org.apache.spark.deploy.master.Master", *words)
    return master, master.wait_for(_MASTER)[1]


def start_worker(place: Path, name: str, master: str) -> SparkProcess:
    (place / name).mkdir()
    words = (
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
        "--cores",
        "1",
        "--memory",
        "1g",
        "--work-dir",
        str(place / name),
    )
    worker = SparkProcess(place, name, "spark-class", "org.apache.spark.deploy.worker.Worker", *words, master)
    worker.wait_for(_WORKER)
    return worker


def start_connect(place: Path) -> tuple[SparkProcess, str]:
    server = SparkProcess(
        place,
        "connect",
        "spark-submit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]"),
        *("--conf", "spark.connect.grpc.binding.port=0"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", "spark.ui.enabled=false"),
        "spark-internal",
    )
    return server, f"sc://127.0.0.1:{server.wait_for(_CONNECT)[1]}"


def _environment(place: Path) -> dict[str, str]:
    """A machine's own: it has Python, but none of the packages of these tests."""
    return {
        "PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin",
        "HOME": str(place),
        "JAVA_HOME": prepare_java(),
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
