"""Read-process-write under kills: each input comes out once, in order, and nothing of what was aborted is ever seen.

Workers in processes of their own read `in` as a group, write to `out` and commit the group's offsets in transactions,
some of which they abort. `in` itself is written in transactions, some of them aborted. The broker and the workers are
killed with -9 again and again, at moments that the seed chooses by how far the work has come. All that clients saw goes
through the anomaly checker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from tests.reliability.anomalies import History, Outcome, Poll, Transaction, Value, find, summary
from tests.reliability.child import Child
from tests.reliability.exactly_once_worker import GROUP, IN, OUT
from tests.reliability.scenarios import Case
from tests.server.wire import Wire

RECORDS = 200_000
KILLS = 50  # of the broker, and as many of workers
WORKERS = 3
PARTITIONS = 6
FED_AT_ONCE = 100  # records of a transaction of `in`
PROGRESS_S = 120.0  # without any is an error
SETTLED_S = 120.0
_LIST_TRANSACTIONS = 66
SETTINGS = (
    "group.min.session.timeout.ms=1000",
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=4",
    "transaction.state.log.num.partitions=4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
    "log.segment.bytes=1048576",
    "log.flush.offset.checkpoint.interval.ms=500",
)
ROOT = Path(__file__).resolve().parents[2]


def cases(seed: int, records: int = RECORDS, kills: int = KILLS) -> Iterator[Case]:
    yield Case("load", "load", partial(_run, Random(f"exactly once {seed}"), records, kills))


def _run(rng: Random, records: int, kills: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-once-") as directory:
        options = [word for setting in SETTINGS for word in ("--set", setting)]
        load = Load(Child(Path(directory) / "data", *options), Path(directory), rng)
        try:
            load.begin(records)
            load.work(records, kills)
            load.end(records)
        finally:
            load.give_up()


class Load:
    """One broker, its workers, and what everybody saw."""

    def __init__(self, broker: Child, directory: Path, rng: Random) -> None:
        self._broker = broker
        self._directory = directory
        self._rng = rng
        self._workers: list[subprocess.Popen[bytes]] = []
        self._lives = 0
        self.history = History()
        self._base: dict[str, Any] = {
            "bootstrap.servers": broker.servers,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }

    # -- the beginning

    def begin(self, records: int) -> None:
        self._broker.start()
        admin = AdminClient(self._base)
        for future in admin.create_topics([NewTopic(IN, PARTITIONS), NewTopic(OUT, PARTITIONS)]).values():
            future.result(SETTLED_S)
        self._feed(records)
        self._workers = [self._start_worker(number) for number in range(WORKERS)]
        self._reader = self._read_from_start(OUT)

    def _feed(self, records: int) -> None:
        """Numbers in each partition, and between them others that are aborted."""
        producer = Producer(self._base | {"transactional.id": "feeder", "linger.ms": 5})
        producer.init_transactions(SETTLED_S)
        fed = 0
        while fed < records:
            commits = self._rng.random() < 0.8
            count = min(self._rng.randint(1, 2 * FED_AT_ONCE), records - fed)
            outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
            values = [
                ((IN, number % PARTITIONS), Value(str(number % PARTITIONS), number, outcome.value))
                for number in range(fed, fed + count)
            ]
            producer.begin_transaction()
            for (topic, partition), value in values:
                producer.produce(topic, str(value), partition=partition)
            if commits:
                producer.commit_transaction(SETTLED_S)
                fed += count
            else:
                producer.flush(SETTLED_S)
                producer.abort_transaction(SETTLED_S)
            self.history.transactions.append(Transaction("feeder", values, outcome))

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        self._lives += 1
        file = self._directory / f"worker-{self._lives}.jsonl"
        module = "tests.reliability.exactly_once_worker"
        words = [self._broker.servers, f"worker-{number}", str(self._lives), str(file)]
        with (self._directory / "workers.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *words],
                cwd=ROOT,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    # -- the work

    def work(self, records: int, kills: int) -> None:
        """Until all is done; with each part of it somebody is killed."""
        doomed = ["broker", "worker"] * kills
        self._rng.shuffle(doomed)
        step = records // (len(doomed) + 1)
        done, deadline = 0, time.monotonic() + PROGRESS_S
        while done < records or doomed:
            came = self._read()
            done += came
            if came:
                deadline = time.monotonic() + PROGRESS_S
            assert time.monotonic() < deadline, f"{done} of {records}\n{self._last_words()}"
            self._start_who_gave_up()
            if doomed and done >= step * (2 * kills - len(doomed) + 1):
                time.sleep(self._rng.random() * 0.2)  # the moment is of the essence, and chosen by the seed
                self._kill(doomed.pop())

    def _read(self) -> int:
        taken: dict[int, list[tuple[int, Value]]] = {}
        for message in self._reader.consume(1000, 0.1):
            if message.error() is None:
                value = Value.parse((message.value() or b"").decode())
                taken.setdefault(message.partition() or 0, []).append((message.offset() or 0, value))
        for partition, records in taken.items():
            self.history.polls.append(Poll("reader", (OUT, partition), records))
        return sum(map(len, taken.values()))

    def _kill(self, whom: str) -> None:
        if whom == "broker":
            self._broker.kill()
            self._broker.start()
        else:
            number = self._rng.randrange(WORKERS)
            self._workers[number].kill()
            self._workers[number].wait()
            self._workers[number] = self._start_worker(number)

    def _start_who_gave_up(self) -> None:
        """A worker that was fenced or timed out ends by itself: somebody starts it again, as in real life."""
        for number, worker in enumerate(self._workers):
            if worker.poll() is not None:
                self._workers[number] = self._start_worker(number)

    def _last_words(self) -> str:
        return (self._directory / "workers.log").read_text(errors="replace")[-4000:]

    # -- the end

    def end(self, records: int) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait(SETTLED_S)
        self._check_settled()
        self._reader.close()
        self._read_all(OUT, "last reader")
        self._take_histories()
        anomalies = find(self.history)
        assert not anomalies, summary(anomalies)
        self._check_output(records)
        transactions = len(self.history.transactions)
        print(f"{records} records, {transactions} transactions, {self._lives} lives of workers")

    def _check_settled(self) -> None:
        """No transaction is open, and none hangs: readers get to the end of every partition."""
        deadline = time.monotonic() + SETTLED_S
        while hanging := self._hanging():
            assert time.monotonic() < deadline, hanging
            time.sleep(0.2)

    def _hanging(self) -> list[str]:
        with Wire(self._broker) as wire:
            listed = wire.ask(_LIST_TRANSACTIONS, 0, ListTransactionsRequest())
        hanging = [
            f"{state.transactional_id} is {state.transaction_state}"
            for state in listed.transaction_states
            if state.transaction_state not in ("Empty", "CompleteCommit", "CompleteAbort")
        ]
        admin = AdminClient(self._base)
        topics = admin.list_topics(timeout=SETTLED_S).topics
        places = [
            TopicPartition(name, number)
            for name in (IN, OUT, "__consumer_offsets")
            for number in topics[name].partitions
        ]
        ends = []
        for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            futures = admin.list_offsets(
                dict.fromkeys(places, OffsetSpec.latest()), isolation_level=isolation
            )
            ends.append({place: future.result(SETTLED_S).offset for place, future in futures.items()})
        return hanging + [
            f"{place.topic}-{place.partition} is stable up to {offset} of {ends[1][place]}"
            for place, offset in ends[0].items()
            if offset != ends[1][place]
        ]

    def _read_from_start(self, topic: str) -> Consumer:
        consumer = Consumer(
            self._base
            | {
                "group.id": f"not {GROUP}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        return consumer

    def _read_all(self, topic: str, name: str) -> None:
        consumer = self._read_from_start(topic)
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            for message in consumer.consume(1000, 5.0):
                partition = message.partition() or 0
                if message.error() is not None:
                    ended.add(partition)
                    continue
                value = Value.parse((message.value() or b"").decode())
                self.history.polls.append(Poll(name, (topic, partition), [(message.offset() or 0, value)]))
        consumer.close()

    def _take_histories(self) -> None:
        for file in sorted(self._directory.glob("worker-*.jsonl")):
            begun: dict[int, list[Any]] = {}
            outcomes: dict[int, Outcome] = {}
            for kind, what in _events(file):
                if kind == "poll":
                    reader, partition, records = what
                    read = [(offset, Value.parse(text)) for offset, text in records]
                    self.history.polls.append(Poll(reader, (IN, partition), read))
                elif kind == "begin":
                    begun[what[0]] = what[1]
                else:
                    outcomes[what] = {"asked": Outcome.UNKNOWN}.get(kind) or Outcome(kind)
            self.history.transactions += (
                Transaction(
                    file.stem,
                    [((OUT, partition), Value.parse(text)) for partition, text in values],
                    outcomes.get(number, Outcome.ABORTED),
                )
                for number, values in begun.items()
            )

    def _check_output(self, records: int) -> None:
        """Each number once, in order."""
        for partition in range(PARTITIONS):
            found = [
                value.number
                for poll in self.history.polls
                if poll.reader == "last reader" and poll.place == (OUT, partition)
                for _, value in poll.records
            ]
            expected = list(range(partition, records, PARTITIONS))
            assert found == expected, f"partition {partition}: {len(found)} of {len(expected)}"

    def give_up(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._broker.close()


def _events(file: Path) -> Iterator[tuple[str, Any]]:
    """The last line may be half written: its writer was killed."""
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            kind, what = json.loads(line)
        except ValueError:
            return
        yield kind, what
