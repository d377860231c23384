"""Pipeline drivers to be killed: `python -m tests.reliability.pipeline_driver` forks one for each line it reads.

    run FILE     runs until it is killed
    once FILE    runs to the present end

Forked from a process that has loaded everything, a driver is at work a moment after it was asked for. It answers with
the driver's process id, and when that has ended with its status.
"""

from __future__ import annotations

import os
import sys
import traceback

from pyiceberg.avro import decoder_fast
from pyiceberg.catalog import sql
from sqlalchemy.dialects.sqlite import pysqlite

from ottla.spark import progress
from ottla.spark.pipeline.config import load
from ottla.spark.pipeline.decode import json_rows as decode_json
from ottla.spark.pipeline.run import Runner, Watcher
from ottla.spark.sinks import delta, iceberg, parquet
from ottla.spark.transport import brokers as fetching
from tests.spark.pipeline.helpers import EngineHere

# Otherwise most of a driver's short life would go into loading these, and few would die at work.
_LOADED = (decode_json, decoder_fast, delta, fetching, iceberg, parquet, progress, pysqlite, sql)


class _Nobody(Watcher):
    """Watches in silence: the methods of the protocol do nothing."""


def main() -> None:
    for line in sys.stdin:
        word, _, file = line.strip().partition(" ")
        driver = os.fork()
        if not driver:
            _drive(file, once=word == "once")
        print(f"pid {driver}", flush=True)
        _, status = os.waitpid(driver, 0)
        print(f"ended {status}", flush=True)


def _drive(file: str, *, once: bool) -> None:
    status = 1
    try:
        Runner(load(file), EngineHere, _Nobody()).run(once=once)  # type: ignore[abstract]
        status = 0
    finally:
        if status:
            traceback.print_exc()
        os._exit(status)


if __name__ == "__main__":
    main()
