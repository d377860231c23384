"""Metadata, v0 to v13: which brokers there are, and the partitions and leaders of topics.

All topics are asked for with an empty list in v0, and with null from v1 on, where an empty list asks for none. v4
lets a client say whether a missing topic may be made; v8 to v10 can ask what it may do with the cluster, v8 and later
with each topic; v10 tells topic ids, and from v12 on topics can be asked for by id. A request that gives one id is
about ids only, as in Kafka.

A missing topic that may be made (auto.create.topics.enable) is UNKNOWN_TOPIC_OR_PARTITION in this answer and there
in one of the next: clients ask again. It is there once its logs are, since some clients come at once and only once.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Generator, Iterable

from ottla.api.access import (
    CLUSTER_NAME,
    NOT_ASKED,
    Operation,
    Resource,
    authorized_operations,
    cluster_operations,
)
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.api.slow_answers import SLICE, answer_in_slices
from ottla.cluster import controller
from ottla.cluster.image import INTERNAL_TOPICS, ClusterImage, PartitionInfo, TopicInfo
from ottla.cluster.outcome import Outcome
from ottla.names import TopicPartition, is_topic_name
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.slices import Steps

_NULL_IS_ALL_SINCE = 1
_TOPIC_IDS_SINCE = 12
_NO_LEADER = -1
_CHECKED = 2000  # entries of a request that are looked at in one step
_MAX_MADE = 1000  # topics that one request brings into being; the client asks again for the others

log = logging.getLogger(__name__)


@api(ApiKey.METADATA)
def metadata(services: Services, call: Call, request: MetadataRequest) -> object:
    return answer_in_slices(services, call, _response(services, call, request))


def _response(services: Services, call: Call, request: MetadataRequest) -> Steps:
    asked, wrong = request.topics or [], ErrorCode.NONE
    for start in range(0, len(asked), _CHECKED):
        if start:
            yield
        wrong = _malformed(call, asked[start : start + _CHECKED]) or wrong
    if wrong:
        return (yield from _refusal(asked, wrong))
    image = services.metadata.image
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=b.node_id, host=b.host, port=b.port, rack=b.rack)
            for _, b in sorted(image.brokers.items())
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=(yield from _Answer(services, call, request, image).topics()),
        cluster_authorized_operations=cluster_operations(
            services.authorizer, call.peer, asked=request.include_cluster_authorized_operations
        ),
    )


def _malformed(call: Call, asked: list[MetadataRequestTopic]) -> ErrorCode:
    """What is wrong if topics are given in a way that the version does not have."""
    code = ErrorCode.NONE
    for topic in asked:
        if topic.name is None or topic.topic_id is not None:
            if call.version < _TOPIC_IDS_SINCE:
                code = ErrorCode.INVALID_REQUEST
            elif topic.topic_id is None:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
    return code


def _refusal(asked: list[MetadataRequestTopic], code: ErrorCode) -> Generator[None, None, MetadataResponse]:
    """Kafka fails such a request as a whole."""
    answers = []
    for topic in asked:
        answers.append(MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id))
        if len(answers) % SLICE == 0:
            yield
    return MetadataResponse(error_code=code, topics=answers)


class _Answer:
    """The topics of one answer."""

    def __init__(self, services: Services, call: Call, request: MetadataRequest, image: ClusterImage) -> None:
        self._services = services
        self._call = call
        self._request = request
        self._image = image
        self._room = SLICE  # entries until somebody else has a turn

    def topics(self) -> Generator[None, None, list[MetadataResponseTopic]]:
        asked = self._request.topics
        if asked is None or (not asked and self._call.version < _NULL_IS_ALL_SINCE):
            return (yield from self._all())
        ids: set[uuid.UUID] = set()
        names: dict[str, None] = {}
        for start in range(0, len(asked), _CHECKED):
            if start:
                yield
            some = asked[start : start + _CHECKED]
            ids.update(topic.topic_id for topic in some if topic.topic_id is not None)
            names.update(dict.fromkeys(topic.name for topic in some if topic.name is not None))
        return (yield from self._by_ids(ids) if ids else self._by_name(names))

    def _has_done(self, entries: int) -> bool:
        """Count what was done; True when it is time for others."""
        self._room -= entries
        if self._room > 0:
            return False
        self._room = SLICE
        return True

    def _all(self) -> Generator[None, None, list[MetadataResponseTopic]]:
        answers = []
        for _, topic in sorted(self._image.topics.items()):
            if self._visible(topic.name) and not self._is_new(topic):
                answers.append(self._small_topic(topic) or (yield from self._topic(topic)))
                if self._has_done(0):
                    yield
        return answers

    def _by_ids(self, ids: set[uuid.UUID]) -> Generator[None, None, list[MetadataResponseTopic]]:
        answers = []
        for topic_id in ids:
            found = self._image.topic_by_id(topic_id)
            if found is None or self._is_new(found) or not self._visible(found.name):
                # One that it may not see does not exist for a client.
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
                answers.append(MetadataResponseTopic(error_code=unknown, name=None, topic_id=topic_id))
                if self._has_done(1):
                    yield
            else:
                answers.append(self._small_topic(found) or (yield from self._topic(found)))
                if self._has_done(0):
                    yield
        return answers

    def _visible(self, name: str) -> bool:
        return self._services.allows(self._call, Operation.DESCRIBE, Resource.TOPIC, name)

    def _by_name(self, names: Iterable[str]) -> Generator[None, None, list[MetadataResponseTopic]]:
        found, new, missing, hidden = [], [], [], []
        for name in names:
            if not self._visible(name):
                hidden.append(_failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif (topic := self._image.topics.get(name)) is None:
                missing.append(name)
            elif self._is_new(topic):
                new.append(self._missing(name, refused=False))
            else:
                found.append(self._small_topic(topic) or (yield from self._topic(topic)))
            if self._has_done(1):
                yield
        creates = self._request.allow_auto_topic_creation
        creates = creates and self._services.metadata.broker_config.auto_create_topics_enable
        answers = [*found, *new]
        made: list[str] = []
        for name in missing:
            refused = creates and not self._may_create(name)
            answers.append(self._missing(name, refused))
            if creates and not refused and len(made) < _MAX_MADE:
                made.append(name)
            if self._has_done(1):
                yield
        _make(self._services, made)
        return [*answers, *hidden]

    def _may_create(self, name: str) -> bool:
        allows = self._services.authorizer.allows
        peer = self._call.peer
        return allows(peer, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME) or allows(
            peer, Operation.CREATE, Resource.TOPIC, name
        )

    def _missing(self, name: str, refused: bool) -> MetadataResponseTopic:
        if refused:
            return _failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        valid = is_topic_name(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
        answer = _failed(name, code)
        answer.topic_authorized_operations = self._operations(name)
        return answer

    def _small_topic(self, topic: TopicInfo) -> MetadataResponseTopic | None:
        """A topic that is told of in one go, as nearly all are."""
        if len(topic.partitions) > SLICE:
            return None
        self._room -= len(topic.partitions)
        partitions = [self._partition(topic.name, *numbered) for numbered in enumerate(topic.partitions)]
        return self._with(topic, partitions)

    def _topic(self, topic: TopicInfo) -> Generator[None, None, MetadataResponseTopic]:
        partitions = []
        for index, partition in enumerate(topic.partitions):
            partitions.append(self._partition(topic.name, index, partition))
            if self._has_done(1):
                yield
        return self._with(topic, partitions)

    def _with(self, topic: TopicInfo, partitions: list[MetadataResponsePartition]) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=partitions,
            topic_authorized_operations=self._operations(topic.name),
        )

    def _operations(self, name: str) -> int:
        if not self._request.include_topic_authorized_operations:
            return NOT_ASKED
        return authorized_operations(self._services.authorizer, self._call.peer, Resource.TOPIC, name)

    def _partition(self, topic: str, index: int, partition: PartitionInfo) -> MetadataResponsePartition:
        live = self._image.brokers
        replicas, in_sync = list(partition.replicas), list(partition.isr)
        offline = [node for node in replicas if node not in live]
        leader, code = partition.leader, ErrorCode.NONE
        if leader not in live or self._is_being_made(TopicPartition(topic, index)):
            leader, code = _NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE
        if self._call.version == 0 and offline:
            # v0 has no list of offline replicas: it leaves them out and says that something is missing.
            replicas = [node for node in replicas if node in live]
            in_sync = [node for node in in_sync if node in live]
            code = code or ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=code,
            partition_index=index,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=in_sync,
            offline_replicas=offline,
        )

    def _is_new(self, topic: TopicInfo) -> bool:
        """Whether all that this broker is to lead of a topic is still being made: it is as if there were none."""
        is_mine = False
        for index, partition in enumerate(topic.partitions):
            if partition.leader == self._services.node_id:
                if not self._is_being_made(TopicPartition(topic.name, index)):
                    return False
                is_mine = True
        return is_mine

    def _is_being_made(self, key: TopicPartition) -> bool:
        """Whether this broker is to lead a partition that has no log yet: it would turn clients away."""
        hosted = self._services.replicas.partition(key)
        return hosted is not None and hosted.is_leader and hosted.log is None and not hosted.is_offline


def _failed(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _make(services: Services, names: Iterable[str]) -> None:
    """Make the missing topics, while clients go on asking for them. Internal ones are made by who needs them."""
    under_way = services.topics_being_made
    wanted = [n for n in names if is_topic_name(n) and n not in INTERNAL_TOPICS and n not in under_way]
    if not wanted:
        return
    under_way.update(wanted)

    def command(image: ClusterImage) -> Outcome:
        topics = [controller.NewTopic(name) for name in wanted]
        return controller.create_topics(
            image,
            topics,
            services.metadata.config,
            services.runtime.randrange,
            max_partitions=services.max_partitions,
        )

    def done(outcome: Outcome | None, error: BaseException | None) -> None:
        under_way.difference_update(wanted)
        if outcome is None:
            log.warning("topics could not be made for clients that asked for them: %s", error)
            return
        failed = [r for r in outcome.results if not r.ok and r.error_code != ErrorCode.TOPIC_ALREADY_EXISTS]
        if failed:
            first = failed[0]
            log.warning("%d topics could not be made; %s: %s", len(failed), first.name, first.error_message)

    services.metadata.change(command, done)
