"""Spark for the benchmarks: two cores, one Java for all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.measure import Bench
from ottla.spark.session import session

_ROOT = Path(__file__).parents[1]
_MEMORY = {"spark.driver.memory": "2g"}


def as_users_have_it() -> SparkSession:
    """Spark's own settings."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: dict[str, Any] = _MEMORY | {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": str(_ROOT),  # workers import what is in this package
    }
    opened = SparkSession.builder.master("local[2]").appName("bench").config(map=settings).getOrCreate()
    opened.sparkContext.setLogLevel("ERROR")
    return opened


def as_commands_have_it() -> SparkSession:
    """The settings of ottla's commands."""
    return session.open_session("bench", master="local[2]", settings=_MEMORY)


@contextmanager
def spark_session(bench: Bench, open_session: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """The session that is given, or one that is stopped at the end."""
    if bench.spark is not None:
        yield bench.spark
        return
    opened = open_session()
    try:
        yield opened
    finally:
        opened.stop()
