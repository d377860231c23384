"""Rows into topics, from one task: at least once, or exactly once as a turn of a query or a run.

A turn is one task of one batch. Its rows and its number go into one transaction, the number as an offset of a group
that only this task has; so a turn that comes again finds its number and is passed over. Who takes the transactional
id ends what its former owner had open, and fences it.

A task may leave its transaction open, for the driver to end when all tasks are done. It should where its rows come from
a JVM: when that is killed, they only seem to have come to their end.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.client.cluster import Cluster, PartitionKey
from ottla.client.failures import check
from ottla.client.groups import Committed, fetch_offsets
from ottla.client.producing import DEFAULT_TRANSACTION_TIMEOUT_MS, Producer
from ottla.client.transactions import HeldTransaction, end_transaction
from ottla.errors import BrokerError, ConfigError
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.records.compression.codec import Codec
from ottla.spark.options import WriteOptions
from ottla.spark.write.packing import OpenBatch, RowPacker, by_topic

PREFIX = "ottla-spark"
_BATCH_BYTES = 512 << 10
_ROUND_BYTES = 1 << 20  # send when so much is full
_OPEN_BYTES = 32 << 20  # or when so much waits
_DELIVERY_TIMEOUT_MS = 120_000
_GIVE_UP_S = 10.0
# The states of a transaction that is open, and of a producer that may begin one.
_MAY_WRITE = ("Ongoing", "Empty")


@dataclass(frozen=True)
class Turn:
    """Which piece of work this is: a task's share of a batch. Numbers grow, each task's from turn to turn."""

    name: str  # of the query or run
    task: int
    number: int

    @classmethod
    def name_of(cls, transactional_id: str) -> str:
        return transactional_id.removeprefix(f"{PREFIX}-").rpartition("-")[0]

    @property
    def id(self) -> str:
        return f"{PREFIX}-{self.name}-{self.task}"


@dataclass(frozen=True)
class Sent:
    """How many rows a task wrote, or found written before; and the transaction that it left open."""

    rows: int
    skipped: bool = False
    held: HeldTransaction | None = None


def send_rows(
    options: WriteOptions,
    rows: Iterable[pa.RecordBatch],
    turn: Turn | None = None,
    *,
    sticky: int = 0,
    hold: bool = False,
) -> Sent:
    """Write rows. With a turn exactly once; without, once more for each time that Spark tries again.

    With `hold` a turn's transaction is left open, for `end_held` to end.
    """
    settings = _Settings.of(options)
    with Cluster.from_options(options.kafka, timeout_s=settings.timeout_s) as cluster:
        if turn is not None:
            return _send_once(cluster, settings, options.topic, rows, turn, hold)
        producer = Producer(cluster, codec=settings.codec)
        sender = _Sender(cluster, producer, settings.batch_bytes, options.topic, sticky)
        sender.send(rows)
        producer.flush()
        return Sent(sender.rows)


def end_held(options: WriteOptions, sent: Iterable[Sent], *, committed: bool) -> None:
    """End the transactions that tasks left open."""
    held = [one.held for one in sent if one.held is not None]
    if held:
        with Cluster.from_options(options.kafka, timeout_s=_Settings.of(options).timeout_s) as cluster:
            for transaction in held:
                end_transaction(cluster, transaction, committed=committed)


def give_up(options: WriteOptions, name: str, sent: Iterable[Sent] = ()) -> None:
    """Abort what the tasks of a query or run have open, also of those that were killed; who still writes is fenced.

    Else readers of what is committed would wait until brokers lose patience, which is many minutes. It is done as well
    as it can be: the reason for giving up may be that brokers are away, or they are too old to be asked.
    """
    with contextlib.suppress(BrokerError, OSError):
        end_held(options, sent, committed=False)
    ours = re.compile(re.escape(f"{PREFIX}-{name}-") + r"\d+")
    timeout_ms = _Settings.of(options).transaction_timeout_ms
    with (
        contextlib.suppress(BrokerError, OSError),
        Cluster.from_options(options.kafka, timeout_s=_GIVE_UP_S) as cluster,
    ):
        cluster.connection()  # if there is nobody, it is known at once
        for node_id in cluster.nodes():
            answer = cluster.ask(node_id, ListTransactionsRequest(state_filters=list(_MAY_WRITE)))
            check(answer.error_code, f"broker {node_id}")
            for entry in answer.transaction_states:
                if ours.fullmatch(entry.transactional_id):
                    Producer(cluster, entry.transactional_id, transaction_timeout_ms=timeout_ms)


def _send_once(
    cluster: Cluster,
    settings: _Settings,
    topic: str | None,
    rows: Iterable[pa.RecordBatch],
    turn: Turn,
    hold: bool,
) -> Sent:
    # First the id: from here on nobody else can commit this turn.
    producer = Producer(
        cluster, turn.id, codec=settings.codec, transaction_timeout_ms=settings.transaction_timeout_ms
    )
    done = _last_turn(cluster, turn.id)
    if done is not None and done.offset > turn.number:
        return _found(rows, turn, done)
    sender = _Sender(cluster, producer, settings.batch_bytes, topic, turn.task)
    try:
        sender.send(rows)
        if not sender.rows:
            return Sent(0)
        mark = Committed(turn.number + 1, json.dumps({"rows": sender.rows}))
        producer.commit_offsets(turn.id, {(min(sender.topics), 0): mark})
        if hold:
            return Sent(sender.rows, held=producer.held())
        producer.commit()
    except BaseException:
        with contextlib.suppress(BrokerError):
            producer.abort()
        raise
    return Sent(sender.rows)


def _last_turn(cluster: Cluster, group: str) -> Committed | None:
    """The offset is the number of the turn to come; it stands with whichever topic that turn wrote to."""
    return max(fetch_offsets(cluster, group, require_stable=True).values(), default=None)


def _found(rows: Iterable[pa.RecordBatch], turn: Turn, done: Committed) -> Sent:
    """The rows are there. A task that now has others would lose some, or write some twice: better to stop."""
    count = sum(batch.num_rows for batch in rows)
    before = json.loads(done.metadata or "{}").get("rows", count) if done.offset == turn.number + 1 else count
    if count != before:
        raise ConfigError(
            f"task {turn.task} of batch {turn.number} wrote {before} rows before, and has {count} now: the rows of a"
            " batch were divided among its tasks in another way. Set spark.sql.adaptive.enabled and"
            " spark.sql.adaptive.streaming.stateless.enabled to false, and repartition nothing by chance"
        )
    return Sent(count, skipped=True)


class _Sender:
    """Packs rows and sends what is full while more is being packed."""

    def __init__(
        self, cluster: Cluster, producer: Producer, batch_bytes: int, topic: str | None, sticky: int
    ) -> None:
        self._cluster = cluster
        self._producer = producer
        self._topic = topic
        self._packer = RowPacker(batch_bytes, sticky)
        self._full: dict[PartitionKey, OpenBatch] = {}
        self._full_bytes = 0
        self._partitions: dict[str, int] = {}

    @property
    def topics(self) -> Iterable[str]:
        return self._partitions

    @property
    def rows(self) -> int:
        return self._packer.rows

    def send(self, rows: Iterable[pa.RecordBatch]) -> None:
        for batch in rows:
            if batch.num_rows:
                for topic, part in by_topic(batch, self._topic):
                    self._add(topic, part)
        self._send_full()
        self._full = self._packer.rest()
        self._send_full()

    def _add(self, topic: str, rows: pa.RecordBatch) -> None:
        partitions = self._partitions.get(topic) or self._look_up(topic)
        for key, batch in self._packer.add(topic, partitions, rows):
            if key in self._full or self._full_bytes >= _ROUND_BYTES:
                self._send_full()
            self._full[key] = batch
            self._full_bytes += len(batch.data)
        if self._packer.open_bytes > _OPEN_BYTES:
            self._send_full()
            self._full = self._packer.rest()
            self._send_full()

    def _look_up(self, topic: str) -> int:
        self._producer.flush()  # answers come in the order of the questions
        leaders = self._cluster.retrying(lambda: self._cluster.topic(topic, create=True)).leaders
        if not leaders:
            raise ConfigError(f"topic {topic} has no partitions")
        self._partitions[topic] = len(leaders)
        return len(leaders)

    def _send_full(self) -> None:
        full, self._full, self._full_bytes = self._full, {}, 0
        if full:
            self._producer.send({key: (batch.data, batch.count) for key, batch in full.items()})


@dataclass(frozen=True)
class _Settings:
    codec: Codec
    batch_bytes: int
    timeout_s: float
    transaction_timeout_ms: int

    @classmethod
    def of(cls, options: WriteOptions) -> _Settings:
        """Those of a producer's settings that mean something here."""
        kafka: dict[str, Any] = options.kafka
        codec = str(kafka.get("compression.type", "none")).upper()
        if codec not in Codec.__members__:
            raise ConfigError(
                f"kafka.compression.type is one of {', '.join(Codec.__members__).lower()}, not {codec}"
            )
        return cls(
            Codec[codec],
            _number(kafka, "batch.size", _BATCH_BYTES),
            _number(kafka, "delivery.timeout.ms", _DELIVERY_TIMEOUT_MS) / 1000,
            _number(kafka, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS),
        )


def _number(kafka: dict[str, Any], name: str, default: int) -> int:
    text = str(kafka.get(name, default))
    if not text.isdigit() or not int(text):
        raise ConfigError(f"kafka.{name} is a number above 0, not {text}")
    return int(text)
