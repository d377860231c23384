"""What may happen to a transactional id, step by step: from what is known of it to what will be, or to an error.

Two ways to end a transaction: clients of old keep their epoch; those that go by `transaction.version` 2 get a new
epoch with each end, so that nothing late can get into a transaction that it was not meant for (KIP-890).
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from ottla.errors import CodedError
from ottla.internal_topics.transaction_records import NO_EPOCH, NO_PRODUCER_ID, NO_TIME, Status, Transaction
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode

MAX_EPOCH = 32767
EPOCH_BUMP = 2  # the transaction.version from which on every end of a transaction brings a new epoch

PREPARED = (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)
AT_REST = (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


class NeedsProducerIdError(Exception):
    """The step is possible with a new producer id only: get one, and take it again."""


class Expected(NamedTuple):
    """Who a producer that asks for a new epoch says it is."""

    producer_id: int
    producer_epoch: int


def is_exhausted(epoch: int) -> bool:
    """The highest epoch is kept for fencing."""
    return epoch >= MAX_EPOCH - 1


def check_rest(known: Transaction | None) -> None:
    """Who comes before the markers of the last transaction are written is to come again.

    Whether it may come at all is a question for later: a producer that was told of its new epoch, or of its new
    id, is not wrong because that does not count yet.
    """
    if known is not None and known.status in PREPARED:
        raise CodedError(ErrorCode.CONCURRENT_TRANSACTIONS)


# -- InitProducerId


def initialised(
    known: Transaction | None, timeout_ms: int, expected: Expected | None, fresh_id: int | None, now_ms: int
) -> Transaction:
    """A producer begins, or begins again after an error (`expected`): nobody else may go on with an older epoch."""
    check_rest(known)
    if known is None:
        known = Transaction(_given(fresh_id), NO_EPOCH, timeout_ms)
    elif expected is not None and not may_be(known, expected):
        raise CodedError(ErrorCode.PRODUCER_FENCED)
    begun = known._replace(
        status=Status.EMPTY,
        partitions=frozenset(),
        timeout_ms=timeout_ms,
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )
    epoch, last_epoch = known.producer_epoch, known.last_producer_epoch
    if is_exhausted(epoch) and (expected is None or expected.producer_epoch in (epoch, last_epoch)):
        return begun._replace(
            producer_id=_given(fresh_id),
            producer_epoch=0,
            last_producer_epoch=expected.producer_epoch if expected is not None else NO_EPOCH,
            previous_producer_id=known.producer_id,
        )
    if expected is not None and expected.producer_epoch == last_epoch and epoch != NO_EPOCH:
        return begun  # the same request once more, or its transaction was aborted meanwhile
    begun = begun._replace(producer_epoch=epoch + 1, previous_producer_id=NO_PRODUCER_ID)
    if expected is None:
        return begun._replace(last_producer_epoch=NO_EPOCH)
    if epoch in (NO_EPOCH, expected.producer_epoch):
        return begun._replace(last_producer_epoch=epoch)
    raise CodedError(ErrorCode.PRODUCER_FENCED)


def may_be(known: Transaction, expected: Expected) -> bool:
    """Whether the producer is the one that is known; its epoch is another matter."""
    if expected.producer_id == known.producer_id:
        return True
    # Its epochs were used up, and it has not heard of its new id.
    return expected.producer_id == known.previous_producer_id and is_exhausted(expected.producer_epoch)


def _given(fresh_id: int | None) -> int:
    if fresh_id is None:
        raise NeedsProducerIdError
    return fresh_id


# -- AddPartitionsToTxn


def check_producer(known: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    """The transaction that the producer may go on with."""
    if known is None or known.producer_id != producer_id:
        raise CodedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != producer_epoch:
        raise CodedError(ErrorCode.PRODUCER_FENCED)
    check_rest(known)
    return known


def with_partitions(
    known: Transaction, added: Set[TopicPartition], client_version: int, now_ms: int
) -> Transaction | None:
    """The transaction goes on in these partitions too; None if they are all there already."""
    if known.status is Status.ONGOING and added <= known.partitions:
        return None
    return known._replace(
        status=Status.ONGOING,
        partitions=known.partitions | added,
        started_ms=now_ms if known.status in AT_REST else known.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
        previous_producer_id=NO_PRODUCER_ID,
    )


# -- EndTxn


def ended(
    known: Transaction | None,
    producer: Expected,
    commit: bool,
    client_version: int,
    fresh_id: int | None,
    now_ms: int,
) -> Transaction | None:
    """Prepared to end as its producer asks; None if it has ended so, and this is the request once more."""
    if client_version >= EPOCH_BUMP:
        check_rest(known)
        return _ended_with_bump(known, producer, commit, client_version, fresh_id, now_ms)
    known = check_producer(known, *producer)
    if known.status is Status.ONGOING:
        return _prepared(known, commit, client_version, None, now_ms)
    if known.status is (Status.COMPLETE_COMMIT if commit else Status.COMPLETE_ABORT):
        return None
    raise CodedError(ErrorCode.INVALID_TXN_STATE)


def _ended_with_bump(
    known: Transaction | None,
    producer: Expected,
    commit: bool,
    client_version: int,
    fresh_id: int | None,
    now_ms: int,
) -> Transaction | None:
    if known is None:
        raise CodedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    epoch, status = producer.producer_epoch, known.status
    is_again = known.producer_epoch == epoch + 1
    is_again_with_new_id = (
        known.previous_producer_id == producer.producer_id
        and epoch == MAX_EPOCH - 1
        and known.producer_epoch == 0
    )
    if known.producer_id != producer.producer_id and not is_again_with_new_id:
        raise CodedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_valid = epoch == known.producer_epoch
    if status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT):
        is_valid = is_valid or is_again or is_again_with_new_id
    if not is_valid:
        raise CodedError(ErrorCode.PRODUCER_FENCED)
    if status is Status.ONGOING:
        return _prepared(known, commit, client_version, fresh_id, now_ms)
    if status in AT_REST:
        if is_again or is_again_with_new_id:
            if status is (Status.COMPLETE_COMMIT if commit else Status.COMPLETE_ABORT):
                return None
        elif not commit:
            # No transaction is known here, but records of one may still arrive at a partition: a new epoch fences them.
            return _prepared(known, commit, client_version, fresh_id, now_ms)._replace(started_ms=now_ms)
    raise CodedError(ErrorCode.INVALID_TXN_STATE)


def _prepared(
    known: Transaction, commit: bool, client_version: int, fresh_id: int | None, now_ms: int
) -> Transaction:
    prepared = known._replace(
        status=Status.PREPARE_COMMIT if commit else Status.PREPARE_ABORT,
        updated_ms=now_ms,
        client_version=client_version,
        next_producer_id=NO_PRODUCER_ID,
        previous_producer_id=NO_PRODUCER_ID,
    )
    if client_version < EPOCH_BUMP:
        return prepared
    epoch = known.producer_epoch
    next_id = _given(fresh_id) if is_exhausted(epoch) else NO_PRODUCER_ID
    return prepared._replace(
        producer_epoch=min(epoch + 1, MAX_EPOCH), last_producer_epoch=epoch, next_producer_id=next_id
    )


def fenced(known: Transaction, now_ms: int) -> Transaction:
    """Prepared to abort against its producer's will: what that still sends is of an old epoch.

    The last epoch is kept, whatever the client goes by: with it the producer can ask for the new one, and go on.
    """
    epoch = known.producer_epoch
    return known._replace(
        status=Status.PREPARE_ABORT,
        updated_ms=now_ms,
        client_version=EPOCH_BUMP,
        next_producer_id=NO_PRODUCER_ID,
        previous_producer_id=NO_PRODUCER_ID,
        producer_epoch=min(epoch + 1, MAX_EPOCH),
        last_producer_epoch=epoch,
    )


def completed(known: Transaction, now_ms: int) -> Transaction:
    """All markers are written."""
    complete = known._replace(
        status=Status.COMPLETE_COMMIT if known.status is Status.PREPARE_COMMIT else Status.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_ms=now_ms,
        next_producer_id=NO_PRODUCER_ID,
        previous_producer_id=NO_PRODUCER_ID,
    )
    if known.client_version >= EPOCH_BUMP and known.next_producer_id != NO_PRODUCER_ID:
        return complete._replace(
            producer_id=known.next_producer_id, producer_epoch=0, previous_producer_id=known.producer_id
        )
    return complete
