"""Chooses the kernel that a test run uses, before any test imports it; and one small Spark session for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import kernels

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# It has tests too, though its name does not say so.
pytest.register_assert_rewrite("tests.client_behaviours")

# Tests give a Java little to do: the compiler that makes fast code takes longer than fast code would save.
for _name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
    os.environ.setdefault(_name, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell's background jobs ignore Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long something takes is the machine's affair, not a test's. Hypothesis gives the same examples each time: a change
# is judged by itself, not by luck. `--hypothesis-profile=searching` is for new ones.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("searching", _UNTIMED)
settings.register_profile("repeating", _UNTIMED, derandomize=True)
settings.load_profile("repeating")

collect_ignore: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        choices=("auto", "compiled", "interpreted"),
        default="auto",
        help="auto: compiled; interpreted only where there is no C compiler to build it with",
    )


def pytest_configure(config: pytest.Config) -> None:
    choice = config.getoption("--kernel")
    compiled = all(kernels.compiled_file(name) for name in kernels.FILES)
    if outdated := kernels.outdated():
        raise pytest.UsageError(
            f"compiled from an older source: {', '.join(outdated)}; run make .venv/.ready"
        )
    if choice == "interpreted" or (choice == "auto" and not compiled and not kernels.has_compiler()):
        kernels.install_interpreted()
    elif not compiled:
        raise pytest.UsageError("the kernel is not compiled: run make, or choose --kernel=interpreted")
    else:
        kernels.install_compiled()
    if not compiled:
        collect_ignore.append("records/test_kernel_both_ways.py")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A JVM takes longer to start than most tests run."""
    from ottla.spark.session.session import open_session

    settings = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("local")),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.python.authenticate.socketTimeout": "120s",
    }
    session = open_session("ottla-tests", master="local[2]", settings=settings)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
