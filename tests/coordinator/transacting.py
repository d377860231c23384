"""Short ways to speak of transactions, and a broker to speak with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.internal_topics.transaction_records import Transaction
from ottla.names import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.records import batch
from ottla.records.builder import build_batch
from ottla.storage.fs import FileSystem
from tests.api.world import World

ID = "payments"
GROUP = "g"
TIMEOUT_MS = 60_000
OLD, NEW = 4, 5  # EndTxn: without and with a new epoch


class Transacting(World):
    """A broker with a topic `t` of two partitions, and one producer's view of it."""

    def __init__(
        self,
        data: str,
        *,
        queued: bool = False,
        fs: FileSystem | None = None,
        store_path: str | None = None,
        **settings: str,
    ) -> None:
        few = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "2"}
        small = {"log_index_size_max_bytes": "4096", **few, **settings}
        super().__init__(data, queued=queued, fs=fs, store_path=store_path, **small)
        if "t" not in self.image.topics:
            self.make_topic("t", 2)
        for kind in (0, 1):
            self.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[ID]))

    def crash(self) -> None:
        """Nothing in memory is left: not even what was to come."""
        self.runtime.forget_pending()
        self.restart()

    # -- requests

    def init(self, transactional_id: str = ID, version: int = 5, **fields: Any) -> Any:
        fields.setdefault("transaction_timeout_ms", TIMEOUT_MS)
        return self.ask(InitProducerIdRequest(transactional_id=transactional_id, **fields), version)

    def begin(self, transactional_id: str = ID) -> tuple[int, int]:
        """A producer's id and epoch; asked for again while an earlier transaction is being ended."""
        answer = self.init(transactional_id)
        if answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            answer = self.init(transactional_id)
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    def add(
        self,
        producer: tuple[int, int],
        partitions: Iterable[int] = (0,),
        topic: str = "t",
        version: int = 3,
        name: str = ID,
    ) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        (found,) = self.ask(request, version).results_by_topic_v3_and_below
        return [entry.partition_error_code for entry in found.results_by_partition]

    def produce(
        self,
        producer: tuple[int, int],
        partition: int = 0,
        sequence: int = 0,
        version: int = 11,
        **more: Any,
    ) -> int:
        answer = self.ask(self.records(producer, partition, sequence, **more), version)
        return self.produced(answer)

    @staticmethod
    def produced(answer: Any) -> int:
        """The code for the one partition of a produce request."""
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    def records(
        self,
        producer: tuple[int, int],
        partition: int,
        sequence: int,
        name: str = ID,
        value: bytes = b"v",
    ) -> ProduceRequest:
        data = build_batch(
            [(self.runtime.now_ms(), b"k", value, ())],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        topic = TopicProduceData(
            name="t", partition_data=[PartitionProduceData(index=partition, records=memoryview(bytes(data)))]
        )
        return ProduceRequest(transactional_id=name, acks=-1, topic_data=[topic])

    def add_offsets(
        self, producer: tuple[int, int], group: str = GROUP, version: int = 4, name: str = ID
    ) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], group_id=group
        )
        code: int = self.ask(request, version).error_code
        return code

    def commit_offset(
        self,
        producer: tuple[int, int],
        offset: int,
        version: int = 4,
        name: str = ID,
        group: str = GROUP,
    ) -> int:
        entry = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=group,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[entry])],
        )
        code: int = self.ask(request, version).topics[0].partitions[0].error_code
        return code

    def end(
        self, producer: tuple[int, int], *, commit: bool = True, version: int = OLD, name: str = ID
    ) -> Any:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        return self.ask(request, version)

    # -- what is there

    def fetched(self, partition: int = 0) -> Any:
        """Partition of `t`, as a read_committed consumer gets it."""
        entry = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic="t", partitions=[entry])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=1, topics=[topic])
        return self.ask(request, 12).responses[0].partitions[0]

    def outcome(self, partition: int = 0) -> str:
        """What became of the one transaction in a partition."""
        found = self.fetched(partition)
        data = bytes(found.records or b"")
        if found.high_watermark == 0 or (data and data[batch.ATTRIBUTES_AT + 1] & batch.CONTROL):
            return "nothing"  # but perhaps a marker
        if found.last_stable_offset < found.high_watermark:
            return "open"
        return "aborted" if found.aborted_transactions else "committed"

    def committed_offset(self, group: str = GROUP) -> int:
        topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])], require_stable=True
        )
        entry = self.ask(request, 9).groups[0].topics[0].partitions[0]
        assert entry.error_code == 0, entry
        offset: int = entry.committed_offset
        return offset

    def transactions(self) -> dict[str, Transaction]:
        """All that is written down, by transactional id."""
        return {
            name: txn._replace(last_producer_epoch=-1)
            for state in self.services.transactions.states()
            for name, txn in state.transactions.items()
        }

    def has_open(self) -> bool:
        partitions = [self.replicas.partition(TopicPartition("t", index)) for index in (0, 1)]
        logs = [entry.log for entry in partitions if entry is not None and entry.log is not None]
        assert len(logs) == len(partitions)
        return any(log.producers.has_open_transactions for log in logs)
