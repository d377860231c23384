"""CreateTopics (v2 to v7), DeleteTopics (v1 to v6), CreatePartitions (v0 to v3).

Each topic of a request succeeds or fails by itself; the checks are the controller's (cluster/controller.py). The
answer comes when this broker's partitions are there and take writes.

CreateTopics v5 and later tell the number of partitions and replicas and all settings of a new topic, v7 its id.
DeleteTopics takes names up to v5, and names or ids from v6 on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.cluster import controller
from ottla.cluster.config_views import topic_config_views
from ottla.cluster.controller import DoomedTopic, MorePartitions, NewTopic
from ottla.cluster.image import ClusterImage, TopicInfo
from ottla.cluster.outcome import Command, Outcome, Result
from ottla.names import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_DELETION_DISABLED_SINCE = 3
_DELETE_BY_STATE_SINCE = 6

# All settings of a new topic, by those it sets itself: the topics of a request often set the same.
_Settings = dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]]

log = logging.getLogger(__name__)


def _change(
    services: Services,
    command: Command,
    names: Sequence[str | None],
    done: Callable[[Sequence[Result]], None],
) -> None:
    """Change the cluster. If even that fails, every item has failed."""

    def finish(outcome: Outcome | None, error: BaseException | None) -> None:
        if outcome is not None:
            done(outcome.results)
            return
        log.error("the cluster's metadata could not be changed", exc_info=error)
        done([Result(name, ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) for name in names])

    services.metadata.change(command, finish)


def _with_logs(services: Services, result: Result) -> Result:
    """An error instead of a success where a log of the topic could not be made on this broker."""
    topic = services.metadata.image.topics.get(result.name or "")
    if not result.ok or topic is None or not services.replicas.lacks_logs:
        return result
    for number in range(len(topic.partitions)):
        hosted = services.replicas.partition(TopicPartition(topic.name, number))
        if hosted is not None and hosted.is_offline:
            text = (
                f"The topic is there, but the log of {hosted.key} could not be made; the broker's log says why. "
                "Free space, or put another directory into log.dirs, and start the broker again."
            )
            return Result(result.name, ErrorCode.KAFKA_STORAGE_ERROR, text)
    return result


# -- CreateTopics


@api(ApiKey.CREATE_TOPICS)
def create_topics(services: Services, call: Call, request: CreateTopicsRequest) -> object:
    allows, peer = services.authorizer.allows, call.peer
    anywhere = allows(peer, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
    wanted, refused = [], []
    for topic in request.topics:
        if anywhere or allows(peer, Operation.CREATE, Resource.TOPIC, topic.name):
            wanted.append(_new_topic(topic))
        else:
            refused.append(Result(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
    randrange = services.runtime.randrange
    config = services.metadata.config

    def command(image: ClusterImage) -> Outcome:
        return controller.create_topics(
            image,
            wanted,
            config,
            randrange,
            validate_only=request.validate_only,
            max_partitions=services.max_partitions,
        )

    def done(results: Sequence[Result]) -> None:
        settings: _Settings = {}
        made = [one if request.validate_only else _with_logs(services, one) for one in results]
        topics = [_created(services, call, one, settings) for one in (*made, *refused)]
        call.reply(CreateTopicsResponse(topics=topics))

    _change(services, command, [topic.name for topic in wanted], done)
    return PENDING


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(a.partition_index, a.broker_ids) for a in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _created(services: Services, call: Call, result: Result, settings: _Settings) -> CreatableTopicResult:
    name, topic = result.name or "", result.topic
    answer = CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message,
        configs=[],
    )
    if topic is None:
        return answer
    if not services.allows(call, Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name):
        answer.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer
    answer.num_partitions = len(topic.partitions)
    answer.replication_factor = len(topic.partitions[0].replicas)
    own = frozenset(topic.config.items())
    if own not in settings:
        settings[own] = _settings(services, topic)
    answer.configs = settings[own]
    return answer


def _settings(services: Services, topic: TopicInfo) -> list[CreatableTopicConfigs]:
    # With validate_only the topic is not in the image.
    image = replace(services.metadata.image, topics={topic.name: topic})
    views = topic_config_views(image, topic.name, services.node_id, services.metadata.config.properties)
    return [
        CreatableTopicConfigs(
            name=view.name,
            value=view.value,
            read_only=view.read_only,
            config_source=view.source,
            is_sensitive=view.sensitive,
        )
        for view in views
    ]


# -- DeleteTopics


@api(ApiKey.DELETE_TOPICS)
def delete_topics(services: Services, call: Call, request: DeleteTopicsRequest) -> object:
    if call.version >= _DELETE_BY_STATE_SINCE:
        asked = [DoomedTopic(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [DoomedTopic(name) for name in request.topic_names]
    wanted, refused = [], []
    for doomed in asked:
        if (refusal := _refusal(services, call, doomed)) is None:
            wanted.append(doomed)
        else:
            refused.append(refusal)

    def command(image: ClusterImage) -> Outcome:
        return controller.delete_topics(image, wanted, services.metadata.config)

    def done(results: Sequence[Result]) -> None:
        call.reply(DeleteTopicsResponse(responses=[_deleted(call, one) for one in (*results, *refused)]))

    _change(services, command, [doomed.name for doomed in wanted], done)
    return PENDING


def _refusal(services: Services, call: Call, doomed: DoomedTopic) -> Result | None:
    """TOPIC_AUTHORIZATION_FAILED, with the name of a topic given by its id only if the client may see it."""
    found = services.metadata.image.topic_by_id(doomed.topic_id)
    name = doomed.name if doomed.name is not None else found.name if found else None
    if name is None:
        return None
    allows, peer = services.authorizer.allows, call.peer
    if allows(peer, Operation.DELETE, Resource.TOPIC, name):
        return None
    visible = doomed.name is not None or allows(peer, Operation.DESCRIBE, Resource.TOPIC, name)
    return Result(
        name if visible else None,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "Authorization failed.",
        doomed.topic_id,
    )


def _deleted(call: Call, result: Result) -> DeletableTopicResult:
    code = result.error_code
    if code == ErrorCode.TOPIC_DELETION_DISABLED and call.version < _DELETION_DISABLED_SINCE:
        code = ErrorCode.INVALID_REQUEST  # clients of that time do not know the other code
    return DeletableTopicResult(
        name=result.name, topic_id=result.topic_id, error_code=code, error_message=result.error_message
    )


# -- CreatePartitions


@api(ApiKey.CREATE_PARTITIONS)
def create_partitions(services: Services, call: Call, request: CreatePartitionsRequest) -> object:
    wanted, refused = [], []
    for topic in request.topics:
        if services.allows(call, Operation.ALTER, Resource.TOPIC, topic.name):
            given = topic.assignments
            assignments = None if given is None else [a.broker_ids for a in given]
            wanted.append(MorePartitions(topic.name, topic.count, assignments))
        else:
            refused.append(Result(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    def command(image: ClusterImage) -> Outcome:
        return controller.create_partitions(
            image, wanted, validate_only=request.validate_only, max_partitions=services.max_partitions
        )

    def done(results: Sequence[Result]) -> None:
        grown = [one if request.validate_only else _with_logs(services, one) for one in results]
        call.reply(CreatePartitionsResponse(results=[_grown(one) for one in (*grown, *refused)]))

    _change(services, command, [topic.name for topic in wanted], done)
    return PENDING


def _grown(result: Result) -> CreatePartitionsTopicResult:
    # Kafka's answer for an unknown topic has a code and no words.
    unknown = result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return CreatePartitionsTopicResult(
        name=result.name or "",
        error_code=result.error_code,
        error_message=None if unknown else result.error_message,
    )
