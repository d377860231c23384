"""Fetch, v0 to v18: records from partitions, at once or when there are enough of them.

v0 to v3 come from clients that know only messages of magic 0 or 1: records are converted down. v4 brings isolation
levels and aborted transactions, v7 sessions (fetch_sessions.py), v9 leader epochs, v12 diverging epochs, v13 topic
ids, v15 moves the replica's id into a tag, v16 the endpoints of other leaders.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from typing import NamedTuple

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import CLOSE_CONNECTION, PENDING, Call
from ottla.api.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    Followed,
    Key,
)
from ottla.api.old_messages import MAX_BYTES, Converted, Fetched, convert
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.errors import BrokerError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.replica.results import NO_EPOCH, FetchEntry, FetchParams, FetchResult
from ottla.storage.layout import TopicPartition
from ottla.storage.log_reader import Isolation

KEY = 1
CONSUMER = -1  # the replica id of those who are no replica

_MAX_BYTES_SINCE = 3
_V2_SINCE = 4
_SESSIONS_SINCE = 7
_ZSTD_SINCE = 10
_TOPIC_IDS_SINCE = 13
_REPLICA_STATE_SINCE = 15
_NODE_ENDPOINTS_SINCE = 16


_logger = logging.getLogger(__name__)


class _Context(NamedTuple):
    """What this request is about: the partitions to read, and the session it belongs to, if any."""

    partitions: dict[Key, Followed]
    session: FetchSession | None  # of an incremental request
    begins_session: bool = False


@api(KEY)
def fetch(services: Services, call: Call, request: FetchRequest) -> object:
    context = _context(services, call, request)
    if isinstance(context, ErrorCode):
        return FetchResponse(error_code=context, session_id=NO_SESSION, responses=[])
    return _Fetch(services, call, context).run(request)


def _context(services: Services, call: Call, request: FetchRequest) -> _Context | ErrorCode:
    cache = services.fetch_sessions
    wanted = _wanted(services, call, request)
    if call.version < _SESSIONS_SINCE:
        return _Context(dict(wanted), None)
    if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        cache.remove(request.session_id)
        return _Context(dict(wanted), None, begins_session=request.session_epoch == INITIAL_EPOCH)
    by_id = call.version >= _TOPIC_IDS_SINCE
    session = cache.use(request.session_id, request.session_epoch, uses_topic_ids=by_id)
    if isinstance(session, ErrorCode):
        return session
    had = len(session.partitions)
    session.change(wanted, _forgotten(call, request))
    if len(session.partitions) > had and cache.drop_if_too_large(session):
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if not session.partitions:
        cache.remove(session.session_id)
        return _Context({}, None)
    if by_id:
        _resolve(services, session)
    session.next_epoch()
    return _Context(dict(session.partitions), session)


def _wanted(services: Services, call: Call, request: FetchRequest) -> Iterable[tuple[Key, Followed]]:
    by_id = call.version >= _TOPIC_IDS_SINCE
    image = services.metadata.image
    for topic in request.topics:
        name: str | None = topic.topic
        topic_id: uuid.UUID | None = None
        if by_id:
            topic_id = topic.topic_id
            found = image.topic_by_id(topic_id)
            name = None if found is None else found.name
        for wanted in topic.partitions:
            key = (topic_id or topic.topic, wanted.partition)
            yield (
                key,
                Followed(
                    name,
                    topic_id,
                    wanted.partition,
                    wanted.fetch_offset,
                    wanted.partition_max_bytes,
                    max(wanted.current_leader_epoch, NO_EPOCH),
                    max(wanted.last_fetched_epoch, NO_EPOCH),
                ),
            )


def _forgotten(call: Call, request: FetchRequest) -> Iterable[Key]:
    by_id = call.version >= _TOPIC_IDS_SINCE
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            yield ((topic.topic_id or "") if by_id else topic.topic), partition


def _resolve(services: Services, session: FetchSession) -> None:
    """A topic that was not known when it was asked for may be by now."""
    image = services.metadata.image
    for followed in session.partitions.values():
        if followed.topic is None:
            found = image.topic_by_id(followed.topic_id)
            followed.topic = None if found is None else found.name


class _Fetch:
    """One request under way."""

    __slots__ = ("_call", "_context", "_converted", "_is_replica", "_keys", "_refusals", "_services")

    def __init__(self, services: Services, call: Call, context: _Context) -> None:
        self._services = services
        self._call = call
        self._context = context
        self._refusals: dict[Key, ErrorCode] = {}  # of those that are not read
        self._keys: list[Key] = []  # of the entries that are read
        self._converted: dict[Key, Converted] = {}  # for an old client

    def run(self, request: FetchRequest) -> object:
        entries: list[FetchEntry] = []
        params = self._params(request)
        for key, followed in self._context.partitions.items():
            refusal = self._refusal(followed)
            if followed.topic is None or refusal is not None:
                self._refusals[key] = refusal or ErrorCode.UNKNOWN_TOPIC_ID
            else:
                partition = TopicPartition(followed.topic, followed.partition)
                entries.append(
                    FetchEntry(
                        partition,
                        followed.topic_id,
                        followed.fetch_offset,
                        followed.max_bytes,
                        followed.current_leader_epoch,
                        followed.last_fetched_epoch,
                    )
                )
                self._keys.append(key)
        in_handler, result = True, PENDING

        def done(results: list[FetchResult]) -> None:
            nonlocal result
            if self._call.version < _V2_SINCE and any(found.records for found in results):
                self._convert(results)
                return
            response = self._response(results)
            if in_handler:
                result = response
            else:
                self._call.reply(response)

        self._call.is_slow = self._call.version < _V2_SINCE  # one such answer at a time
        wait = self._services.replicas.fetch(params, entries, done)
        in_handler = False
        if wait is not None:
            self._call.on_closed = lambda: self._services.replicas.cancel_fetch(wait)
            self._call.request = None  # what waits holds no more than it needs
        return result

    def _refusal(self, followed: Followed) -> ErrorCode | None:
        """A replica needs the right to act for the cluster, anybody else to read the topic."""
        allows, peer = self._services.authorizer.allows, self._call.peer
        if self._is_replica:
            allowed = allows(peer, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        else:
            allowed = followed.topic is None or allows(peer, Operation.READ, Resource.TOPIC, followed.topic)
        return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _params(self, request: FetchRequest) -> FetchParams:
        version = self._call.version
        replica_id = request.replica_id
        if version >= _REPLICA_STATE_SINCE:
            replica_id = request.replica_state.replica_id if request.replica_state else CONSUMER
        self._is_replica = replica_id >= 0
        max_bytes = min(request.max_bytes, self._services.config.fetch_max_bytes)
        isolation = Isolation.COMMITTED if request.isolation_level == 1 else Isolation.HIGH_WATERMARK
        return FetchParams(
            replica_id=replica_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            isolation=isolation,
            hard_max_bytes=version < _MAX_BYTES_SINCE,
            copied_bytes=MAX_BYTES if version < _V2_SINCE else 0,
        )

    def _convert(self, results: list[FetchResult]) -> None:
        """Answer when the records are old messages."""
        services, call = self._services, self._call
        followed = self._context.partitions
        parts = [
            Fetched(
                found.records or b"",
                followed[key].fetch_offset,
                services.metadata.topic_config(found.partition.topic).decompression_max_bytes,
            )
            for key, found in zip(self._keys, results, strict=True)
        ]
        magic = 0 if call.version < 2 else 1

        def work() -> list[Converted]:
            return convert(parts, magic) if call.is_open else []

        def done(converted: list[Converted] | None, error: BaseException | None) -> None:
            if not call.is_open:
                return
            if converted is None:
                _logger.error("converting records for %s failed", call, exc_info=error)
                call.reply(CLOSE_CONNECTION)
                return
            self._converted = dict(zip(self._keys, converted, strict=True))
            call.held_bytes = sum(len(made) for made in converted if isinstance(made, bytes))
            call.reply(self._response(results))

        services.replicas.conversions.submit(work, done)

    # -- the response

    def _response(self, results: list[FetchResult]) -> FetchResponse:
        found = dict(zip(self._keys, results, strict=True))
        context, version = self._context, self._call.version
        response = FetchResponse(error_code=ErrorCode.NONE, session_id=NO_SESSION, responses=[])
        topics: dict[uuid.UUID | str, FetchableTopicResponse] = {}
        for key, followed in context.partitions.items():
            result = found.get(key)
            if result is None:
                data = PartitionData(
                    partition_index=followed.partition,
                    error_code=self._refusals[key],
                    high_watermark=-1,
                    aborted_transactions=[],
                    records=b"",
                )
            else:
                news = followed.is_news(result) if context.session or context.begins_session else True
                if context.session is not None:
                    if not news:
                        continue
                    if result.records and key in context.session.partitions:
                        context.session.served(key)
                data = self._partition(result, key)
                if result.error_code:
                    self._point_to_leader(response, data, result)
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchableTopicResponse(
                    topic=followed.topic or "", topic_id=followed.topic_id, partitions=[]
                )
                response.responses.append(topic)
            topic.partitions.append(data)
        if context.session is not None:
            response.session_id = context.session.session_id
        elif context.begins_session:
            by_id = version >= _TOPIC_IDS_SINCE
            response.session_id = self._services.fetch_sessions.begin(
                context.partitions, uses_topic_ids=by_id
            )
        return response

    def _partition(self, result: FetchResult, key: Key) -> PartitionData:
        data = PartitionData(
            partition_index=result.partition.partition,
            error_code=result.error_code,
            high_watermark=result.high_watermark,
            last_stable_offset=result.last_stable_offset,
            log_start_offset=result.log_start_offset,
            aborted_transactions=None,
            records=result.records or b"",
        )
        if result.aborted is not None:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in result.aborted
            ]
        elif result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            data.aborted_transactions = []
        if result.diverging_epoch is not None:
            epoch, end_offset = result.diverging_epoch
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        if self._call.version < _ZSTD_SINCE:
            self._make_readable(data, result, key)
        return data

    def _make_readable(self, data: PartitionData, result: FetchResult, key: Key) -> None:
        """For a client that does not know today's records: zstd is refused, batches become old messages."""
        config = self._services.metadata.topic_config(result.partition.topic)
        if config.compression_type == "zstd":
            data.error_code, data.records = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b""
        elif self._call.version < _V2_SINCE and result.records:
            made = self._converted[key]
            if isinstance(made, BrokerError):
                data.error_code, data.records = made.code, b""
            else:
                data.records = made

    def _point_to_leader(self, response: FetchResponse, data: PartitionData, result: FetchResult) -> None:
        if result.error_code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return
        image = self._services.metadata.image
        info = image.partition(*result.partition)
        if info is None or self._call.version < _NODE_ENDPOINTS_SINCE:
            return
        data.current_leader = LeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
        if self._is_replica:
            return  # brokers know where to find each other
        broker = image.brokers.get(info.leader)
        if broker is not None and all(node.node_id != broker.node_id for node in response.node_endpoints):
            response.node_endpoints.append(
                NodeEndpoint(node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
            )
