"""A driver that copies the committed records of topic `in` to topic `out`, each once; to be killed at any moment.

With Spark it is a streaming query. Without, it is what such a query does, in one small process: offsets of a batch are
noted before it, its tasks run side by side, and that it is done is noted after it.

    python -m tests.reliability.copying SERVERS CHECKPOINT [--spark] [--finish]
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ottla.spark.options import read_options, write_options
from ottla.spark.read import plan
from ottla.spark.read.ranges import Split
from ottla.spark.read.stream import Position, StreamPlan
from ottla.spark.write.sending import Sent, Turn, end_held, send_rows

READ = {
    "subscribe": "in",
    "startingOffsets": "earliest",
    "kafka.isolation.level": "read_committed",
    "maxOffsetsPerTrigger": "300",
    "targetBytesPerPartition": "4000",  # several tasks a partition
}


class Copier:
    """The query without Spark."""

    def __init__(self, servers: str, checkpoint: Path) -> None:
        given = {"kafka.bootstrap.servers": servers}
        self._source = read_options({**given, **READ}, is_stream=True)
        self._sink = write_options({**given, "topic": "out"})
        self._plan = StreamPlan(self._source)
        self._checkpoint = checkpoint
        for name in ("offsets", "commits"):
            (checkpoint / name).mkdir(parents=True, exist_ok=True)
        if not (checkpoint / "id").exists():
            self._note("id", uuid.uuid4().hex)
        self._id = (checkpoint / "id").read_text()

    def run(self, *, finish: bool) -> None:
        while True:
            number = self._last("offsets")
            if number == self._last("commits"):
                start = self._plan.initial() if number < 0 else self._position(number)[1]
                end = self._plan.next(start, is_limited=True)
                if end.offsets == start.offsets:
                    if finish:
                        return
                    continue
                number += 1
                self._note(f"offsets/{number}", json.dumps([start.to_json(), end.to_json()]))
            self._copy(number, *self._position(number))
            self._note(f"commits/{number}", "")

    def _copy(self, number: int, start: Position, end: Position) -> None:
        splits = list(enumerate(self._plan.splits(start, end)))

        def task(entry: tuple[int, Split]) -> Sent:
            index, split = entry
            rows = plan.read_split(self._source, split)
            turn = Turn(self._id, index, number)
            return send_rows(self._sink, (batch.select(["key", "value"]) for batch in rows), turn, hold=True)

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(task, splits))
        end_held(self._sink, done, committed=True)

    def _position(self, number: int) -> tuple[Position, Position]:
        start, end = json.loads((self._checkpoint / "offsets" / str(number)).read_text())
        return Position.from_json(start), Position.from_json(end)

    def _last(self, kind: str) -> int:
        return max((int(path.name) for path in (self._checkpoint / kind).iterdir()), default=-1)

    def _note(self, name: str, text: str) -> None:
        temporary = self._checkpoint / "temporary"
        temporary.write_text(text)
        temporary.rename(self._checkpoint / name)


def run_spark(servers: str, checkpoint: Path, *, finish: bool) -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.warehouse.dir", str(checkpoint.with_name("warehouse")))
        .getOrCreate()
    )
    given = {"kafka.bootstrap.servers": servers}
    rows = spark.readStream.format("ottla").options(**given, **READ).load().select("key", "value")
    writer = rows.writeStream.format("ottla").options(
        **given, topic="out", checkpointLocation=str(checkpoint)
    )
    query = (writer.trigger(availableNow=True) if finish else writer).start()
    query.awaitTermination()
    spark.stop()


def main() -> None:
    servers, checkpoint = sys.argv[1], Path(sys.argv[2])
    finish = "--finish" in sys.argv
    if "--spark" in sys.argv:
        run_spark(servers, checkpoint, finish=finish)
    else:
        Copier(servers, checkpoint).run(finish=finish)


if __name__ == "__main__":
    main()
