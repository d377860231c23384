"""The Java process behind a session on this machine: started so that Ctrl-C ends it at once, and without a word.

PySpark waits for its Java in the main thread, and where that is interrupted nobody ends what was started. Later its own
handler of Ctrl-C talks to Java in the middle of a talk with Java, which py4j cannot, and says so at length. So Java is
waited for in another thread, where PySpark sets no handler, and whoever is interrupted ends the process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyspark.java_gateway
from pyspark import SparkContext
from pyspark.sql import SparkSession

_PATIENCE_S = 5.0
_GATEWAY: Any = pyspark.java_gateway


class Jvm:
    """What was started; nothing where the session is that of a process that was there before."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, make: Callable[[], SparkSession]) -> SparkSession:
        """Make a session, and the process that it needs."""
        made: list[SparkSession] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                made.append(make())
            except BaseException as error:  # noqa: BLE001 - it is raised where the session was asked for
                failed.append(error)

        starting = threading.Thread(target=run, name="start of Spark", daemon=True)
        with self._watched():
            starting.start()
            try:
                starting.join()
            except KeyboardInterrupt:
                self.end()
                raise
        if failed:
            raise failed[0]
        _make_active(made[0])
        return made[0]

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Know the process that PySpark starts. Its group is its own: a Ctrl-C of the terminal is not for it."""
        popen = _GATEWAY.Popen

        def started(*args: Any, **kwargs: Any) -> Any:
            self._process = popen(*args, **kwargs, start_new_session=True)
            return self._process

        _GATEWAY.Popen = started
        try:
            yield
        finally:
            _GATEWAY.Popen = popen

    @property
    def is_ours(self) -> bool:
        return self._process is not None

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process is None:
            return
        _expect_no_more_updates()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_S)
                return


def _make_active(session: SparkSession) -> None:
    """A session is active in the thread that made it. Others would not find our format when they write."""
    java: Any = session
    java._jvm.SparkSession.setActiveSession(java._jsparkSession)


def _expect_no_more_updates() -> None:
    """A server of PySpark's takes numbers from Java, and would print that they broke off."""
    context = SparkContext._active_spark_context
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


class QuietPy4j(logging.Filter):
    """What goes wrong is raised; py4j tells it to the root logger as well, with all of Java's stack."""

    def filter(self, record: logging.LogRecord) -> bool:
        return os.path.basename(os.path.dirname(record.pathname)) != "py4j"
