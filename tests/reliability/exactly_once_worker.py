"""One worker of a read-process-write load, in a process of its own that may be killed at any moment.

It reads `in` as a member of a group, writes each record to the same partition of `out`, and commits the group's
offsets with it; now and then it aborts instead and does it again. Whatever it sees and does goes to a file, line by
line, before its consequences can be seen by anybody.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.reliability.anomalies import Value

IN, OUT, GROUP = "in", "out", "workers"
BATCH = 100
TIMEOUT_S = 60.0
ATTEMPT_S = 5.0
# librdkafka sometimes waits for ever for the answer to a commit of offsets that the broker's end has swallowed,
# whatever limit it is given: whoever makes no progress ends itself, and is started again.
STUCK_S = 12.0
ABORTED = 0.1  # the share of transactions that are aborted without need


class Worker:
    """Runs until SIGTERM."""

    def __init__(self, servers: str, name: str, life: int, file_name: str) -> None:
        self._name = f"{name}/{life}"
        self._rng = Random(self._name)
        self._file = open(file_name, "a", encoding="utf-8")  # noqa: SIM115 - as long as the process lives
        base = {"bootstrap.servers": servers, "log_level": 0, "reconnect.backoff.max.ms": 200}
        self._consumer = Consumer(
            base
            | {
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 300,
                "fetch.wait.max.ms": 50,
                # Some come back to what they had, others wait for their turn.
                **({"group.instance.id": name} if name.endswith("0") else {}),
            }
        )
        self._producer = Producer(
            base
            | {
                "transactional.id": name,
                "transaction.timeout.ms": 10_000,
                "linger.ms": 0,
            }
        )
        self._stretch: dict[int, int] = defaultdict(int)  # of reading, by partition
        self._is_moved = False  # partitions were given or taken during a poll
        self._transactions = 0
        self._turned = time.monotonic()
        self.stopping = False

    def watch(self) -> None:
        while time.monotonic() < self._turned + STUCK_S:
            time.sleep(0.5)
        print(f"{self._name} is stuck", file=sys.stderr, flush=True)
        os._exit(4)

    def run(self) -> None:
        threading.Thread(target=self.watch, daemon=True).start()
        self._producer.init_transactions(TIMEOUT_S)
        self._consumer.subscribe([IN], on_assign=self._moved, on_revoke=self._moved, on_lost=self._moved)
        while not self.stopping:
            self._turned = time.monotonic()
            self._turn()
        self._consumer.close()

    def _moved(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._is_moved = True
        for place in partitions:
            self._stretch[place.partition] += 1

    def _note(self, kind: str, what: Any) -> None:
        self._file.write(json.dumps([kind, what]) + "\n")
        self._file.flush()

    def _turn(self) -> None:
        self._is_moved = False
        messages = []
        for message in self._consumer.consume(BATCH, 0.5):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.fatal():
                raise KafkaException(error)
        if self._is_moved:
            # Some of them may be of partitions that are another's now.
            self._go_back_to_committed()
            return
        if not messages:
            return
        taken = self._taken(messages)
        self._note_polls(taken)
        commits = self._rng.random() >= ABORTED
        try:
            self._write(taken)
            self._send_offsets(taken)
            if commits:
                self._note("asked", self._transactions)
                self._until_told(self._producer.commit_transaction)
                self._note("committed", self._transactions)
                return
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
        self._until_told(self._producer.abort_transaction)
        self._note("aborted", self._transactions)
        self._go_back({partition: offsets[0][0] for partition, offsets in taken.items()})

    @staticmethod
    def _taken(messages: list[Message]) -> dict[int, list[tuple[int, str]]]:
        taken: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for message in messages:
            taken[message.partition() or 0].append((message.offset() or 0, (message.value() or b"").decode()))
        return taken

    def _note_polls(self, taken: dict[int, list[tuple[int, str]]]) -> None:
        for partition, records in taken.items():
            reader = f"{self._name} {self._stretch[partition]}"
            self._note("poll", [reader, partition, records])

    def _write(self, taken: dict[int, list[tuple[int, str]]]) -> None:
        self._transactions += 1
        attempt = f"{self._name}.{self._transactions}"
        values = [
            (partition, str(Value.parse(text)._replace(attempt=attempt)))
            for partition, records in taken.items()
            for _, text in records
        ]
        self._note("begin", [self._transactions, values])
        self._producer.begin_transaction()
        for partition, value in values:
            self._producer.produce(OUT, value, partition=partition)
            self._producer.poll(0)

    def _send_offsets(self, taken: dict[int, list[tuple[int, str]]]) -> None:
        offsets = [TopicPartition(IN, partition, records[-1][0] + 1) for partition, records in taken.items()]
        group = self._consumer.consumer_group_metadata()
        self._until_told(lambda limit: self._producer.send_offsets_to_transaction(offsets, group, limit))

    @staticmethod
    def _until_told(ask: Any) -> None:
        """Ask again as long as the answer is that one may."""
        while True:
            try:
                return ask(ATTEMPT_S)
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise

    def _go_back_to_committed(self) -> None:
        assigned = self._consumer.assignment()
        committed = self._consumer.committed(assigned, TIMEOUT_S) if assigned else []
        self._go_back({place.partition: max(place.offset, 0) for place in committed})

    def _go_back(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self._stretch[partition] += 1
            while partition in {place.partition for place in self._consumer.assignment()}:
                try:
                    self._consumer.seek(TopicPartition(IN, partition, offset))
                    break
                except KafkaException:
                    time.sleep(0.01)  # a partition that has just come cannot be turned back at once


def main() -> None:
    servers, name, life, file_name = sys.argv[1:]
    worker = Worker(servers, name, int(life), file_name)

    def stop(*_: object) -> None:
        worker.stopping = True

    signal.signal(signal.SIGTERM, stop)
    worker.run()


if __name__ == "__main__":
    main()
