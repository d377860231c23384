"""Fetch, v0 to v18: records from partitions, at once or when there are enough of them.

v0 to v3 come from clients that know only messages of magic 0 or 1: records are converted down. v4 brings isolation
levels and aborted transactions, v7 sessions (api/fetch_sessions.py), v9 leader epochs, v12 diverging epochs, v13 topic
ids, v15 moves the replica's id into a tag, v16 the endpoints of other leaders.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from itertools import islice

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import CLOSE_CONNECTION, PENDING, Call
from ottla.api.fetch.contexts import (
    FEW,
    SLICE,
    TOPIC_IDS_SINCE,
    FetchContext,
    context_of,
    context_slowly,
    is_large,
)
from ottla.api.fetch.old_messages import MAX_BYTES, Converted, Fetched, convert
from ottla.api.fetch_sessions import NO_SESSION, Followed, Key
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.api.slow_answers import answer_in_slices
from ottla.errors import BrokerError
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
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
from ottla.replica.results import CONSUMER, FetchEntry, FetchParams, FetchResult
from ottla.slices import Steps
from ottla.storage.log.reader import Isolation

_MAX_BYTES_SINCE = 3
_V2_SINCE = 4
_ZSTD_SINCE = 10
_REPLICA_STATE_SINCE = 15
_NODE_ENDPOINTS_SINCE = 16
_FREED = 5000


_logger = logging.getLogger(__name__)


@api(ApiKey.FETCH)
def fetch(services: Services, call: Call, request: FetchRequest) -> object:
    if is_large(services, request):
        return answer_in_slices(services, call, _fetch_slowly(services, call, request))
    context = context_of(services, call, request)
    if isinstance(context, ErrorCode):
        return _refused(context)
    return _Fetch(services, call, context).run(request)


def _refused(code: ErrorCode) -> FetchResponse:
    return FetchResponse(error_code=code, session_id=NO_SESSION, responses=[])


def _fetch_slowly(services: Services, call: Call, request: FetchRequest) -> Steps:
    """A fetch of very many partitions: all that is done for each of them is done in slices."""
    context = yield from context_slowly(services, call, request)
    if isinstance(context, ErrorCode):
        return _refused(context)
    under_way = _Fetch(services, call, context)
    under_way.prepare(request)
    partitions = iter(context.partitions.items())
    while some := list(islice(partitions, SLICE)):
        under_way.look_at(some)
        yield
    under_way.read_slowly()
    return PENDING


class _Fetch:
    """One request under way."""

    __slots__ = (
        "_call", "_context", "_converted", "_entries", "_is_replica", "_keys", "_params", "_refusals", "_services",
    )  # fmt: skip

    def __init__(self, services: Services, call: Call, context: FetchContext) -> None:
        self._services = services
        self._call = call
        self._context = context
        self._refusals: dict[Key, ErrorCode] = {}  # of those that are not read
        self._keys: list[Key] = []  # of the entries that are read
        self._entries: list[FetchEntry] = []
        self._converted: dict[Key, Converted] = {}  # for an old client

    def run(self, request: FetchRequest) -> object:
        self.prepare(request)
        self.look_at(self._context.partitions.items())
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
        self._read(done)
        in_handler = False
        return result

    def look_at(self, partitions: Iterable[tuple[Key, Followed]]) -> None:
        """Take what can be read of these."""
        for key, followed in partitions:
            refusal = self._refusal(followed)
            if followed.topic is None or refusal is not None:
                self._refusals[key] = refusal or ErrorCode.UNKNOWN_TOPIC_ID
            else:
                partition = TopicPartition(followed.topic, followed.partition)
                self._entries.append(
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

    def read_slowly(self) -> None:
        """Read, and make the answer in slices."""

        def done(results: list[FetchResult]) -> None:
            if self._call.version < _V2_SINCE and any(found.records for found in results):
                self._convert(results)
            else:
                self._respond_slowly(results)

        self._read(done)

    def _read(self, done: Callable[[list[FetchResult]], None]) -> None:
        entries, self._entries = self._entries, []
        wait = self._services.replicas.fetch(self._params, entries, done)
        if wait is not None:
            self._call.on_closed = lambda: self._services.replicas.cancel_fetch(wait)
            self._call.request = None  # what waits holds no more than it needs

    def _refusal(self, followed: Followed) -> ErrorCode | None:
        """A replica needs the right to act for the cluster, anybody else to read the topic."""
        allows, peer = self._services.authorizer.allows, self._call.peer
        if self._is_replica:
            allowed = allows(peer, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        else:
            allowed = followed.topic is None or allows(peer, Operation.READ, Resource.TOPIC, followed.topic)
        return None if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def prepare(self, request: FetchRequest) -> None:
        """Note what the request says of all its partitions."""
        version = self._call.version
        replica_id = request.replica_id
        if version >= _REPLICA_STATE_SINCE:
            replica_id = request.replica_state.replica_id if request.replica_state else CONSUMER
        self._is_replica = replica_id >= 0
        max_bytes = min(request.max_bytes, self._services.config.fetch_max_bytes)
        isolation = Isolation.COMMITTED if request.isolation_level == 1 else Isolation.HIGH_WATERMARK
        self._params = FetchParams(
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
            self._respond_slowly(results)

        services.replicas.conversions.submit(work, done)

    # -- the response

    def _response(self, results: list[FetchResult]) -> FetchResponse:
        response = FetchResponse(error_code=ErrorCode.NONE, session_id=NO_SESSION, responses=[])
        found = dict(zip(self._keys, results, strict=True))
        self._tell(response, {}, found, self._context.partitions.items())
        return self._with_session(response)

    def _respond_slowly(self, results: list[FetchResult]) -> None:
        call = self._call
        if call.is_open:
            call.is_large = len(self._context.partitions) > FEW
            steps = self._response_slowly(results)
            self._services.slices.add(steps, call.reply, lambda: call.reply(CLOSE_CONNECTION), call)

    def _response_slowly(self, results: list[FetchResult]) -> Steps:
        response = FetchResponse(error_code=ErrorCode.NONE, session_id=NO_SESSION, responses=[])
        answered = iter(zip(self._keys, results, strict=True))
        partitions = iter(self._context.partitions.items())
        topics: dict[uuid.UUID | str, FetchableTopicResponse] = {}
        found: dict[Key, FetchResult] = {}
        while some := list(islice(partitions, SLICE)):
            # Of both there are as many in the same order, but for those that were refused.
            found.update(islice(answered, SLICE))
            self._tell(response, topics, found, some)
            for key, _ in some:
                found.pop(key, None)
            yield
        # To free very many objects takes long too.
        for kept in (results, self._keys):
            while kept:
                del kept[-_FREED:]
                yield
        return self._with_session(response)

    def _tell(
        self,
        response: FetchResponse,
        topics: dict[uuid.UUID | str, FetchableTopicResponse],
        found: dict[Key, FetchResult],
        partitions: Iterable[tuple[Key, Followed]],
    ) -> None:
        """Add what became of these partitions. `topics` are those that are in the response already."""
        context = self._context
        for key, followed in partitions:
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
                news = followed.has_changed(result) if context.session or context.begins_session else True
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

    def _with_session(self, response: FetchResponse) -> FetchResponse:
        context = self._context
        if context.session is not None:
            response.session_id = context.session.session_id
        elif context.begins_session:
            by_id = self._call.version >= TOPIC_IDS_SINCE
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
