"""The records of `__transaction_state` are Kafka's, byte for byte."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.internal_topics.fields import MalformedError
from ottla.internal_topics.transaction_records import (
    Status,
    Transaction,
    TransactionRecord,
    TransactionRecordFormat,
)
from ottla.names import TopicPartition
from tests.strategies import damaged

CODEC = TransactionRecordFormat()
int64 = st.integers(-1, 2**63 - 1)

transactions = st.builds(
    Transaction,
    producer_id=int64,
    producer_epoch=st.integers(-1, 32767),
    timeout_ms=st.integers(0, 2**31 - 1),
    status=st.sampled_from([status for status in Status if status is not Status.EMPTY]),
    partitions=st.frozensets(
        st.builds(TopicPartition, st.text("abc", min_size=1, max_size=200), st.integers(0, 2**31 - 1))
    ),
    updated_ms=int64,
    started_ms=int64,
    previous_producer_id=int64,
    next_producer_id=int64,
    client_version=st.integers(0, 2),
    last_producer_epoch=st.just(-1),
)


@given(st.text(max_size=40), transactions | st.none())
def test_what_is_written_is_read(name: str, value: Transaction | None) -> None:
    record = TransactionRecord(name, value)
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_a_key_is_its_type_and_the_transactional_id() -> None:
    assert CODEC.encode(TransactionRecord("tx", None)) == (bytes.fromhex("0000 0002 7478"), None)


def test_an_empty_transaction_has_no_list_of_partitions() -> None:
    txn = Transaction(5, 0, 60_000, updated_ms=258, previous_producer_id=5)
    expected = "0001 0000000000000005 0000 0000ea60 00 00 0000000000000102 ffffffffffffffff 01 00 08 0000000000000005"
    assert CODEC.encode(TransactionRecord("tx", txn))[1] == bytes.fromhex(expected)


def test_an_open_transaction_lists_its_partitions_by_topic() -> None:
    partitions = frozenset(TopicPartition("t", index) for index in (1, 0))
    txn = Transaction(5, 1, 1, Status.ONGOING, partitions, 3, 2, client_version=2)
    expected = (
        "0001 0000000000000005 0001 00000001 01 02 02 74 03 00000000 00000001 00"
        "0000000000000003 0000000000000002 01 02 02 0002"
    )
    assert CODEC.encode(TransactionRecord("tx", txn))[1] == bytes.fromhex(expected)


def test_the_old_version_is_read() -> None:
    value = bytes.fromhex(
        "0000 0000000000000005 0001 00000001 04 00000001 0001 74 00000001 00000007"
        "0000000000000003 0000000000000002"
    )
    expected = Transaction(5, 1, 1, Status.COMPLETE_COMMIT, frozenset({TopicPartition("t", 7)}), 3, 2)
    assert CODEC.decode(bytes.fromhex("0000 0002 7478"), value) == TransactionRecord("tx", expected)


@pytest.mark.parametrize(
    ("key", "value"), [(None, None), (b"\0\1\0\1x", None), (b"\0\0\0\1x", b"\0\1\0"), (b"\0", b"")]
)
def test_what_cannot_be_read_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(MalformedError):
        CODEC.decode(key, value)


@given(transactions, st.data())
def test_damaged_bytes_are_read_or_refused(value: Transaction, data: st.DataObject) -> None:
    key, written = CODEC.encode(TransactionRecord("t", value))
    with suppress(MalformedError):
        CODEC.decode(damaged(key, data), damaged(written or b"", data))
