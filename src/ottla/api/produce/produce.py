"""Produce, v0 to v13: records from a client, appended partition by partition.

Records pass the gate (gate.py), then what only some of them must pass (internal_topics.py, transactions.py), and then
come the appends. Each partition succeeds or fails by itself.

v0 has no throttle time, v2 brings the append time, v3 transactional ids and magic 2 only, v5 the log start offset,
v8 errors by record, v10 the current leader where the client asked the wrong broker, v11 an error after which a
transaction can be aborted, v12 partitions that become part of their transaction by being written to, v13 topic ids.
acks=0 is never answered; if anything failed, the connection is closed so that the client looks for a new leader.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

from ottla.api.access import Operation, Resource
from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call
from ottla.api.produce import gate, responses
from ottla.api.produce.internal_topics import check_internal
from ottla.api.produce.transactions import check_transaction, is_transactional
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster.image import INTERNAL_TOPICS
from ottla.names import Bytes, TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.records.legacy.conversion import batch_size
from ottla.replica.appends import VALID_ACKS
from ottla.replica.results import AppendResult

_logger = logging.getLogger(__name__)

ADMIN_CLIENT_ID: Final = "__admin_client"  # the one client that may write to internal topics
_NONE: Final = ErrorCode.NONE
_NOTHING_YET: Final = AppendResult(TopicPartition("", -1))[1:]


class _Produce:
    """One request under way: what of it can be appended, and what has become of each of its partitions."""

    __slots__ = (
        "_answer", "_call", "_entries", "_has_internal", "_has_transactional", "_has_valid_acks", "_is_waiting",
        "_places", "_request", "_results", "_services",
    )  # fmt: skip

    def __init__(self, services: Services, call: Call, request: ProduceRequest) -> None:
        self._services = services
        self._call = call
        self._request = request
        self._entries: list[tuple[TopicPartition, Bytes]] = []  # to be appended
        self._places: list[int] = []  # where in the results each entry stands
        self._results: list[AppendResult] = []
        # If not, that is told before anything about an internal topic.
        self._has_valid_acks = request.acks in VALID_ACKS
        self._has_internal = False
        self._has_transactional = False
        self._is_waiting = False
        self._answer: object = PENDING

    def run(self) -> object:
        for topic in self._request.topic_data:
            self._enter_topic(topic)
        if self._has_transactional and not self._may_use_transaction():
            self._refuse_all(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if self._has_internal:
            self._copy_records()
            check_internal(self._services, self._entries, self._append_understood)
        else:
            self._append_verified()
        self._is_waiting = self._answer is PENDING  # for a coordinator, replicas, or this broker's own disk
        if self._is_waiting:
            self._let_go_of_records()
        return self._answer

    # -- the gate

    def _enter_topic(self, topic: TopicProduceData) -> None:
        call, services = self._call, self._services
        version = call.version
        named = topic.name if version < gate.TOPIC_IDS_SINCE else None
        name, partitions, topic_error = gate.check_topic(services, call.peer, named, topic.topic_id)
        is_internal = name in INTERNAL_TOPICS and self._has_valid_acks
        for data in topic.partition_data:
            index, records = data.index, data.records
            # Not TopicPartition(...), as in validation.py.
            key: TopicPartition = tuple.__new__(TopicPartition, (name, index))
            if topic_error is not _NONE:
                self._results.append(AppendResult(key, topic_error))
            elif not 0 <= index < partitions:
                self._refuse(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not gate.is_usual(records, version) and not self._has_good_form(key, records):
                continue
            elif is_internal and call.client_id != ADMIN_CLIENT_ID:
                self._refuse(key, ErrorCode.INVALID_TOPIC_EXCEPTION)
            else:
                self._has_internal |= is_internal
                self._enter(key, records or b"")

    def _has_good_form(self, key: TopicPartition, records: memoryview | None) -> bool:
        """Whether unusual records are of a form that may be appended; if not, that is their result."""
        version = self._call.version
        code, text = gate.check_form(records, version)
        if code is not _NONE:
            self._results.append(AppendResult(key, code, text))
            return False
        if version >= gate.ONE_BATCH_SINCE and records is not None:
            self._has_transactional |= is_transactional(records)
        return True

    def _enter(self, key: TopicPartition, records: Bytes) -> None:
        """Append this. An old message set without a whole message is no error: nothing is appended."""
        place = len(self._results)
        self._results.append(tuple.__new__(AppendResult, (key, *_NOTHING_YET)))
        if self._call.version < gate.ONE_BATCH_SINCE and not batch_size(memoryview(records), 0):
            partition = self._services.replicas.partition(key)
            if self._has_valid_acks and partition is not None and partition.is_leader:
                partition.metrics.produce_requests += 1
                return
        self._entries.append((key, records))
        self._places.append(place)

    def _refuse(self, key: TopicPartition, code: ErrorCode) -> None:
        """Refuse what counts as a request to its topic all the same."""
        self._services.metrics.known_topic(key.topic).produce_requests += 1
        self._results.append(AppendResult(key, code))

    def _may_use_transaction(self) -> bool:
        transactional_id = self._request.transactional_id
        return transactional_id is not None and self._services.authorizer.allows(
            self._call.peer, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id
        )

    def _refuse_all(self, code: ErrorCode) -> None:
        self._entries, self._places = [], []
        self._results = [AppendResult(result.partition, code) for result in self._results]

    # -- what only some must pass

    def _append_understood(self, refused: Mapping[TopicPartition, tuple[ErrorCode, str | None]]) -> None:
        """Append, to internal topics, what the coordinators will understand."""
        self._leave_out(refused)
        self._append_verified()

    def _append_verified(self) -> None:
        """Append; of a transaction, what its coordinator agrees to."""
        if not self._has_transactional:
            self._append()
            return
        is_answered = False

        def checked(refused: Mapping[TopicPartition, tuple[ErrorCode, str | None]]) -> None:
            nonlocal is_answered
            is_answered = True
            self._leave_out(refused)
            self._append()

        check_transaction(self._services, self._call, self._request, self._entries, checked)
        if not is_answered:
            self._copy_records()

    def _leave_out(self, refused: Mapping[TopicPartition, tuple[ErrorCode, str | None]]) -> None:
        for (key, _), place in zip(self._entries, self._places, strict=True):
            if key in refused:
                self._results[place] = AppendResult(key, *refused[key])
        kept = [number for number, (key, _) in enumerate(self._entries) if key not in refused]
        self._entries = [self._entries[number] for number in kept]
        self._places = [self._places[number] for number in kept]

    def _copy_records(self) -> None:
        """The receive buffer goes back to the connection before the answer comes."""
        self._entries = [(key, bytearray(records)) for key, records in self._entries]

    def _let_go_of_records(self) -> None:
        """What waits holds no records: they are appended, or whoever has yet to do that has a copy."""
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                data.records = None

    # -- appends, and the answer

    def _append(self) -> None:
        request, call, replicas = self._request, self._call, self._services.replicas
        entries, self._entries = self._entries, []
        wait = replicas.appends.append(
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            entries=entries,
            done=self._done,
            owner=call.peer.address,
        )
        if self._answer is PENDING and replicas.appends.slow.holds(call.peer.address):
            call.is_slow = True
        if wait is not None:
            call.on_closed = partial(replicas.cancel_append, wait)

    def _done(self, appended: list[AppendResult]) -> None:
        results, call = self._results, self._call
        for place, result in zip(self._places, appended, strict=True):
            results[place] = result
        if self._request.acks == 0:
            self._answer = self._no_answer()
        elif len(results) == 1 and not results[0].error_code and call.version >= responses.SHORT_SINCE:
            self._answer = responses.short_answer(call, self._request, results[0])
        else:
            self._answer = responses.full_answer(self._services, call.version, self._request, results)
        if self._is_waiting:
            call.reply(self._answer)

    def _no_answer(self) -> object:
        if not any(result.error_code for result in self._results):
            return NO_RESPONSE
        _logger.warning(
            "closing the connection from %s (client %r), which asked for no answers (acks=0): %s",
            self._call.peer.address, self._call.client_id, responses.failures(self._results),
        )  # fmt: skip
        return CLOSE_CONNECTION


@api(ApiKey.PRODUCE)
def produce(services: Services, call: Call, request: ProduceRequest) -> object:
    return _Produce(services, call, request).run()
