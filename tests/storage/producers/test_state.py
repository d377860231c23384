"""What a partition knows of its producers: sequences, epochs, duplicates, transactions, expiry."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from ottla.storage.producers.state import BatchSummary, CompletedTxn, ProducerState, add_to_sequence

PID = 1
MAX = 2**31 - 1
DAY_MS = 86_400_000


def append(
    state: ProducerState,
    sequence: int,
    offset: int,
    *,
    count: int = 1,
    epoch: int = 0,
    producer_id: int = PID,
    **more: Any,
) -> None:
    """Check as for a client, then apply."""
    transactional = more.get("transactional", False)
    state.check_append(producer_id, epoch, sequence, transactional=transactional)
    state.append_batch(
        producer_id,
        epoch,
        sequence,
        count,
        offset,
        offset + count - 1,
        more.get("timestamp", 0),
        transactional,
    )


def end(
    state: ProducerState, offset: int, *, epoch: int = 0, coordinator: int = 0, abort: bool = True
) -> CompletedTxn | None:
    state.check_marker(PID, epoch, coordinator)
    completed = state.append_marker(PID, epoch, coordinator, offset, 0, is_abort=abort)
    if completed:
        state.complete(completed)
    return completed


@pytest.fixture
def state() -> ProducerState:
    return ProducerState(DAY_MS)


def test_an_unknown_producer_may_begin_at_any_sequence(state: ProducerState) -> None:
    append(state, 16, 0)
    append(state, 17, 1)
    assert state.producers[PID].last_sequence == 17


@pytest.mark.parametrize("sequence", [0, 2, 5, MAX])
def test_a_sequence_that_does_not_follow_is_refused(state: ProducerState, sequence: int) -> None:
    append(state, 0, 0)
    with pytest.raises(OutOfOrderSequenceError):
        append(state, sequence, 1)


def test_sequences_wrap_to_0(state: ProducerState) -> None:
    append(state, MAX - 1, 0, count=2)
    append(state, 0, 2)
    assert state.producers[PID].last_sequence == 0
    append(state, 1, 3)


def test_a_batch_may_itself_wrap(state: ProducerState) -> None:
    append(state, MAX - 9, 0, count=20)
    assert state.producers[PID].last_sequence == 9
    assert add_to_sequence(MAX, 1) == 0
    append(state, 10, 20)
    assert state.find_duplicate(PID, 0, MAX - 9, 20) == BatchSummary(MAX - 9, 9, 0, 19, 0)


def test_an_older_epoch_is_refused(state: ProducerState) -> None:
    append(state, 0, 0, epoch=5)
    with pytest.raises(InvalidProducerEpochError):
        append(state, 1, 1, epoch=4)


def test_a_new_epoch_begins_at_sequence_0(state: ProducerState) -> None:
    append(state, 7, 0, epoch=5)
    with pytest.raises(OutOfOrderSequenceError):
        append(state, 8, 1, epoch=6)
    append(state, 0, 1, epoch=6)
    assert state.producers[PID].epoch == 6
    assert state.find_duplicate(PID, 5, 7, 1) is None


def test_the_last_five_batches_are_recognised(state: ProducerState) -> None:
    for number in range(7):
        append(state, 2 * number, 10 * number, count=2, timestamp=number)
    found = [state.find_duplicate(PID, 0, 2 * number, 2) for number in range(7)]
    assert found[:2] == [None, None]
    assert found[2:] == [BatchSummary(2 * n, 2 * n + 1, 10 * n, 10 * n + 1, n) for n in range(2, 7)]


@pytest.mark.parametrize(
    ("sequence", "count", "epoch", "producer_id"),
    [(0, 1, 0, PID), (1, 2, 0, PID), (0, 2, 1, PID), (0, 2, 0, 9)],
)
def test_a_duplicate_has_the_same_range_epoch_and_producer(
    state: ProducerState, sequence: int, count: int, epoch: int, producer_id: int
) -> None:
    append(state, 0, 0, count=2)
    assert state.find_duplicate(producer_id, epoch, sequence, count) is None


def test_a_replica_accepts_gaps_and_falling_epochs(state: ProducerState) -> None:
    append(state, 0, 0, epoch=3)
    state.append_batch(PID, 3, 100, 5, 50, 54, 0, False)
    assert state.producers[PID].last_sequence == 104
    state.append_batch(PID, 2, 0, 1, 55, 55, 0, False)
    assert state.producers[PID].epoch == 2


def test_a_coordinators_batch_without_sequence_leaves_the_sequence_alone(state: ProducerState) -> None:
    append(state, 3, 0)
    state.append_batch(PID, 0, -1, 1, 5, 5, 9, True)
    assert state.producers[PID].last_sequence == 3
    assert state.producers[PID].last_timestamp == 9
    assert state.first_unstable_offset == 5


# -- transactions


def test_a_transaction_is_unstable_until_its_end_is_replicated(state: ProducerState) -> None:
    append(state, 0, 9, transactional=True)
    append(state, 1, 10, transactional=True)
    assert state.first_unstable_offset == 9
    assert state.has_open_transactions
    assert end(state, 11) == CompletedTxn(PID, 9, 11, True)
    assert not state.has_open_transactions
    assert state.first_unstable_offset == 9
    state.high_watermark_moved(11)
    assert state.first_unstable_offset == 9
    state.high_watermark_moved(12)
    assert state.first_unstable_offset is None


def test_the_earliest_of_several_transactions_counts(state: ProducerState) -> None:
    append(state, 0, 5, producer_id=2, transactional=True)
    append(state, 0, 9, transactional=True)
    assert state.first_unstable_offset == 5
    completed = end(state, 20)
    assert completed is not None
    assert state.last_stable_offset(completed) == 5
    state.high_watermark_moved(30)
    assert state.first_unstable_offset == 5


def test_the_last_stable_offset_after_the_only_transaction_lies_behind_its_marker(
    state: ProducerState,
) -> None:
    append(state, 0, 9, transactional=True)
    completed = end(state, 20)
    assert completed is not None
    assert state.last_stable_offset(completed) == 21


def test_a_plain_batch_inside_a_transaction_is_refused(state: ProducerState) -> None:
    append(state, 0, 0, transactional=True)
    with pytest.raises(InvalidTxnStateError):
        append(state, 1, 1)


def test_a_marker_without_data_ends_nothing_but_fences(state: ProducerState) -> None:
    assert end(state, 0, epoch=5) is None
    assert state.first_unstable_offset is None
    with pytest.raises(InvalidProducerEpochError):
        append(state, 0, 1, epoch=4)
    append(state, 0, 1, epoch=5)


def test_a_marker_with_a_new_epoch_restarts_the_sequence(state: ProducerState) -> None:
    append(state, 0, 0, count=3, transactional=True)
    end(state, 3, epoch=1)
    with pytest.raises(OutOfOrderSequenceError):
        append(state, 3, 4, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        append(state, 3, 4, epoch=0)
    append(state, 0, 4, epoch=1)


def test_a_marker_with_the_same_epoch_keeps_the_sequence(state: ProducerState) -> None:
    append(state, 0, 0, count=3, transactional=True)
    end(state, 3)
    append(state, 3, 4, transactional=True)
    assert state.first_unstable_offset == 0


def test_a_marker_of_an_old_epoch_or_coordinator_is_refused(state: ProducerState) -> None:
    append(state, 0, 0, epoch=2, transactional=True)
    end(state, 1, epoch=2, coordinator=3)
    with pytest.raises(InvalidProducerEpochError):
        end(state, 2, epoch=1, coordinator=3)
    with pytest.raises(TransactionCoordinatorFencedError):
        end(state, 2, epoch=2, coordinator=2)
    end(state, 2, epoch=2, coordinator=4)


def test_the_same_coordinator_may_go_on(state: ProducerState) -> None:
    append(state, 0, 0, transactional=True)
    end(state, 1, coordinator=3)
    append(state, 1, 2, transactional=True)
    assert end(state, 3, coordinator=3) == CompletedTxn(PID, 2, 3, True)


def test_the_last_stable_offset_is_the_earliest_of_those_still_open(state: ProducerState) -> None:
    for producer_id, offset in ((PID, 3), (2, 5), (3, 8)):
        append(state, 0, offset, producer_id=producer_id, transactional=True)
    completed = end(state, 20)
    assert completed is not None
    assert state.last_stable_offset(completed) == 5


# -- expiry and snapshots


def test_a_silent_producer_expires_unless_its_transaction_is_open(state: ProducerState) -> None:
    append(state, 0, 0, timestamp=100)
    append(state, 0, 1, producer_id=2, timestamp=100, transactional=True)
    state.remove_expired(100 + DAY_MS - 1)
    assert set(state.producers) == {PID, 2}
    state.remove_expired(100 + DAY_MS)
    assert set(state.producers) == {2}
    append(state, 5, 3, timestamp=200)
    assert state.producers[PID].last_sequence == 5


def test_a_snapshot_brings_back_the_last_batch_and_the_open_transaction(state: ProducerState) -> None:
    append(state, MAX - 1, 10, count=4, epoch=3, timestamp=77, transactional=True)
    append(state, 4, 20, producer_id=2, timestamp=88)
    append(state, 5, 21, producer_id=2, timestamp=89)
    again = ProducerState(DAY_MS)
    again.load(state.snapshot(), 22, 100)
    assert again.end_offset == 22
    assert again.producers[PID].batches == [BatchSummary(MAX - 1, 1, 10, 13, 77)]
    assert again.producers[PID].epoch == 3
    assert again.first_unstable_offset == 10
    assert again.producers[2].batches == [BatchSummary(5, 5, 21, 21, 89)]
    append(again, 2, 22, epoch=3, transactional=True)


def test_a_snapshot_of_a_fenced_producer_still_fences(state: ProducerState) -> None:
    end(state, 5, epoch=4, coordinator=9)
    again = ProducerState(DAY_MS)
    again.load(state.snapshot(), 6, 0)
    with pytest.raises(InvalidProducerEpochError):
        append(again, 0, 6, epoch=3)
    with pytest.raises(TransactionCoordinatorFencedError):
        end(again, 6, epoch=4, coordinator=8)
    append(again, 0, 6, epoch=4)


def test_a_snapshot_keeps_a_first_sequence_of_0(state: ProducerState) -> None:
    append(state, 0, 4)
    again = ProducerState(DAY_MS)
    again.load(state.snapshot(), 5, 0)
    assert again.find_duplicate(PID, 0, 0, 1) == BatchSummary(0, 0, 4, 4, 0)


def test_expired_producers_are_not_loaded(state: ProducerState) -> None:
    append(state, 0, 0, timestamp=100)
    append(state, 0, 1, producer_id=2, timestamp=200)
    again = ProducerState(DAY_MS)
    again.load(state.snapshot(), 2, 100 + DAY_MS)
    assert set(again.producers) == {2}


def test_loading_replaces_what_was_known(state: ProducerState) -> None:
    append(state, 0, 0, transactional=True)
    end(state, 1)
    append(state, 0, 2, producer_id=5, transactional=True)
    state.load([], 7, 0)
    assert state.producers == {}
    assert state.first_unstable_offset is None
    assert state.end_offset == 7
