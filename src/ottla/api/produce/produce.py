"""Produce, v0 to v13: records from a client, appended partition by partition.

The order of the checks is Kafka's: may this client write here, does the partition exist, are the records of a form
that this version may carry, and then the append. Each partition succeeds or fails by itself.

v0 has no throttle time, v2 brings the append time, v3 transactional ids and magic 2 only, v5 the log start offset,
v8 errors by record, v10 the current leader where the client asked the wrong broker, v11 an error after which a
transaction can be aborted, v12 partitions that become part of their transaction by being written to, v13 topic ids.
acks=0 is never answered; if anything failed, the connection is closed so that the client looks for a new leader.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from struct import Struct
from typing import Final

from ottla.api.access import Operation, Resource
from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call
from ottla.api.produce.internal_topics import check_internal
from ottla.api.produce.transactions import check_transaction
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import INTERNAL_TOPICS, ClusterImage
from ottla.names import Bytes, TopicPartition
from ottla.protocol import frame
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.records import batch
from ottla.records.compression.codec import Codec
from ottla.records.legacy.conversion import NO_BATCH, batch_size
from ottla.replica.appends import VALID_ACKS
from ottla.replica.results import AppendResult

_logger = logging.getLogger(__name__)

KEY: Final = ApiKey.PRODUCE
ADMIN_CLIENT_ID: Final = "__admin_client"  # the one client that may write to internal topics

_ONE_BATCH_SINCE: Final = 3
_ZSTD_SINCE: Final = 7
_CURRENT_LEADER_SINCE: Final = 10
_TOPIC_IDS_SINCE: Final = 13
_NONE: Final = ErrorCode.NONE
_WRITE: Final = Operation.WRITE
_TOPIC: Final = Resource.TOPIC
_NAMED: Final = 3  # partitions that a log line names
_FORM: Final = Struct(">8xi4xb4xh")  # length, magic, attributes
_OFFSETS: Final = Struct(">qqq")  # base offset, append time, log start offset
_TEMPLATES: Final = 10_000


class _Produce:
    """One request under way. Most have one partition and succeed; the others are laid out with all their parts."""

    __slots__ = ("_answer", "_call", "_is_waiting", "_layout", "_request", "_services")

    def __init__(self, services: Services, call: Call, request: ProduceRequest) -> None:
        self._services = services
        self._call = call
        self._request = request
        self._layout: _Layout | None = None
        self._is_waiting = False
        self._answer: object = PENDING

    def run(self) -> object:
        entries = self._only_entry()
        if entries is not None:
            self._append(entries)
        else:
            layout = self._layout = _Layout(self._services, self._call)
            layout.lay_out(self._request)
            if layout.has_internal:
                self._check_internal(layout)
            else:
                self._append_laid_out(layout)
        self._is_waiting = self._answer is PENDING  # for a coordinator, replicas, or this broker's own disk
        if self._is_waiting:
            self._let_go_of_records()
        return self._answer

    def _let_go_of_records(self) -> None:
        """What waits holds no records: they are appended, or whoever has yet to do that has a copy."""
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                data.records = None

    def _append(self, entries: list[tuple[TopicPartition, Bytes]]) -> None:
        request, appends = self._request, self._services.replicas.appends
        wait = appends.append(
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            entries=entries,
            done=self._done,
            owner=self._call.peer.address,
        )
        if self._answer is PENDING and appends.slow.holds(self._call.peer.address):
            self._call.is_slow = True
        if self._layout is not None:
            self._layout.entries = []
        if wait is not None:
            self._call.on_closed = partial(self._services.replicas.cancel_append, wait)

    def _append_laid_out(self, layout: _Layout) -> None:
        if layout.has_transactional:
            self._check_transaction(layout)
        else:
            self._append(layout.entries)

    def _check_internal(self, layout: _Layout) -> None:
        """Append what the coordinators will understand."""

        def checked(refused: Mapping[TopicPartition, tuple[ErrorCode, str | None]]) -> None:
            layout.refuse(refused)
            self._append_laid_out(layout)

        layout.copy_records()
        check_internal(self._services, layout.entries, checked)

    def _check_transaction(self, layout: _Layout) -> None:
        """Append what the coordinator of the transaction agrees to."""
        is_answered = False

        def checked(refused: Mapping[TopicPartition, tuple[ErrorCode, str | None]]) -> None:
            nonlocal is_answered
            is_answered = True
            layout.refuse(refused)
            self._append(layout.entries)

        check_transaction(self._services, self._call, self._request, layout.entries, checked)
        if not is_answered:
            layout.copy_records()

    def _only_entry(self) -> list[tuple[TopicPartition, Bytes]] | None:
        """What to append, if it is for one partition and there is nothing against it that can be seen before."""
        topics = self._request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            return None
        topic = topics[0]
        data = topic.partition_data[0]
        call, services = self._call, self._services
        image = services.metadata.image
        by_name = call.version < _TOPIC_IDS_SINCE
        found = image.topics.get(topic.name) if by_name else image.topic_by_id(topic.topic_id)
        if (
            found is None
            or not 0 <= data.index < len(found.partitions)
            or not _is_usual(data.records, call.version)
            or found.name in INTERNAL_TOPICS
            or not services.authorizer.allows(call.peer, _WRITE, _TOPIC, found.name)
        ):
            return None
        # Not TopicPartition(...), as in validation.py.
        return [(tuple.__new__(TopicPartition, (found.name, data.index)), data.records or b"")]

    def _done(self, results: list[AppendResult]) -> None:
        layout, acks = self._layout, self._request.acks
        if layout is None and (results[0].error_code or acks == 0):
            layout = _Layout(self._services, self._call)
            layout.lay_out_only_one(self._request, results[0].partition.topic)
        if layout is None:
            self._answer = _only_answer(self._call, self._request, results[0])
        else:
            response = layout.response(results)
            if acks != 0:
                self._answer = response
            else:
                self._answer = NO_RESPONSE
                if layout.has_failed:
                    self._answer = CLOSE_CONNECTION
                    _logger.warning(
                        "closing the connection from %s (client %r), which asked for no answers (acks=0): %s",
                        self._call.peer.address, self._call.client_id, layout.failures(),
                    )  # fmt: skip
        if self._is_waiting:
            self._call.reply(self._answer)


def _only_answer(call: Call, request: ProduceRequest, appended: AppendResult) -> bytes:
    """The answer to a request of one partition that went well."""
    topic = request.topic_data[0]
    _, _, _, base_offset, append_time, start_offset, _ = appended
    fill, head, middle, tail = answer_template(
        call.version, topic.name, topic.topic_id, topic.partition_data[0].index
    )
    return fill(head, call.correlation_id, middle, base_offset, append_time, start_offset, tail)


@lru_cache(maxsize=_TEMPLATES)
def answer_template(
    version: int, name: str, topic_id: uuid.UUID | None, index: int
) -> tuple[Callable[..., bytes], bytes, bytes, bytes]:
    """The answer to a request of one partition that went well: what puts it together, and what of it is always the
    same."""
    mark = 0x6F_74_74_6C_61_21_21_21
    slot = PartitionProduceResponse(
        index=index, base_offset=mark, log_append_time_ms=mark, log_start_offset=mark
    )
    topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[slot])
    whole = b"".join(frame.response_parts(KEY, version, 0, ProduceResponse(responses=[topic])))
    head, rest = whole[: frame.CORRELATION_ID_AT], whole[frame.CORRELATION_ID_AT + 4 :]
    middle, _, tail = rest.rpartition(_OFFSETS.pack(mark, mark, mark))
    return Struct(f">{len(head)}si{len(middle)}sqqq{len(tail)}s").pack, head, middle, tail


class _Layout:
    """A request part by part: what can be appended, and the response, filled in when that is done."""

    __slots__ = (
        "_call", "_has_valid_acks", "_response", "_services", "_slots", "entries", "has_failed", "has_internal",
        "has_transactional",
    )  # fmt: skip

    def __init__(self, services: Services, call: Call) -> None:
        self._services = services
        self._call = call
        self._response = ProduceResponse(responses=[])
        self.entries: list[tuple[TopicPartition, Bytes]] = []
        self._slots: list[PartitionProduceResponse] = []  # where the result of each entry goes
        self._has_valid_acks = True  # if not, that is told before anything about the partition
        self.has_failed = False
        self.has_internal = False
        self.has_transactional = False

    def lay_out_only_one(self, request: ProduceRequest, name: str) -> None:
        """A request of one partition that was appended or tried to. Nothing is checked again: by now its records may
        be gone from the receive buffer, and its topic from the cluster."""
        (topic,) = request.topic_data
        slot = PartitionProduceResponse(index=topic.partition_data[0].index, base_offset=-1)
        self._slots.append(slot)
        self._response.responses.append(
            TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=[slot])
        )

    def failures(self) -> str:
        """What has failed and why, for people: the first few of it."""
        failed = [
            (topic.name, slot) for topic in self._response.responses for slot in topic.partition_responses
        ]
        texts = [
            f"{name}-{slot.index}: {ErrorCode(slot.error_code).name}"
            + (f" ({slot.error_message})" if slot.error_message else "")
            for name, slot in failed
            if slot.error_code
        ]
        return "; ".join(texts[:_NAMED]) + ("; ..." if len(texts) > _NAMED else "")

    def lay_out(self, request: ProduceRequest) -> None:
        """Everything that is asked for, with what is against it."""
        self._has_valid_acks = request.acks in VALID_ACKS
        image = self._services.metadata.image
        for topic in request.topic_data:
            self._lay_out(topic, image)
        if self.has_transactional and not self._may_use(request.transactional_id):
            self._refuse_all(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def _may_use(self, transactional_id: str | None) -> bool:
        return transactional_id is not None and self._services.authorizer.allows(
            self._call.peer, _WRITE, Resource.TRANSACTIONAL_ID, transactional_id
        )

    def copy_records(self) -> None:
        """The receive buffer goes back to the connection before the answer comes."""
        self.entries = [(key, bytearray(records)) for key, records in self.entries]

    def refuse(self, refused: Mapping[TopicPartition, tuple[ErrorCode, str | None]]) -> None:
        """Leave out entries that must not be appended."""
        kept = []
        for entry, slot in zip(self.entries, self._slots, strict=True):
            if entry[0] in refused:
                self._fail(slot, *refused[entry[0]])
            else:
                kept.append((entry, slot))
        self.entries = [entry for entry, _ in kept]
        self._slots = [slot for _, slot in kept]

    def response(self, results: list[AppendResult]) -> ProduceResponse:
        """The response, with a result for each entry."""
        for slot, appended in zip(self._slots, results, strict=True):
            slot.base_offset = appended.base_offset
            slot.log_append_time_ms = appended.log_append_time
            slot.log_start_offset = appended.log_start_offset
            if appended.error_code:
                self._explain(slot, appended)
        return self._response

    def _lay_out(self, topic: TopicProduceData, image: ClusterImage) -> None:
        version = self._call.version
        name, topic_error = topic.name, _NONE
        if version >= _TOPIC_IDS_SINCE:
            found = image.topic_by_id(topic.topic_id)
            name = found.name if found is not None else ""
            topic_error = _NONE if found is not None else ErrorCode.UNKNOWN_TOPIC_ID
        else:
            found = image.topics.get(name)
        if topic_error is _NONE and not self._services.authorizer.allows(
            self._call.peer, _WRITE, _TOPIC, name
        ):
            topic_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        is_closed = name in INTERNAL_TOPICS and self._call.client_id != ADMIN_CLIENT_ID
        slots: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            slot = PartitionProduceResponse(index=data.index, base_offset=-1)
            slots.append(slot)
            if topic_error is not _NONE:
                self._fail(slot, topic_error, None)
            elif found is None or not 0 <= data.index < len(found.partitions):
                self._refuse(slot, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
            elif not _is_usual(data.records, version) and (wrong := self._form_error(data.records)):
                self._fail(slot, *wrong)
            elif is_closed and self._has_valid_acks:
                self._refuse(slot, ErrorCode.INVALID_TOPIC_EXCEPTION, name)
            else:
                self.has_internal |= self._has_valid_acks and name in INTERNAL_TOPICS
                self._enter(TopicPartition(name, data.index), data.records or b"", slot)
        if slots:
            self._response.responses.append(
                TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=slots)
            )

    def _enter(self, key: TopicPartition, records: Bytes, slot: PartitionProduceResponse) -> None:
        """Append this. An old message set without a whole message is no error: nothing is appended."""
        if self._call.version < _ONE_BATCH_SINCE and not batch_size(memoryview(records), 0):
            partition = self._services.replicas.partition(key)
            if self._has_valid_acks and partition is not None and partition.is_leader:
                partition.metrics.produce_requests += 1
                return
        self.entries.append((key, records))
        self._slots.append(slot)

    def _refuse(self, slot: PartitionProduceResponse, code: ErrorCode, topic: str) -> None:
        """As `_fail`, for what counts as a request all the same."""
        self._services.metrics.known_topic(topic).produce_requests += 1
        self._fail(slot, code, None)

    def _form_error(self, records: memoryview | None) -> tuple[ErrorCode, str] | None:
        """What is wrong with the form of `records` for a client of this version."""
        version = self._call.version
        if version < _ONE_BATCH_SINCE:
            return None
        size = 0 if records is None else batch_size(records, 0)
        if records is None or size == 0:
            text = f"Produce v{version} must carry a record batch for each partition"
            return ErrorCode.INVALID_RECORD, text
        if size == NO_BATCH:
            return ErrorCode.CORRUPT_MESSAGE, "the records do not begin with a batch"
        if records[batch.MAGIC_AT] != batch.MAGIC_V2:
            return ErrorCode.INVALID_RECORD, f"Produce v{version} carries record batches of magic 2 only"
        attributes = records[batch.ATTRIBUTES_AT + 1] if size >= batch.HEADER_SIZE else 0
        if version < _ZSTD_SINCE and attributes & batch.CODEC_MASK == Codec.ZSTD:
            text = f"Produce v{version} cannot carry zstd, v{_ZSTD_SINCE} can"
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text
        if size < len(records) and (behind := batch_size(records, size)):
            if behind == NO_BATCH:
                return ErrorCode.CORRUPT_MESSAGE, "what follows the batch is none"
            text = f"Produce v{version} carries one record batch for each partition only"
            return ErrorCode.INVALID_RECORD, text
        self.has_transactional |= bool(attributes & batch.TRANSACTIONAL)
        return None

    def _refuse_all(self, code: ErrorCode) -> None:
        self.entries.clear()
        self._slots.clear()
        for topic in self._response.responses:
            for slot in topic.partition_responses:
                self._fail(slot, code, None)

    def _fail(self, slot: PartitionProduceResponse, code: ErrorCode, message: str | None) -> None:
        self.has_failed = True
        slot.error_code = code
        slot.error_message = message

    def _explain(self, slot: PartitionProduceResponse, appended: AppendResult) -> None:
        self.has_failed = True
        slot.error_code = appended.error_code
        slot.error_message = appended.error_message
        slot.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in appended.record_errors
        ]
        if appended.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._point_to_leader(slot, appended.partition)

    def _point_to_leader(self, slot: PartitionProduceResponse, partition: TopicPartition) -> None:
        image = self._services.metadata.image
        info = image.partition(partition.topic, partition.partition)
        if info is None or self._call.version < _CURRENT_LEADER_SINCE:
            return
        slot.current_leader = LeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
        broker = image.brokers.get(info.leader)
        if broker is not None and all(
            node.node_id != broker.node_id for node in self._response.node_endpoints
        ):
            self._response.node_endpoints.append(
                NodeEndpoint(node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
            )


def _is_usual(records: memoryview | None, version: int) -> bool:
    """Whether this is one whole batch of the kind that nearly all are, seen from its header alone."""
    if records is None or len(records) < batch.HEADER_SIZE:
        return False
    length, magic, attributes = _FORM.unpack_from(records)
    return (
        magic == batch.MAGIC_V2
        and length + batch.OVERHEAD_SIZE == len(records)
        and not attributes & batch.TRANSACTIONAL
        and version >= _ZSTD_SINCE
    )


@api(KEY)
def produce(services: Services, call: Call, request: ProduceRequest) -> object:
    return _Produce(services, call, request).run()
