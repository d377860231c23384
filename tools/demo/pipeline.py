"""The end of `make demo`: a topic lands in a Delta table while its producer is killed and started again.

Run as a program of its own, `python -m tools.demo.pipeline produce ADDRESS`, it is that producer.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "sales"
PARTITIONS = 2
RECORDS = 400_000
PIECE = 1000  # records of a transaction
KILL_AFTER = 60_000
TIMEOUT_S = 60
_FILE = """\
[source]
topics = ["sales"]
bootstrap = "{address}"
group = "sales-to-lake"

[decode]
value = "json"
schema = "id long, item string, price double, at timestamp"

[transform]
sql = "select *, date(at) as day from source"

[[expect]]
name = "price is positive"
check = "price > 0"

[sink]
format = "delta"
path = "lake/sales"
partition_by = ["day"]

[run]
trigger = "1 second"
checkpoint = "lake/_checkpoints/sales"
"""
_ITEMS = ("book", "pen", "lamp")
_QUESTION = (
    "select item, count(*) as sold, count(distinct id) as ids, round(sum(price), 2) as total "
    "from rows group by item order by item"
)


def land_while_killed(address: str, place: Path) -> None:
    """A producer, a pipeline beside it, a kill; then the table is asked, and must hold every record once."""
    _make_topic(address)
    file = place / "sales.toml"
    file.write_text(_FILE.format(address=address))
    print(file.read_text())
    _say(f"$ ottla pipeline run {file.name} &")
    pipeline = subprocess.Popen([sys.executable, "-m", "ottla", "pipeline", "run", str(file)])
    producer = _Producer(address)
    try:
        killed_at = producer.kill_after(KILL_AFTER)
        print(f"producer killed (kill -9): {killed_at:,} of {RECORDS:,} records committed", flush=True)
        _wait_for_table(place / "lake/sales/_delta_log")
        producer = _Producer(address)
        producer.finish()
        print(
            "a new producer ended its transaction, went on behind the last committed one, and is done",
            flush=True,
        )
    finally:
        producer.close()
        pipeline.send_signal(signal.SIGINT)
        pipeline.wait(TIMEOUT_S)
    _say(f"$ ottla pipeline run {file.name} --once    # what is left, wherever the other one was stopped")
    _finish("pipeline", "run", str(file), "--once")
    _say(f"$ ottla pipeline status {file.name}")
    _finish("pipeline", "status", str(file))
    _ask(file)


def _ask(file: Path) -> None:
    _say(f'$ ottla pipeline show {file.name} --sql "{_QUESTION}"')
    asked = [sys.executable, "-m", "ottla", "pipeline", "show", str(file), "--json", "--sql", _QUESTION]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for row in rows:
        print(f"{row['item']:6} {row['sold']:>9,} {row['ids']:>9,} {row['total']:>14,.2f}")
    sold, ids = sum(row["sold"] for row in rows), sum(row["ids"] for row in rows)
    if (sold, ids) != (RECORDS, RECORDS):
        raise SystemExit(f"{sold:,} rows with {ids:,} ids, but {RECORDS:,} records were committed")
    print(f"{sold:,} rows in the table, {RECORDS:,} records committed to the topic: each once", flush=True)


def _make_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        future.result(TIMEOUT_S)


class _Producer:
    """A producer in a process of its own, which says after each transaction how many records are committed."""

    def __init__(self, address: str) -> None:
        command = [sys.executable, "-m", "tools.demo.pipeline", "produce", address]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._lines = self._process.stdout

    def kill_after(self, count: int) -> int:
        for line in self._lines:
            if int(line) >= count:
                self.close()
                return int(line)
        raise SystemExit("the producer ended before it was killed")

    def finish(self) -> None:
        for _ in self._lines:
            pass
        if self._process.wait(TIMEOUT_S):
            raise SystemExit("the producer failed")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._lines.close()


def _wait_for_table(log: Path) -> None:
    """Until the pipeline has landed its first batch."""
    deadline = time.monotonic() + TIMEOUT_S * 5
    while not list(log.glob("*1.json")):
        if time.monotonic() > deadline:
            raise SystemExit("the pipeline landed nothing")
        time.sleep(0.1)


def _finish(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "ottla", *words], check=True)


def _next_number(address: str, partition: int) -> int:
    """The producer numbers its records; the last committed one says where to go on."""
    settings = {"bootstrap.servers": address, "group.id": "demo", "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"log_level": 0, "enable.partition.eof": True})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), TIMEOUT_S)
        # Behind the last record stands its transaction's marker, and perhaps an open or aborted transaction.
        consumer.assign([TopicPartition(TOPIC, partition, max(low, high - 3 * PIECE))])
        last = -1
        while (message := consumer.poll(TIMEOUT_S)) is not None:
            error = message.error()
            if error is None:
                last = json.loads(message.value() or b"")["id"]
            elif error.code() == KafkaError._PARTITION_EOF:
                return (last - partition) // PARTITIONS + 1 if last >= 0 else 0
        raise SystemExit("no answer from the broker")
    finally:
        consumer.close()


def produce(address: str) -> None:
    """Transactions from where the last producer's ended, each partition's records numbered without a gap."""
    settings = {"bootstrap.servers": address, "transactional.id": "demo", "linger.ms": 5, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(TIMEOUT_S)  # ends what a killed one had open
    each = RECORDS // PARTITIONS
    numbers = [_next_number(address, partition) for partition in range(PARTITIONS)]
    while min(numbers) < each:
        producer.begin_transaction()
        for partition, number in enumerate(numbers):
            for count in range(number, min(number + PIECE, each)):
                producer.produce(
                    TOPIC,
                    _record(count * PARTITIONS + partition),
                    partition=partition,
                    on_delivery=_delivered,
                )
            numbers[partition] = min(number + PIECE, each)
        producer.commit_transaction(TIMEOUT_S)
        print(sum(numbers), flush=True)


def _delivered(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        raise SystemExit(f"a record was lost: {error}")


def _record(number: int) -> bytes:
    item = _ITEMS[number % len(_ITEMS)]
    at = f"2026-01-{number % 3 + 1:02}T12:00:00Z"
    return json.dumps({"id": number, "item": item, "price": number % 90 + 0.5, "at": at}).encode()


def _say(text: str) -> None:
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["produce"] or len(sys.argv) != 3:
        raise SystemExit("python -m tools.demo.pipeline produce ADDRESS")
    produce(sys.argv[2])
