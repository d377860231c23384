"""Transactions from their beginning to their end, and all that can be wrong on the way."""

from __future__ import annotations

from typing import Any

from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.conversation.say import NEWEST_FETCH_BY_NAME, fetch, list_offsets, produce, records
from tests.conversation.talk import Talk, versions

INIT, ADD, END, COMMIT = 5, 3, 4, 4  # the newest that clients without KIP-890 use
OFFSET_FETCH = 9
READ_COMMITTED = 1
PATTERNS_SINCE = 2  # ListTransactions
GROUP, TRANSACTION = 0, 1
LATEST = -1


def script(talk: Talk) -> None:
    for kind in (GROUP, TRANSACTION):
        request = FindCoordinatorRequest(key="x", key_type=kind)
        talk.until(1, request, lambda answer: answer.error_code == 0)
    talk.topic("txn", 2)
    for version in versions(InitProducerIdRequest.API_KEY):
        _init(talk, version)
    for version in versions(AddPartitionsToTxnRequest.API_KEY):
        _add(talk, version)
    for version in versions(EndTxnRequest.API_KEY):
        _end(talk, version)
    for version in versions(AddOffsetsToTxnRequest.API_KEY):
        _add_offsets(talk, version)
    for version in versions(TxnOffsetCommitRequest.API_KEY):
        _commit_offsets(talk, version)
    for version in (3, 10, 11, 12):
        _produce(talk, version)
    for version in versions(WriteTxnMarkersRequest.API_KEY):
        _markers(talk, version)
    _describe(talk)


class _Producer:
    """One transactional id, and who it is now."""

    def __init__(self, talk: Talk, name: str) -> None:
        self.talk = talk
        self.name = name
        self.init()

    def init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        response = self.talk.until(INIT, request, lambda answer: answer.error_code == 0)
        self.talk.normal.message(response, INIT)
        self.id, self.epoch = response.producer_id, response.producer_epoch

    @property
    def fields(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    def added(self, *partitions: int, topic: str = "txn", **other: Any) -> AddPartitionsToTxnRequest:
        """For versions before 4."""
        fields = {**self.fields, **other}
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=fields["transactional_id"],
            v3_and_below_producer_id=fields["producer_id"],
            v3_and_below_producer_epoch=fields["producer_epoch"],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def batched(
        self, *partitions: int, verify_only: bool = False, topic: str = "txn", **other: Any
    ) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            **{**self.fields, **other},
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def ended(self, commit: bool, **other: Any) -> EndTxnRequest:
        return EndTxnRequest(**{**self.fields, **other}, committed=commit)

    def begin(self, *partitions: int) -> None:
        """Kafka may still be writing the markers of the transaction before."""
        self.talk.until(
            ADD,
            self.added(*partitions),
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
            ),
        )

    def settle(self) -> None:
        """Wait until no markers are on their way."""
        self.talk.until(
            0,
            DescribeTransactionsRequest(transactional_ids=[self.name]),
            lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
        )

    def data(self, sequence: int, *values: bytes) -> bytes:
        return records(
            *values,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )


def _init(talk: Talk, version: int) -> None:
    name = f"init-{version}"

    def ask(step: str, transactional_id: str = name, **fields: Any) -> Any:
        request = InitProducerIdRequest(
            **{"transactional_id": transactional_id, "transaction_timeout_ms": 60_000, **fields}
        )
        return talk.ask(step, version, request)

    first = ask("a transactional id")
    ask("the same")
    ask("a timeout of 0", transaction_timeout_ms=0)
    ask("a negative timeout", transaction_timeout_ms=-1)
    ask("the longest timeout", transaction_timeout_ms=900_000)
    ask("a longer timeout", transaction_timeout_ms=900_001)
    if version >= 3:
        known = {"producer_id": first.producer_id, "producer_epoch": 2}
        ask("its id and epoch", **known)
        ask("its id and epoch again", **known)
        ask("an epoch of before", **{**known, "producer_epoch": 0})
        ask("an epoch to come", **{**known, "producer_epoch": 9})
        ask("another id", producer_id=123_456, producer_epoch=0)
        ask("an id for a name that is new", f"{name}-new", producer_id=123_456, producer_epoch=7)
    producer = _Producer(talk, f"{name}-open")
    producer.begin(0)
    ask("while a transaction is open", producer.name)
    producer.settle()
    ask("after it was aborted", producer.name)
    if version >= 3:
        _recover(producer, ask)


def _recover(producer: _Producer, ask: Any) -> None:
    """A producer whose transaction is open asks for its next epoch."""
    producer.init()
    producer.begin(0)
    name, known = producer.name, {"producer_id": producer.id, "producer_epoch": producer.epoch}
    ask("another id while a transaction is open", name, producer_id=123_456, producer_epoch=0)
    ask("an epoch of before while a transaction is open", name, **{**known, "producer_epoch": 0})
    producer.settle()
    ask("its epoch after that", name, **known)
    producer.init()
    producer.begin(0)
    known["producer_epoch"] = producer.epoch
    ask("its epoch while a transaction is open", name, **known)
    producer.settle()
    ask("its epoch after the abort", name, **known)
    ask("its epoch after the abort again", name, **known)


def _add(talk: Talk, version: int) -> None:
    producer = _Producer(talk, f"add-{version}")
    if version >= 4:
        _add_many(talk, version, producer)
        return

    def ask(step: str, *partitions: int, **other: Any) -> None:
        talk.ask(step, version, producer.added(*partitions, **other))

    ask("a partition", 0)
    ask("the same", 0)
    ask("another", 1)
    ask("no partition")
    ask("one that is not there", 0, 7)
    ask("a topic that is not there", 0, topic="no-topic")
    ask("an internal topic", 0, topic="__consumer_offsets")
    ask("another id", 0, producer_id=123_456)
    ask("an older epoch", 0, producer_epoch=producer.epoch - 1)
    ask("a newer epoch", 0, producer_epoch=producer.epoch + 1)
    ask("a name that is not known", 0, transactional_id="nobody")
    ask("no name", 0, transactional_id="")
    ask("a partition twice", 0, 0)
    ask("a negative partition", -1)
    talk.request(END, producer.ended(True))
    producer.settle()
    ask("a partition of the next transaction", 1)
    talk.request(END, producer.ended(False))


def _add_many(talk: Talk, version: int, producer: _Producer) -> None:
    def ask(step: str, *wanted: AddPartitionsToTxnTransaction) -> None:
        talk.ask(step, version, AddPartitionsToTxnRequest(transactions=list(wanted)))

    ask("nothing")
    ask("to verify before it begins", producer.batched(0, verify_only=True))
    ask("a partition", producer.batched(0))
    ask("to verify", producer.batched(0, verify_only=True))
    ask("to verify another", producer.batched(0, 1, verify_only=True))
    ask("to verify with an older epoch", producer.batched(0, verify_only=True, producer_epoch=-1))
    ask(
        "to verify a name that is not known", producer.batched(0, verify_only=True, transactional_id="nobody")
    )
    other = _Producer(talk, f"add-{version}-other")
    ask("two", producer.batched(1), other.batched(0))
    ask("one that is not there", producer.batched(7))
    ask("a newer epoch", producer.batched(0, producer_epoch=producer.epoch + 1))
    ask("no name", producer.batched(0, transactional_id=""))
    ask("an internal topic", producer.batched(0, topic="__consumer_offsets"))
    ask("a topic that is not there", producer.batched(0, topic="no-topic"))
    ask("to verify a topic that is not there", producer.batched(0, topic="no-topic", verify_only=True))
    ask("another id", producer.batched(0, producer_id=123_456))
    ask("no partition", producer.batched())
    ask("one to verify and one to add", producer.batched(0, verify_only=True), other.batched(1))
    ask("one that is good and one that is not", producer.batched(1), other.batched(0, producer_epoch=9))
    for one in (producer, other):
        talk.request(END, one.ended(False))
        one.settle()
    ask("to verify after the end", producer.batched(0, verify_only=True))


def _end(talk: Talk, version: int) -> None:
    producer = _Producer(talk, f"end-{version}")
    bumps = version >= 5

    def ask(step: str, commit: bool, **other: Any) -> Any:
        answer = talk.ask(step, version, producer.ended(commit, **other))
        producer.settle()
        return answer

    def begin() -> None:
        if bumps:
            producer.init()
        producer.begin(0, 1)

    ask("commit what has not begun", True)
    if not bumps:
        ask("abort what has not begun", False)
    begin()
    ask("commit with an older epoch", True, producer_epoch=producer.epoch - 1)
    ask("commit with a newer epoch", True, producer_epoch=producer.epoch + 1)
    ask("commit with another id", True, producer_id=123_456)
    ask("commit under an unknown name", True, transactional_id="nobody")
    ask("commit without a name", True, transactional_id="")
    ask("commit", True)
    ask("commit again", True)
    ask("abort what is committed", False)
    begin()
    ask("abort", False)
    ask("abort again", False)
    ask("commit what is aborted", True)
    if bumps:
        producer.init()
        answer = ask("abort what has not begun", False)
        producer.epoch = answer.producer_epoch
        ask("abort nothing once more", False)


def _add_offsets(talk: Talk, version: int) -> None:
    producer = _Producer(talk, f"add-offsets-{version}")

    def ask(step: str, **other: Any) -> None:
        fields = {**producer.fields, "group_id": "txn-group", **other}
        talk.ask(step, version, AddOffsetsToTxnRequest(**fields))

    ask("a group")
    ask("the same")
    ask("an older epoch", producer_epoch=-1)
    ask("another id", producer_id=123_456)
    ask("no name", transactional_id="")
    ask("an unknown name", transactional_id="nobody")
    ask("no group", group_id="")
    talk.request(END, producer.ended(True))


def _commit_offsets(talk: Talk, version: int) -> None:
    producer = _Producer(talk, f"commit-{version}")

    def ask(step: str, topic: str = "txn", partition: int = 0, **other: Any) -> None:
        entry = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=5, committed_metadata="m"
        )
        fields = {
            **producer.fields,
            "group_id": f"txn-group-{version}",
            "topics": [TxnOffsetCommitRequestTopic(name=topic, partitions=[entry])],
            **other,
        }
        talk.ask(step, version, TxnOffsetCommitRequest(**fields))

    if version < 5:
        ask("before the group is part of it")
        request = AddOffsetsToTxnRequest(**producer.fields, group_id=f"txn-group-{version}")
        talk.request(4, request)
    ask("an offset")
    ask("the offset again")
    ask("a topic that is not there", topic="no-topic")
    ask("a partition that is not there", partition=7)
    ask("an older epoch", producer_epoch=-1)
    ask("another id", producer_id=123_456)
    ask("an unknown name", transactional_id="nobody")
    ask("no group", group_id="")
    ask("no topics", topics=[])
    if version >= 3:
        ask("a generation that is not there", generation_id=7, member_id="m")
        ask("a member that is not there", member_id="m")
        ask("an instance that is not there", generation_id=1, member_id="m", group_instance_id="i")
    ask("metadata that is too long", topics=_offsets(0, "x" * 5000))
    ask("a negative offset", topics=_offsets(-5, "m"))
    _fetch_offsets(talk, version, "before the end")
    talk.request(5 if version == 5 else END, producer.ended(False))
    producer.settle()
    _fetch_offsets(talk, version, "after an abort")
    ask("after the end")
    producer.init()
    if version < 5:
        talk.request(4, AddOffsetsToTxnRequest(**producer.fields, group_id=f"txn-group-{version}"))
    ask("an offset of the next transaction")
    talk.request(5 if version == 5 else END, producer.ended(True))
    producer.settle()
    _fetch_offsets(talk, version, "after a commit")


def _offsets(offset: int, metadata: str) -> list[TxnOffsetCommitRequestTopic]:
    entry = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    return [TxnOffsetCommitRequestTopic(name="txn", partitions=[entry])]


def _fetch_offsets(talk: Talk, version: int, when: str) -> None:
    """As a consumer asks that wants what is settled, and as one that takes what there is."""
    topics = [OffsetFetchRequestTopics(name="txn", partition_indexes=[0])]
    group = OffsetFetchRequestGroup(group_id=f"txn-group-{version}", topics=topics)
    for stable in (True, False):
        step = f"{when} of a transaction with v{version}, {'settled' if stable else 'any'}"
        talk.ask(step, OFFSET_FETCH, OffsetFetchRequest(groups=[group], require_stable=stable))


def _produce(talk: Talk, version: int) -> None:
    name = f"txn-produce-{version}"
    talk.topic(name, 2)
    producer = _Producer(talk, name)

    def ask(step: str, data: bytes, partition: int = 0, **other: Any) -> None:
        fields: dict[str, Any] = {"transactional_id": producer.name, **other}
        talk.ask(step, version, produce(name, data, partition=partition, **fields))

    if version < 12:
        ask("before the partition is part of it", producer.data(0, b"a"))
        talk.request(ADD, producer.added(0, topic=name))
    ask("records of a transaction", producer.data(0, b"a", b"b"))
    ask("more of them", producer.data(2, b"c"))
    ask("the same again", producer.data(2, b"c"))
    ask("records outside of it", records(b"x"))
    ask("records of it without a name", producer.data(3, b"d"), transactional_id=None)
    ask("under an unknown name", producer.data(0, b"d"), partition=1, transactional_id="nobody")
    plain = records(b"x", producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=3)
    ask("numbered records outside of it", plain)
    step = f"of an open transaction, v{version}"
    talk.ask(step, NEWEST_FETCH_BY_NAME, fetch(name, isolation_level=READ_COMMITTED))
    talk.ask(step, 6, list_offsets(name, LATEST, isolation=READ_COMMITTED))
    talk.request(END + (version >= 12), producer.ended(False))
    producer.settle()
    step = f"of an aborted transaction, v{version}"
    talk.ask(step, NEWEST_FETCH_BY_NAME, fetch(name, isolation_level=READ_COMMITTED))
    talk.ask(step, 6, list_offsets(name, LATEST, isolation=READ_COMMITTED))
    ask("after the end", producer.data(3, b"e"))
    producer.init()
    talk.request(ADD, producer.added(0, topic=name))
    ask("records of the next", producer.data(0, b"f"))
    talk.request(END, producer.ended(True))
    producer.settle()
    step = f"of a committed transaction, v{version}"
    talk.ask(step, NEWEST_FETCH_BY_NAME, fetch(name, isolation_level=READ_COMMITTED))


def _markers(talk: Talk, version: int) -> None:
    name = f"txn-markers-{version}"
    talk.topic(name)
    producer = _Producer(talk, name)
    producer.init()
    talk.request(ADD, producer.added(0, topic=name))
    talk.request(11, produce(name, producer.data(0, b"a"), transactional_id=producer.name))

    def ask(step: str, coordinator_epoch: int, topic: str = name, **other: Any) -> None:
        fields: dict[str, Any] = {
            "producer_id": producer.id,
            "producer_epoch": producer.epoch,
            "transaction_result": False,
            "coordinator_epoch": coordinator_epoch,
            "topics": [WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
            **other,
        }
        talk.ask(step, version, WriteTxnMarkersRequest(markers=[WritableTxnMarker(**fields)]))

    talk.ask("nothing", version, WriteTxnMarkersRequest())
    ask("a topic that is not there", 5, "no-topic")
    ask("an older epoch", 5, producer_epoch=producer.epoch - 1)
    ask("a marker", 5)
    ask("the marker again", 5)
    ask("an older coordinator", 4)
    ask("a newer epoch", 5, producer_epoch=producer.epoch + 1)
    ask("a producer that was never there", 5, producer_id=123_456, producer_epoch=0)
    ask("a commit where nothing is open", 5, producer_epoch=producer.epoch + 1, transaction_result=True)
    two = [
        WritableTxnMarkerTopic(name=name, partition_indexes=[0, 7]),
        WritableTxnMarkerTopic(name="no-topic", partition_indexes=[0]),
    ]
    ask("two topics", 5, producer_epoch=producer.epoch + 1, topics=two)
    ask("no topics", 5, topics=[])
    talk.ask(f"after markers, v{version}", NEWEST_FETCH_BY_NAME, fetch(name, isolation_level=READ_COMMITTED))
    talk.request(END, producer.ended(False))


def _describe(talk: Talk) -> None:
    talk.topic("txn-described", 2)
    producer = _Producer(talk, "described")
    idle = _Producer(talk, "described-idle")
    talk.request(ADD, producer.added(0, 1, topic="txn-described"))
    data = producer.data(0, b"a", b"b")
    talk.request(11, produce("txn-described", data, transactional_id=producer.name))
    names = [producer.name, idle.name, "nobody", ""]
    talk.ask("transactions", 0, DescribeTransactionsRequest(transactional_ids=names), only=_in_order)
    talk.ask("no transactions", 0, DescribeTransactionsRequest())
    topics = [
        TopicRequest(name="txn-described", partition_indexes=[0, 1, 7]),
        TopicRequest(name="no-topic", partition_indexes=[0]),
    ]
    talk.ask("producers", 0, DescribeProducersRequest(topics=topics))
    talk.ask("producers of nothing", 0, DescribeProducersRequest())
    nothing = [TopicRequest(name="txn-described", partition_indexes=[])]
    talk.ask("producers of no partition", 0, DescribeProducersRequest(topics=nothing))

    def only(response: Any) -> None:
        found = response.transaction_states
        response.transaction_states = [one for one in found if one.transactional_id.startswith("described")]

    for version in versions(ListTransactionsRequest.API_KEY):
        for step, fields in {
            "all": {},
            "open ones": {"state_filters": ["Ongoing"]},
            "a state that is none": {"state_filters": ["Ongoing", "Nothing"]},
            "states that are none": {"state_filters": ["nothing"]},
            "of a producer": {"producer_id_filters": [idle.id]},
            "of a producer that is not there": {"producer_id_filters": [123_456]},
            "open ones of a producer": {
                "state_filters": ["Ongoing", "Empty"],
                "producer_id_filters": [producer.id],
            },
            "others of a producer": {"state_filters": ["Empty"], "producer_id_filters": [producer.id]},
            "a state twice": {"state_filters": ["Ongoing", "Ongoing"]},
        }.items():
            talk.ask(step, version, _listed(fields), only=only)
        if version >= 1:
            talk.ask("old ones", version, _listed({"duration_filter": 3_600_000}), only=only)
            talk.ask("of any age", version, _listed({"duration_filter": -7}), only=only)
            old = {"duration_filter": 3_600_000, "state_filters": ["Ongoing"]}
            talk.ask("old ones that are open", version, _listed(old), only=only)
        if version >= PATTERNS_SINCE:
            for step, pattern in {
                "a pattern": "described-.*",
                "a pattern of one id": "described",
                "a pattern of a part of an id": "idle",
                "a pattern of either": "desc(ribed|ribed-idle)",
                "a pattern with classes": r"[[:alpha:]]+\W\pL{4}",
                "a pattern of no id": "D.*",
                "a pattern of either case": "(?i)DESCRIBED",
                "an empty pattern": "",
                "a pattern that is none": "(described",
                "a pattern that looks back": r"(d)escribe\1",
            }.items():
                talk.ask(step, version, _listed({"transactional_id_pattern": pattern}), only=only)
            both = {"transactional_id_pattern": "described.*", "state_filters": ["Empty", "Nothing"]}
            talk.ask("a pattern and states", version, _listed(both), only=only)
            neither = {"transactional_id_pattern": "*", "state_filters": ["Nothing"]}
            talk.ask("neither a pattern nor a state", version, _listed(neither), only=only)
    talk.request(END, producer.ended(True))
    producer.settle()
    talk.ask("after the end", 0, DescribeTransactionsRequest(transactional_ids=names[:1]))
    talk.ask("producers after the end", 0, DescribeProducersRequest(topics=topics[:1]))
    talk.ask("again", END, producer.ended(True))


def _in_order(response: Any) -> None:
    for transaction in response.transaction_states:
        for topic in transaction.topics:
            topic.partitions.sort()


def _listed(fields: dict[str, Any]) -> Message:
    return ListTransactionsRequest(**fields)
