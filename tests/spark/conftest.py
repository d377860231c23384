"""One Spark session for all tests of a process: a JVM takes longer to start than most tests run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ottla.spark.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on local[2], with whatever it writes in a directory that goes with it."""
    place = tempfile.mkdtemp(prefix="ottla-spark-")
    settings = {
        "spark.sql.warehouse.dir": os.path.join(place, "warehouse"),
        "spark.local.dir": place,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    session = open_session("tests", master="local[2]", settings=settings)
    yield session
    session.stop()
    shutil.rmtree(place, ignore_errors=True)
