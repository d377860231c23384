"""Transactions: one producer at a time, all partitions or none, and every transaction ends."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.cluster import controller
from ottla.coordinator.result import CommandResult
from ottla.coordinator.transactions.coordinator import TRANSACTIONS_TOPIC
from ottla.coordinator.transactions.transaction import EPOCH_BUMP, MAX_EPOCH, Expected, completed, ended
from ottla.coordinator.transactions.verification import Verifier
from ottla.internal_topics.transaction_records import Status, Transaction, TransactionRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.coordinator.transacting import ID, NEW, OLD, TIMEOUT_MS, Transacting

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


@pytest.fixture
def txns(data: str) -> Iterator[Transacting]:
    world = Transacting(f"{data}/data")
    yield world
    world.close()


# -- InitProducerId


def test_the_topic_is_made_on_first_use_with_its_settings(txns: Transacting) -> None:
    topic = txns.image.topics[TRANSACTIONS_TOPIC]
    assert len(topic.partitions) == 2
    assert topic.config["cleanup.policy"] == "compact"


def test_each_new_producer_of_an_id_gets_the_next_epoch(txns: Transacting) -> None:
    first, second = txns.begin(), txns.begin()
    assert second == (first[0], first[1] + 1)
    assert txns.begin("other")[0] != first[0]


def test_a_producer_that_is_replaced_is_fenced(txns: Transacting) -> None:
    old = txns.begin()
    new = txns.begin()
    assert txns.add(old) == [ErrorCode.PRODUCER_FENCED]
    assert txns.add(old, version=1) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert txns.end(old).error_code == ErrorCode.PRODUCER_FENCED
    assert txns.end(old, version=NEW).error_code == ErrorCode.PRODUCER_FENCED
    assert txns.produce(old) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert txns.add((new[0] + 1000, new[1])) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert txns.add(new) == [0]


def test_a_new_producer_aborts_what_the_old_one_left_open(txns: Transacting) -> None:
    old = txns.begin()
    assert txns.add(old) == [0]
    assert txns.produce(old) == 0
    assert txns.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert txns.outcome() == "aborted"
    answer = txns.init()
    assert (answer.error_code, answer.producer_epoch) == (0, old[1] + 2)


def test_a_producer_that_recovers_gets_a_new_epoch_and_the_same_one_if_it_asks_again(
    txns: Transacting,
) -> None:
    producer_id, epoch = txns.begin()
    for _ in range(2):
        answer = txns.init(producer_id=producer_id, producer_epoch=epoch)
        assert (answer.error_code, answer.producer_epoch) == (0, epoch + 1)
    txns.begin()
    for version, code in ((3, ErrorCode.INVALID_PRODUCER_EPOCH), (5, ErrorCode.PRODUCER_FENCED)):
        answer = txns.init(producer_id=producer_id, producer_epoch=epoch, version=version)
        assert answer.error_code == code
    answer = txns.init(producer_id=producer_id + 1, producer_epoch=epoch)
    assert answer.error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_producer_whose_transaction_was_aborted_by_time_can_go_on(txns: Transacting, version: int) -> None:
    producer = txns.begin()
    if version == OLD:
        assert txns.add(producer) == [0]
    assert txns.produce(producer, version=11 if version == OLD else 12) == 0
    txns.runtime.advance(2 * TIMEOUT_MS)
    assert txns.outcome() == "aborted"
    for _ in range(2):
        answer = txns.init(producer_id=producer[0], producer_epoch=producer[1])
        assert (answer.error_code, answer.producer_id) == (0, producer[0])
        assert answer.producer_epoch == producer[1] + 1
    assert txns.add((producer[0], answer.producer_epoch)) == [0]


def test_a_producer_that_recovers_with_the_last_epoch_gets_a_new_id(txns: Transacting) -> None:
    producer = _at_epoch(txns, MAX_EPOCH - 1)
    assert txns.add(producer) == [0]
    expected: dict[str, Any] = {"producer_id": producer[0], "producer_epoch": producer[1]}
    assert txns.init(**expected).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    answers = [txns.init(**expected) for _ in range(3)]
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(0, 0)}
    assert len({answer.producer_id for answer in answers} - {producer[0]}) == 1
    assert txns.add((answers[0].producer_id, 0)) == [0]


@pytest.mark.parametrize(("timeout_ms", "fine"), [(0, False), (-1, False), (900_000, True), (900_001, False)])
def test_a_timeout_must_be_one_that_the_broker_allows(txns: Transacting, timeout_ms: int, fine: bool) -> None:
    code = txns.init(transaction_timeout_ms=timeout_ms).error_code
    assert code == (0 if fine else ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def _change(txns: Transacting, change: Callable[[Transaction], Transaction]) -> Transaction:
    """The transaction is another from now on, without anything that would come of it."""
    done: list[Any] = []

    def command(state: Any, now_ms: int) -> Any:
        changed = change(state.transactions[ID])
        return CommandResult(changed, [TransactionRecord(ID, changed)])

    txns.services.transactions.run(ID, command, lambda response, error: done.append(error or response))
    txns.runtime.run_pending()
    (changed,) = done
    assert isinstance(changed, Transaction)
    return changed


def _at_epoch(txns: Transacting, epoch: int) -> tuple[int, int]:
    """A producer that has come far."""
    producer_id, _ = txns.begin()
    _change(txns, lambda txn: txn._replace(producer_epoch=epoch))
    return producer_id, epoch


def test_an_id_whose_epochs_are_used_up_gets_a_new_one(txns: Transacting) -> None:
    old = _at_epoch(txns, MAX_EPOCH - 1)
    answer = txns.init()
    assert answer.producer_id != old[0]
    assert answer.producer_epoch == 0


def test_an_end_with_the_last_epoch_gives_the_producer_a_new_id(txns: Transacting) -> None:
    producer = _at_epoch(txns, MAX_EPOCH - 1)
    assert txns.produce(producer, version=12) == 0
    answers = [txns.end(producer, version=NEW) for _ in range(2)]
    for answer in answers:
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        assert answer.producer_id != producer[0]
    assert answers[0].producer_id == answers[1].producer_id
    assert txns.outcome() == "committed"


# -- partitions and ends


@pytest.mark.parametrize(("commit", "outcome"), [(True, "committed"), (False, "aborted")])
def test_a_transaction_ends_in_all_its_partitions(txns: Transacting, commit: bool, outcome: str) -> None:
    producer = txns.begin()
    assert txns.add(producer, (0, 1)) == [0, 0]
    for partition in (0, 1):
        assert txns.produce(producer, partition) == 0
        assert txns.outcome(partition) == "open"
    assert txns.end(producer, commit=commit).error_code == 0
    assert [txns.outcome(partition) for partition in (0, 1)] == [outcome, outcome]
    assert txns.end(producer, commit=commit).error_code == 0  # once more
    assert txns.end(producer, commit=not commit).error_code == ErrorCode.INVALID_TXN_STATE


def test_a_partition_that_is_not_there_spoils_the_whole_request(txns: Transacting) -> None:
    producer = txns.begin()
    codes = txns.add(producer, (0, 7))
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert txns.transactions()[ID].status is Status.EMPTY


def test_nothing_can_be_ended_that_has_not_begun(txns: Transacting) -> None:
    assert txns.end((5, 0)).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer = txns.begin()
    for commit in (True, False):
        assert txns.end(producer, commit=commit).error_code == ErrorCode.INVALID_TXN_STATE
    assert txns.end(producer, version=NEW).error_code == ErrorCode.INVALID_TXN_STATE


def test_with_version_2_an_end_brings_a_new_epoch(txns: Transacting) -> None:
    producer = txns.begin()
    assert txns.produce(producer, version=12) == 0
    for _ in range(2):  # the second time is the same request again
        answer = txns.end(producer, version=NEW)
        assert (answer.error_code, answer.producer_id) == (0, producer[0])
        assert answer.producer_epoch == producer[1] + 1
    assert txns.end(producer, version=NEW, commit=False).error_code == ErrorCode.INVALID_TXN_STATE
    assert txns.produce(producer, sequence=1, version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
    next_producer = (producer[0], answer.producer_epoch)
    assert txns.produce(next_producer, version=12) == 0
    assert txns.outcome() == "open"
    assert txns.end(next_producer, version=NEW, commit=False).producer_epoch == producer[1] + 2
    assert txns.outcome() == "aborted"


def _prepared(txn: Transaction, producer: Expected, fresh_id: int) -> Transaction:
    prepared = ended(
        txn, producer, commit=True, client_version=EPOCH_BUMP, fresh_id=fresh_id, now_ms=txn.updated_ms
    )
    assert prepared is not None
    return prepared


@pytest.mark.parametrize("epoch", [7, MAX_EPOCH - 1])
def test_while_markers_are_written_a_producer_is_told_to_come_again_and_not_that_it_is_fenced(
    txns: Transacting, epoch: int
) -> None:
    """As when they go to other brokers: the producer has its new epoch before they are there."""
    old = Expected(*_at_epoch(txns, epoch))
    assert txns.produce(old, version=12) == 0
    fresh_id = old.producer_id + 1000
    prepared = _change(txns, lambda txn: _prepared(txn, old, fresh_id))
    after = completed(prepared, prepared.updated_ms)
    new = (after.producer_id, after.producer_epoch)
    assert new == ((old.producer_id, 8) if epoch == 7 else (fresh_id, 0))

    again = ErrorCode.CONCURRENT_TRANSACTIONS
    assert txns.end(new, commit=False, version=NEW).error_code == again
    assert txns.end(old, commit=True, version=NEW).error_code == again
    assert txns.add(new) == [again]
    assert txns.produce(new, partition=1, version=12) == again
    assert txns.init(producer_id=new[0], producer_epoch=new[1]).error_code == again
    txns.crash()  # the markers are written when it is loaded
    answer = txns.end(new, commit=False, version=NEW)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, new[0], new[1] + 1)
    assert txns.outcome() == "committed"


@pytest.mark.parametrize("commit", [True, False])
def test_without_version_2_an_end_before_the_last_one_is_done_is_to_come_again(
    txns: Transacting, commit: bool
) -> None:
    producer = txns.begin()
    assert txns.add(producer) == [0]
    _change(txns, lambda txn: txn._replace(status=Status.PREPARE_COMMIT))
    assert txns.end(producer, commit=commit).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert txns.end((producer[0], producer[1] + 1)).error_code == ErrorCode.PRODUCER_FENCED


def test_with_version_2_an_abort_of_nothing_brings_a_new_epoch_too(txns: Transacting) -> None:
    producer = txns.begin()
    answer = txns.end(producer, version=NEW, commit=False)
    assert (answer.error_code, answer.producer_epoch) == (0, producer[1] + 1)


# -- what may be written


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE), (12, ErrorCode.NONE)],
)
def test_records_of_a_transaction_go_to_its_partitions_only(
    txns: Transacting, version: int, code: ErrorCode
) -> None:
    producer = txns.begin()
    assert txns.add(producer, (1,)) == [0]
    assert txns.produce(producer, 0, version=version) == code
    assert txns.produce(producer, 1, version=version) == 0
    assert txns.produce(producer, 1, sequence=1, version=version) == 0


def test_nothing_can_be_written_after_the_end(txns: Transacting) -> None:
    producer = txns.begin()
    assert txns.add(producer) == [0]
    assert txns.produce(producer) == 0
    txns.end(producer)
    assert txns.produce(producer, sequence=1) == ErrorCode.TRANSACTION_ABORTABLE
    assert not txns.has_open()


def test_records_in_a_stream_that_is_flushed_each_time_are_verified_too(data: str) -> None:
    world = Transacting(f"{data}/flushed", log_flush_interval_messages="1")
    producer = world.begin()
    assert world.add(producer) == [0]
    assert [world.produce(producer, sequence=at) for at in range(3)] == [0, 0, 0]
    assert world.end(producer).error_code == 0
    assert world.outcome() == "committed"
    assert world.produce(producer, sequence=3) == ErrorCode.TRANSACTION_ABORTABLE
    world.close()


@pytest.mark.parametrize("settings", [{}, {"log_flush_interval_messages": "1"}])
@pytest.mark.parametrize("version", [11, 12])
def test_batches_that_follow_each_other_before_the_first_is_verified_all_get_in(
    data: str, version: int, settings: dict[str, Any]
) -> None:
    world = Transacting(f"{data}/queued", queued=True, **settings)
    producer = world.begin()
    if version == 11:
        assert world.add(producer) == [0]
    answers: list[Any] = []
    for sequence in range(5):
        world.call(world.records(producer, 0, sequence), version, answers)
    world.runtime.run_pending()
    assert [world.produced(answer) for answer in answers] == [0] * 5
    world.close()


class _Elsewhere:
    """A coordinator on another broker, which answers when it is told to."""

    def __init__(self, world: Transacting) -> None:
        self._world = world
        self._held: list[Callable[[], None]] = []
        services = world.services
        services.verifier = Verifier(services.transactions, world.replicas, self, services.node_id + 1)

    def send(self, node_id: int, version: int, request: Any, done: Callable[[Any], None]) -> None:
        self._held.append(lambda: done(self._world.ask(request, version)))

    def answer(self) -> None:
        self._held.pop(0)()
        self._world.runtime.run_pending()


def test_a_batch_does_not_overtake_one_whose_answer_is_still_on_its_way(txns: Transacting) -> None:
    producer = txns.begin()
    coordinator = _Elsewhere(txns)
    answers: list[Any] = []
    for sequence in (0, 1):
        txns.call(txns.records(producer, 0, sequence), 12, answers)
    coordinator.answer()
    assert [txns.produced(answer) for answer in answers] == [0]
    txns.call(txns.records(producer, 0, 2), 12, answers)  # now that the partition is known to be part of it
    assert len(answers) == 1
    coordinator.answer()
    assert [txns.produced(answer) for answer in answers] == [0] * 3


def test_a_batch_does_not_overtake_one_that_was_refused(data: str) -> None:
    world = Transacting(f"{data}/queued", queued=True)
    producer = world.begin()
    early = world.records(producer, 0, 0)
    broken = bytearray(early.topic_data[0].partition_data[0].records or b"")
    broken[-1] ^= 1
    early.topic_data[0].partition_data[0].records = memoryview(bytes(broken))
    answers: list[Any] = []
    for request in (early, world.records(producer, 0, 1)):
        world.call(request, 12, answers)
    world.runtime.run_pending()
    codes = [world.produced(answer) for answer in answers]
    assert codes == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    world.close()


def test_without_verification_new_clients_partitions_are_part_of_their_transactions_all_the_same(
    data: str,
) -> None:
    world = Transacting(f"{data}/trusting", transaction_partition_verification_enable="false")
    producer = world.begin()
    assert world.produce(producer, 0, version=12) == 0
    assert world.commit_offset(producer, 7, NEW) == 0
    assert world.produce(producer, 1, version=11) == 0  # which nobody will ever end
    producer = (producer[0], world.end(producer, version=NEW).producer_epoch)
    assert [world.outcome(partition) for partition in (0, 1)] == ["committed", "open"]
    assert world.committed_offset() == 7
    world.close()


# -- offsets


@pytest.mark.parametrize(("commit", "offset"), [(True, 7), (False, -1)])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_offsets_count_when_their_transaction_does(
    txns: Transacting, commit: bool, offset: int, version: int
) -> None:
    producer = txns.begin()
    if version == OLD:
        assert txns.commit_offset(producer, 7, version) == ErrorCode.TRANSACTION_ABORTABLE
        assert txns.add_offsets(producer) == 0
    assert txns.commit_offset(producer, 7, version) == 0
    assert txns.end(producer, commit=commit, version=version).error_code == 0
    assert txns.committed_offset() == offset


# -- time


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(txns: Transacting) -> None:
    producer = txns.begin()
    assert txns.add(producer) == [0]
    assert txns.produce(producer) == 0
    txns.runtime.advance(TIMEOUT_MS)
    assert txns.outcome() == "open"
    txns.runtime.advance(10_001)
    assert txns.outcome() == "aborted"
    assert txns.end(producer).error_code == ErrorCode.PRODUCER_FENCED
    assert txns.transactions()[ID].status is Status.COMPLETE_ABORT


def test_an_id_that_nobody_uses_is_forgotten_but_not_while_its_transaction_is_open(data: str) -> None:
    slow: dict[str, Any] = {
        "transaction_max_timeout_ms": str(20 * DAY_MS),
        "transactional_id_expiration_ms": str(DAY_MS),
    }
    world = Transacting(f"{data}/slow", **slow)
    world.begin("idle")
    assert world.init(transaction_timeout_ms=10 * DAY_MS).error_code == 0
    txn = world.transactions()[ID]
    assert world.add((txn.producer_id, txn.producer_epoch)) == [0]
    world.runtime.advance(DAY_MS + 2 * 60 * MINUTE_MS)
    assert set(world.transactions()) == {ID}
    world.crash()
    assert set(world.transactions()) == {ID}
    world.close()


def test_partitions_of_deleted_topics_do_not_keep_a_transaction_from_ending(txns: Transacting) -> None:
    producer = txns.begin()
    assert txns.add(producer) == [0]
    txns.change(lambda image: controller.delete_topics(image, [controller.DoomedTopic("t")], txns.config))
    assert "t" not in txns.metadata.image.topics
    assert txns.end(producer).error_code == 0
    assert txns.transactions()[ID].status is Status.COMPLETE_COMMIT


# -- markers of others, and what can be seen


def _marker(txns: Transacting, producer: tuple[int, int], coordinator_epoch: int) -> list[int]:
    topics = [
        WritableTxnMarkerTopic(name="t", partition_indexes=[0]),
        WritableTxnMarkerTopic(name="no", partition_indexes=[0]),
    ]
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=False,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
    )
    (result,) = txns.ask(WriteTxnMarkersRequest(markers=[marker]), 1).markers
    return [topic.partitions[0].error_code for topic in result.topics]


def test_another_brokers_markers_are_written_unless_they_are_out_of_date(txns: Transacting) -> None:
    producer = txns.begin()
    assert txns.add(producer) == [0]
    assert txns.produce(producer) == 0
    assert _marker(txns, (producer[0], -1), 5)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert _marker(txns, producer, 5) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert txns.outcome() == "aborted"
    assert _marker(txns, producer, 4)[0] == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_transactions_are_described_and_listed(txns: Transacting) -> None:
    producer = txns.begin()
    txns.begin("idle")
    assert txns.add(producer, (0, 1)) == [0, 0]
    answer = txns.ask(DescribeTransactionsRequest(transactional_ids=[ID, "no", ""]))
    found, missing, empty = answer.transaction_states
    assert (found.transaction_state, found.producer_id, found.transaction_timeout_ms) == (
        "Ongoing",
        producer[0],
        TIMEOUT_MS,
    )
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0, 1])]
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST

    def listed(**fields: Any) -> set[str]:
        answer = txns.ask(ListTransactionsRequest(**fields))
        return {state.transactional_id for state in answer.transaction_states}

    assert listed() == {ID, "idle"}
    assert listed(state_filters=["Ongoing"]) == {ID}
    assert listed(state_filters=["Nothing"]) == set()
    assert listed(producer_id_filters=[producer[0]]) == {ID}
    assert listed(duration_filter=1000, state_filters=["Ongoing"]) == set()
    txns.runtime.advance(2000)
    assert listed(duration_filter=1000, state_filters=["Ongoing"]) == {ID}
    assert txns.ask(ListTransactionsRequest(state_filters=["x"])).unknown_state_filters == ["x"]
    assert listed(transactional_id_pattern="i.*|nothing") == {"idle"}
    assert listed(transactional_id_pattern="dle") == set()
    assert listed(transactional_id_pattern=".*", state_filters=["Ongoing"]) == {ID}
    assert listed(transactional_id_pattern="") == {ID, "idle"}
    refused = txns.ask(ListTransactionsRequest(transactional_id_pattern="*", state_filters=["x"]))
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.unknown_state_filters == []


def test_the_producers_of_a_partition_are_described(txns: Transacting) -> None:
    producer = txns.begin()
    assert txns.add(producer) == [0]
    assert txns.produce(producer) == 0
    topics = [
        TopicRequest(name="t", partition_indexes=[0, 9]),
        TopicRequest(name="no", partition_indexes=[0]),
    ]
    answer = txns.ask(DescribeProducersRequest(topics=topics))
    (here, beyond), (nowhere,) = (topic.partitions for topic in answer.topics)
    (found,) = here.active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (*producer, 0)
    assert found.current_txn_start_offset == 0
    assert beyond.error_code == nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- crashes


class KilledError(BaseException):
    """The broker dies here."""


def _kill_at(world: Transacting, number: int) -> None:
    """Let the broker die before its n-th append."""
    append, left = world.replicas.append, number

    def dying(**fields: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError
        return append(**fields)

    world.replicas.append = dying


def _transfer(world: Transacting, version: int, commit: bool, answers: list[int]) -> None:
    """One read-process-write; what was answered is kept."""
    producer = world.begin()
    if version == OLD:
        answers += world.add(producer, (0, 1))
        answers.append(world.add_offsets(producer))
    answers.append(world.produce(producer, 0, version=11 if version == OLD else 12))
    answers.append(world.produce(producer, 1, version=11 if version == OLD else 12))
    answers.append(world.commit_offset(producer, 3, version))
    answers.append(world.end(producer, commit=commit, version=version).error_code)
    answers.append(-1)  # it knows


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_wherever_the_broker_dies_a_transaction_is_all_or_nothing(
    data: str, version: int, commit: bool
) -> None:
    outcomes = set()
    for number in range(40):
        world = Transacting(f"{data}/{number}")
        _kill_at(world, number)
        answers: list[int] = []
        try:
            _transfer(world, version, commit, answers)
            is_killed = False
        except KilledError:
            is_killed = True
        world.crash()
        world.runtime.advance(2 * TIMEOUT_MS)
        assert not world.has_open()
        seen = {world.outcome(0), world.outcome(1)} - {"nothing"}
        assert len(seen) <= 1
        assert (world.committed_offset() == 3) == (seen == {"committed"})
        assert not seen or commit or seen == {"aborted"}
        if answers[-1:] == [-1]:
            assert set(answers[:-1]) == {0}
            assert seen == {"committed" if commit else "aborted"}
        outcomes |= seen
        assert all(txn.status is not Status.ONGOING for txn in world.transactions().values())
        assert world.services.transactions.markers.under_way == 0
        world.begin()
        world.close()
        if not is_killed:
            break
    assert number >= 8  # so many appends there are at least
    assert outcomes == ({"committed", "aborted"} if commit else {"aborted"})


STEPS = st.sampled_from(
    ["init", "recover", "add", "produce", "commit", "abort", "wait", "long wait", "old end"]
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=25), st.sampled_from([OLD, NEW]))
def test_what_is_read_after_a_crash_is_what_was_known_before(
    data: str, steps: list[str], version: int
) -> None:
    world = Transacting(tempfile.mkdtemp(dir=data))
    producer, sequences = world.begin(), {0: 0, 1: 0}

    def end(commit: bool, version: int) -> None:
        nonlocal producer
        answer = world.end(producer, commit=commit, version=version)
        if answer.error_code == 0 and version == NEW:
            producer = (answer.producer_id, answer.producer_epoch)
            sequences.update({0: 0, 1: 0})

    def renew() -> None:
        nonlocal producer
        producer = world.begin()
        sequences.update({0: 0, 1: 0})

    def recover() -> None:
        nonlocal producer
        answer = world.init(producer_id=producer[0], producer_epoch=producer[1])
        if answer.error_code == 0:
            producer = (answer.producer_id, answer.producer_epoch)
            sequences.update({0: 0, 1: 0})

    def produce() -> None:
        for partition in (0, 1):
            if world.produce(producer, partition, sequences[partition], 11 if version == OLD else 12) == 0:
                sequences[partition] += 1

    doings: dict[str, Callable[[], object]] = {
        "init": renew,
        "recover": recover,
        "add": lambda: world.add(producer, (0,)),
        "produce": produce,
        "commit": lambda: end(True, version),
        "abort": lambda: end(False, version),
        "old end": lambda: end(True, OLD),
        "wait": lambda: world.runtime.advance(1000),
        "long wait": lambda: world.runtime.advance(2 * TIMEOUT_MS),
    }
    for step in steps:
        doings[step]()
    before = world.transactions()
    assert before[ID].status not in (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)
    assert world.has_open() <= (before[ID].status is Status.ONGOING)
    world.crash()
    assert world.transactions() == before
    world.close()
