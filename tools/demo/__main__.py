"""`make demo`: a broker, real clients, kills in the middle, and a pipeline: what goes in, what is kept, what lands."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tools.demo.pipeline import land_while_killed

TOPIC = "orders"
RECORDS = 300_000
KILL_AFTER = 60_000  # acknowledged records of the second load
TIMEOUT_S = 30
_QUIET = {"log_level": 0}  # a client is loud when its broker goes away, which is what happens here


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as place:
        data = Path(place, "data")
        with _broker(data) as broker:
            _say(f"{RECORDS:,} records in and out, with confluent-kafka")
            _make_topic(broker.address)
            _produce(broker.address)
            _consume(broker.address)
            _say("How they lie on disk, as Apache Kafka has them")
            _ottla("log", "show", f"{data}/{TOPIC}-0")
            _ottla("log", "dump", f"{data}/{TOPIC}-0", "--records", "--offset", "150000:150003")
            _kill_under_load(broker)
            _check(broker.address)
            _say("A pipeline lands a topic in a Delta table while the topic's producer is killed")
            land_while_killed(broker.address, Path(place))
            _say("Stop, and look whether all of it is healthy")
            broker.stop()
            _ottla("log", "verify", str(data))


class _Process:
    """`ottla serve`, in a process of its own. It keeps the port that it got at the first start."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._log = data.parent / "broker.log"
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        words = ["serve", "--data", str(self._data), "--listen", self.address, "--http", "off"]
        _say(f"$ ottla {' '.join(words)}")
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "ottla", *words]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            raise SystemExit(f"the broker did not start:\n{self._log.read_text()}")
        print(ready, end="", flush=True)
        self.address = ready.split()[3]

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.wait(TIMEOUT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def _broker(data: Path) -> Iterator[_Process]:
    process = _Process(data)
    try:
        yield process
    finally:
        process.stop()


def _make_topic(address: str) -> None:
    topic = NewTopic(TOPIC, 1, 1, config={"segment.bytes": str(8 << 20)})
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([topic]).values():
        future.result(TIMEOUT_S)


def _producer(address: str) -> Producer:
    settings = {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5}
    return Producer(
        settings | {"queue.buffering.max.messages": 2 * RECORDS, "reconnect.backoff.max.ms": 200} | _QUIET
    )


def _record(number: int) -> tuple[bytes, bytes]:
    return b"order-%d" % number, b'{"id": %d, "item": "book", "price": %d}' % (number, number % 90)


def _produce(address: str) -> None:
    producer = _producer(address)
    began = time.perf_counter()
    for number in range(RECORDS):
        key, value = _record(number)
        producer.produce(TOPIC, value, key, 0)
    assert producer.flush(TIMEOUT_S) == 0
    seconds = time.perf_counter() - began
    print(f"produced and acknowledged: {RECORDS / seconds:,.0f} records/s")


def _consume(address: str) -> None:
    began = time.perf_counter()
    count = sum(len(messages) for messages in _read_all(address, RECORDS))
    print(f"consumed: {count / (time.perf_counter() - began):,.0f} records/s")


def _read_all(address: str, end: int) -> Iterator[list[Message]]:
    """Every record below offset `end`, from the first, in pieces."""
    settings = {"bootstrap.servers": address, "group.id": "demo", "enable.auto.commit": False}
    consumer = Consumer(settings | {"auto.offset.reset": "error"} | _QUIET)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    position = 0
    try:
        while position < end:
            messages = consumer.consume(10_000, timeout=TIMEOUT_S)
            assert messages, f"no records came after offset {position}"
            yield messages
            position = (messages[-1].offset() or 0) + 1
    finally:
        consumer.close()


def _kill_under_load(broker: _Process) -> None:
    """Kill the broker while a client produces, start it again, and let the client finish what it began."""
    _say("Killing the broker in the middle of a load (kill -9)")
    producer = _producer(broker.address)
    acknowledged = 0

    def delivered(error: KafkaError | None, _: Message) -> None:
        nonlocal acknowledged
        if error is not None:
            raise SystemExit(f"a record was lost: {error}")
        acknowledged += 1

    number = RECORDS
    while acknowledged < KILL_AFTER:
        key, value = _record(number)
        producer.produce(TOPIC, value, key, 0, on_delivery=delivered)
        producer.poll(0)
        number += 1
    broker.kill()
    print(f"killed: {acknowledged:,} of {number - RECORDS:,} records had been acknowledged")
    for more in range(number, 2 * RECORDS):  # the client goes on: it does not know better
        key, value = _record(more)
        producer.produce(TOPIC, value, key, 0, on_delivery=delivered)
    broker.start()
    print("recovered; the client sends again what was not acknowledged")
    assert producer.flush(TIMEOUT_S) == 0
    print(f"{acknowledged:,} acknowledged in the end")


def _check(address: str) -> None:
    _say("What was kept")
    number = 0
    for messages in _read_all(address, 2 * RECORDS):
        for message in messages:
            if message.offset() != number or (message.key(), message.value()) != _record(number):
                raise SystemExit(
                    f"offset {message.offset()} should hold record {number}, and holds {message.key()!r}"
                )
            number += 1
    print(f"all {number:,} records, each once and in order, offsets without holes")


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _ottla(*arguments: str) -> None:
    print(f"$ ottla {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "ottla", *arguments], check=True)


if __name__ == "__main__":
    main()
