"""DescribeConfigs, v1 to v4: the settings of topics, brokers and groups, with where each value comes from.

A broker describes itself (its own id) and what was set for all brokers (an empty name). Synonyms are told if asked
for; from v3 on also each setting's type, and its documentation if asked for. No list of keys and an empty one ask for
all. Log levels and client metrics have settings in Kafka that ottla does not have: INVALID_REQUEST.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from enum import IntEnum
from functools import partial

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.api.slow_answers import SLICE, answer_in_slices
from ottla.cluster.config_views import (
    ConfigView,
    broker_config_views,
    cluster_config_views,
    group_config_views,
    topic_config_views,
)
from ottla.errors import (
    BrokerError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from ottla.names import is_topic_name
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.slices import Steps

MAX_SETTINGS = 90_000  # in one answer; a small request must not be able to ask for any amount of memory
_CHECKED = 2000  # resources that are looked at in one step
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


class ConfigResource(IntEnum):
    """What settings belong to; Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


NOT_THERE = {
    ConfigResource.BROKER_LOGGER: "ottla does not change log levels while it runs.",
    ConfigResource.CLIENT_METRICS: "ottla does not collect metrics of clients.",
}


def configs_refusal(
    services: Services, call: Call, operation: Operation, resource_type: int, name: str
) -> ErrorCode:
    """NONE if the client may do this with the settings of a topic, group or broker."""
    if resource_type == ConfigResource.TOPIC:
        allowed = services.allows(call, operation, Resource.TOPIC, name)
        return ErrorCode.NONE if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource_type == ConfigResource.GROUP:
        allowed = services.allows(call, operation, Resource.GROUP, name)
        return ErrorCode.NONE if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    allowed = services.allows(call, operation, Resource.CLUSTER, CLUSTER_NAME)
    return ErrorCode.NONE if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def broker_number(services: Services, name: str) -> int | None:
    """Which broker's settings: this one's number, or None for all brokers. Others are asked themselves."""
    if not name:
        return None
    if not _NUMBER.fullmatch(name):
        raise InvalidRequestError(f"A broker is named by its number, not by {name[:300]!r}.")
    if int(name) != services.node_id:
        raise InvalidRequestError(f"This is broker {services.node_id}: ask broker {name} itself.")
    return services.node_id


@api(ApiKey.DESCRIBE_CONFIGS)
def describe_configs(services: Services, call: Call, request: DescribeConfigsRequest) -> object:
    return answer_in_slices(services, call, _response(services, call, request))


def _response(services: Services, call: Call, request: DescribeConfigsRequest) -> Steps:
    known = set(map(int, ConfigResource))
    answer = _Answer(services, call, request).of
    resources = request.resources
    for start in range(0, len(resources), _CHECKED):
        if start:
            yield
        if any(resource.resource_type not in known for resource in resources[start : start + _CHECKED]):
            # Kafka fails the request as a whole.
            error = InvalidRequestError("Settings belong to a topic or a broker.")
            answer = partial(_failed, error=error)
    results = []
    for resource in resources:
        results.append(answer(resource))
        if len(results) % SLICE == 0:
            yield
    return DescribeConfigsResponse(results=results)


class _Answer:
    """One answer. Topics that set the same share their settings in it: there may be thousands of them."""

    def __init__(self, services: Services, call: Call, request: DescribeConfigsRequest) -> None:
        self._services = services
        self._call = call
        self._request = request
        self._image = services.metadata.image
        self._settings: dict[Hashable, list[DescribeConfigsResourceResult]] = {}
        self._told = 0

    def of(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        kind, name = resource.resource_type, resource.resource_name
        refusal = configs_refusal(self._services, self._call, Operation.DESCRIBE_CONFIGS, kind, name)
        if refusal is not ErrorCode.NONE:
            return DescribeConfigsResult(
                error_code=refusal, error_message=None, resource_type=kind, resource_name=name
            )
        try:
            settings = self._of(kind, name, tuple(resource.configuration_keys or ()))
        except BrokerError as error:
            return _failed(resource, error)
        return DescribeConfigsResult(resource_type=kind, resource_name=name, configs=settings)

    def _of(self, kind: int, name: str, keys: tuple[str, ...]) -> list[DescribeConfigsResourceResult]:
        source = self._source(kind, name)
        found = self._settings.get((source, keys))
        if found is None:
            views = self._views(kind, name, keys or None)
            found = self._settings[source, keys] = [_setting(view, self._request) for view in views]
        self._told += len(found)
        if self._told > MAX_SETTINGS:
            raise PolicyViolationError(
                f"More than {MAX_SETTINGS} settings in one answer: ask for fewer at once."
            )
        return found

    def _source(self, kind: int, name: str) -> Hashable:
        """What settings come from: those of two resources are the same where this is."""
        if kind == ConfigResource.TOPIC:
            return self._topic(name)
        if kind == ConfigResource.GROUP:
            if not name:
                raise InvalidRequestError("There are no settings for all groups: name one.")
            return "group", frozenset(self._image.group_configs.get(name, {}).items())
        return self._broker(kind, name)

    def _topic(self, name: str) -> Hashable:
        """What a topic's settings come from, if there is such a topic."""
        if not is_topic_name(name):
            raise InvalidTopicError(f"{name[:300]!r} is not the name of a topic.")
        topic = self._image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError  # without words, as in Kafka
        return frozenset(topic.config.items())

    def _broker(self, kind: int, name: str) -> Hashable:
        """The same of a broker, or of all of them."""
        if kind != ConfigResource.BROKER:
            raise InvalidRequestError(NOT_THERE[ConfigResource(kind)])
        return broker_number(self._services, name)

    def _views(self, kind: int, name: str, only: Sequence[str] | None) -> list[ConfigView]:
        node_id, static = self._services.node_id, self._services.metadata.config.properties
        if kind == ConfigResource.TOPIC:
            return topic_config_views(self._image, name, node_id, static, only)
        if kind == ConfigResource.GROUP:
            return group_config_views(self._image, name, self._services.metadata.config, only)
        if not name:
            return cluster_config_views(self._image, only)
        return broker_config_views(self._image, node_id, static, only)


def _failed(resource: DescribeConfigsResource, error: BrokerError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _setting(view: ConfigView, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = view.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=view.name,
        value=view.value,
        read_only=view.read_only,
        config_source=view.source,
        is_sensitive=view.sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=view.type,
        documentation=view.documentation if request.include_documentation else None,
    )
