"""The records of `__transaction_state`, byte for byte as Kafka 4.2 writes them: one for each transactional id.

Values are written in version 1, which is what Kafka writes where `transaction.version` is finalised; both are read.
The ids before and after are there only where a producer gets a new id: Kafka 4.2 reads them, but writes neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import groupby
from struct import Struct
from typing import NamedTuple

from ottla.internal_topics.decoding import read_transaction_record
from ottla.internal_topics.fields import MalformedError
from ottla.internal_topics.packing import INT16, INT32, INT64, NO_TAGS, compact_string, string, varint
from ottla.names import TopicPartition
from ottla.records.kernel import encode_records

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1

_HEAD = Struct(">hqhib")
_TIMES = Struct(">qq")
_NULL_ARRAY = b"\0"


class Status(IntEnum):
    """Where a transaction is. The numbers are those of the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def title(self) -> str:
        """As Kafka writes it for people: `CompleteCommit`."""
        return self.name.title().replace("_", "")


class Transaction(NamedTuple):
    """What is known of a transactional id: its producer and its latest transaction. Never changed, only followed."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status = Status.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int = NO_TIME
    started_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID  # if this record is the first with the present one
    next_producer_id: int = NO_PRODUCER_ID  # what the producer gets when this transaction is complete
    client_version: int = 0  # the transaction.version that the client goes by
    # Not written down: the epoch before the last bump, by which a repeated request is recognised.
    last_producer_epoch: int = NO_EPOCH


class TransactionRecord(NamedTuple):
    """The state of a transactional id, or without value its end."""

    transactional_id: str
    value: Transaction | None


class TransactionRecordFormat:
    """Between records and bytes: how a record is written, and read."""

    def write(
        self, batch: bytearray, records: Sequence[TransactionRecord], time_delta: int, first_delta: int
    ) -> int:
        encoded = [(time_delta, *self.encode(record), ()) for record in records]
        encode_records(batch, encoded, 0, range(first_delta, first_delta + len(records)))
        return len(records)

    def encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        key = INT16.pack(0) + string(record.transactional_id)
        return key, None if record.value is None else _value(record.value)

    def decode(self, key: bytes | None, value: bytes | None) -> TransactionRecord:
        fields, content = read_transaction_record(key, value)
        if content is None:
            return TransactionRecord(fields["transactional_id"], None)
        found = Transaction(
            content["producer_id"],
            content["producer_epoch"],
            content["timeout_ms"],
            _status(content["status"]),
            frozenset(
                TopicPartition(entry["topic"], partition)
                for entry in content["partitions"] or ()
                for partition in entry["partitions"]
            ),
            content["last_update_timestamp"],
            content["start_timestamp"],
            content.get("previous_producer_id", NO_PRODUCER_ID),
            content.get("next_producer_id", NO_PRODUCER_ID),
            content.get("client_transaction_version", 0),
        )
        return TransactionRecord(fields["transactional_id"], found)


def _status(number: int) -> Status:
    try:
        return Status(number)
    except ValueError:
        raise MalformedError(f"a transaction in state {number}") from None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions as requests and records list them."""
    ordered = sorted(partitions, key=lambda entry: (entry.topic, entry.partition))
    return {
        topic: [entry.partition for entry in entries]
        for topic, entries in groupby(ordered, key=lambda entry: entry.topic)
    }


def _value(txn: Transaction) -> bytes:
    head = _HEAD.pack(1, txn.producer_id, txn.producer_epoch, txn.timeout_ms, txn.status)
    parts = [head]
    if txn.status is Status.EMPTY:
        parts.append(_NULL_ARRAY)
    else:
        topics = by_topic(txn.partitions)
        parts.append(varint(len(topics) + 1))
        for topic, partitions in topics.items():
            parts += (compact_string(topic), varint(len(partitions) + 1))
            parts += map(INT32.pack, partitions)
            parts.append(NO_TAGS)
    parts.append(_TIMES.pack(txn.updated_ms, txn.started_ms))
    tags = [
        bytes((tag, len(data))) + data
        for tag, value, default, data in (
            (0, txn.previous_producer_id, NO_PRODUCER_ID, INT64.pack(txn.previous_producer_id)),
            (1, txn.next_producer_id, NO_PRODUCER_ID, INT64.pack(txn.next_producer_id)),
            (2, txn.client_version, 0, INT16.pack(txn.client_version)),
        )
        if value != default
    ]
    return b"".join([*parts, bytes((len(tags),)), *tags])
