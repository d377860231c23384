"""A SparkSession for ottla's commands: on this machine, on a cluster, or through Spark Connect.

What executors need travels with it. On this machine they are this very Python. For a cluster and for Connect it is an
archive of the installed packages (`environment.py`), which holds the compiled kernels as well.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ottla.errors import ConfigError
from ottla.spark.session.environment import FOLDER, PYTHON, environment_archive
from ottla.spark.session.java import cache_dir, prepare_java
from ottla.spark.session.jvm import Jvm, QuietPy4j

LOCAL = "local[*]"
_QUIET_PY4J = QuietPy4j()
_LOG_SETTINGS = """\
# Below warn, Spark would say that it sets the level itself; so the appender is what keeps warnings out.
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.filter.errors.type = ThresholdFilter
appender.console.filter.errors.level = error
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n%ex{5}
# A failed task is told by the exception that the driver raises.
logger.executor.name = org.apache.spark.executor
logger.executor.level = off
logger.scheduler.name = org.apache.spark.scheduler
logger.scheduler.level = off
# So is one that was under way when a Ctrl-C ended Java.
logger.task.name = org.apache.spark.TaskContextImpl
logger.task.level = off
"""


@contextmanager
def running_session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session for as long as a command runs. After a Ctrl-C nothing is left of it."""
    jvm = Jvm()
    session = open_session(name, master=master, remote=remote, settings=settings, jvm=jvm)
    interrupted = False
    try:
        yield session
    except BaseException as error:
        interrupted = was_interrupted(error)
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        if interrupted and jvm.is_ours:
            jvm.end()  # it cannot be asked to stop: it was interrupted in the middle of an answer
        else:
            session.stop()


def was_interrupted(error: BaseException | None) -> bool:
    """Whether an error comes from a Ctrl-C. PySpark asks Java once more on the way out of a call that was interrupted,
    and Java may be gone by then: another error takes the place of the KeyboardInterrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def open_session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    jvm: Jvm | None = None,
) -> SparkSession:
    """A session; `local[*]` if neither a master nor a Connect server is named."""
    # What goes wrong is raised; PySpark would print it too, with all of Java's stack.
    for logger in ("SQLQueryContextLogger", "py4j"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_QUIET_PY4J)
    if master and remote:
        raise ConfigError("--master and --remote are two ways to run: give one of them")
    if remote:
        return _connected(name, remote, settings or {})
    prepare_java()
    builder: Any = SparkSession.builder
    builder = builder.appName(name).master(master or LOCAL)
    chosen = _common() | _quiet() | (_local() if _is_local(master) else _cluster()) | dict(settings or {})
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return (jvm or Jvm()).start(builder.getOrCreate)


def _is_local(master: str | None) -> bool:
    return master is None or master.startswith("local")


def _common() -> dict[str, str]:
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    }


def _local() -> dict[str, str]:
    """Everything on this machine: reached over the loopback, whatever the machine calls itself."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _cluster() -> dict[str, str]:
    """Executors elsewhere: they unpack the archive beside their work, and start its Python."""
    os.environ["PYSPARK_PYTHON"] = f"./{FOLDER}/{PYTHON}"
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return {"spark.archives": f"{environment_archive()}#{FOLDER}"}


def _quiet() -> dict[str, str]:
    path = cache_dir() / "log4j2.properties"
    if not path.exists() or path.read_text() != _LOG_SETTINGS:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_text(_LOG_SETTINGS)
        temporary.replace(path)
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(path).as_uri()}"}


def _connected(name: str, remote: str, settings: Mapping[str, str]) -> SparkSession:
    """Through Spark Connect: the server's executors get the archive as an artifact of this session."""
    builder: Any = SparkSession.builder
    session: Any = builder.remote(remote).appName(name).getOrCreate()
    session.addArtifacts(f"{environment_archive()}#{FOLDER}", archive=True)
    session.conf.set("spark.sql.execution.pyspark.python", f"{FOLDER}/{PYTHON}")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for key, value in settings.items():
        session.conf.set(key, value)
    found: SparkSession = session
    return found
