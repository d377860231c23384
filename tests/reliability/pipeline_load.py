"""Producers for the pipelines: transactions, some of them aborted, with a bad record now and then."""

from __future__ import annotations

import json
import threading
from random import Random

from confluent_kafka import KafkaException, Producer

TOPIC = "orders"
PARTITIONS = 3
_ABORTED = 0.3
_BAD = 0.03
_PAUSE_S = 0.1


class TransactionalLoad(threading.Thread):
    """One producer. What it committed is what must be landed."""

    def __init__(self, bootstrap: str, name: str, seed: str) -> None:
        super().__init__(name=name, daemon=True)
        self._rng = Random(seed)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0}
        )
        self.stopping = threading.Event()
        self.committed: list[str] = []
        self.committed_bad: list[bytes] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._producer.init_transactions(60)
            number = 0
            while not self.stopping.wait(_PAUSE_S * self._rng.random()):
                number = self._transaction(number)
        except KafkaException as error:
            self.error = error

    def _transaction(self, number: int) -> int:
        self._producer.begin_transaction()
        good: list[str] = []
        bad: list[bytes] = []
        for _ in range(self._rng.randint(1, 40)):
            name = f"{self.name}-{number}"
            number += 1
            if self._rng.random() < _BAD:
                bad.append(f"bad {name}".encode())
                value = bad[-1]
            else:
                good.append(name)
                value = json.dumps({"name": name, "day": f"2026-01-0{number % 3 + 1}"}).encode()
            self._producer.produce(TOPIC, value, partition=self._rng.randrange(PARTITIONS))
        if self._rng.random() < _ABORTED:
            self._producer.flush(60)  # so that they are in the log, and not only in the client
            self._producer.abort_transaction(60)
        else:
            self._producer.commit_transaction(60)
            self.committed += good
            self.committed_bad += bad
        return number

    def finish(self) -> None:
        self.stopping.set()
        self.join(120)
        if self.error is not None:
            raise self.error
        assert not self.is_alive()
