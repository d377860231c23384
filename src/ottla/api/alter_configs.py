"""AlterConfigs (v0 to v2) and IncrementalAlterConfigs (v0 to v1): settings changed for good.

AlterConfigs gives all settings of a resource and resets what it does not name; IncrementalAlterConfigs sets, resets,
adds to and takes from single ones. A change takes effect without a restart, and is answered when it has. Each
resource changes whole or not at all. The answer has the order of the request.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from ottla.api.access import Operation
from ottla.api.call import PENDING, Call
from ottla.api.configs import NOT_THERE, ConfigResource, broker_number, configs_refusal
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.api.slow_answers import SLICE, answer_in_slices
from ottla.cluster import config_changes
from ottla.cluster.config_changes import (
    Alteration,
    Alterations,
    BrokerAlterations,
    GroupAlterations,
    TopicAlterations,
)
from ottla.cluster.image import ClusterImage
from ottla.cluster.outcome import Outcome
from ottla.errors import BrokerError, InvalidRequestError, InvalidTopicError
from ottla.names import is_topic_name
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import alter_configs as whole
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.slices import Steps

_Answer = whole.AlterConfigsResourceResponse

log = logging.getLogger(__name__)


class _Wanted(NamedTuple):
    """One resource of a request."""

    resource_type: int
    name: str
    changes: list[Alteration]
    whole: bool


@api(ApiKey.ALTER_CONFIGS)
def alter_configs(services: Services, call: Call, request: whole.AlterConfigsRequest) -> object:
    wanted = (
        _Wanted(
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, config.value) for config in resource.configs],
            whole=True,
        )
        for resource in request.resources
    )
    counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)

    def reply(answers: list[_Answer]) -> None:
        call.reply(whole.AlterConfigsResponse(responses=answers))

    steps = _alter(services, call, wanted, counts, request.validate_only, reply)
    return answer_in_slices(services, call, steps)


@api(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def incremental_alter_configs(
    services: Services, call: Call, request: incremental.IncrementalAlterConfigsRequest
) -> object:
    wanted = (
        _Wanted(
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, config.value, config.config_operation) for config in resource.configs],
            whole=False,
        )
        for resource in request.resources
    )
    counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)

    def reply(answers: list[_Answer]) -> None:
        # They have the same fields.
        call.reply(incremental.IncrementalAlterConfigsResponse(responses=cast(Any, answers)))

    steps = _alter(services, call, wanted, counts, request.validate_only, reply)
    return answer_in_slices(services, call, steps)


def _alter(
    services: Services,
    call: Call,
    wanted: Iterable[_Wanted],
    counts: Counter[tuple[int, str]],
    validate_only: bool,
    reply: Callable[[list[_Answer]], None],
) -> Steps:
    """Refuse what is not ours to change, let the cluster change the rest, and answer in the order asked."""
    answers: list[_Answer] = []
    places: list[_Answer] = []  # of the alterations
    alterations: list[Alterations] = []
    for one in wanted:
        answer = _Answer(resource_type=one.resource_type, resource_name=one.name, error_message=None)
        refusal = configs_refusal(services, call, Operation.ALTER_CONFIGS, one.resource_type, one.name)
        if refusal is not ErrorCode.NONE:
            answer.error_code, answer.error_message = refusal, "Authorization failed."
        else:
            try:
                if counts[one.resource_type, one.name] > 1:
                    raise InvalidRequestError("Each resource may be given only once.")
                alterations.append(_alteration(services, one))
                places.append(answer)
            except BrokerError as error:
                answer.error_code, answer.error_message = error.code, str(error)
        answers.append(answer)
        if len(answers) % SLICE == 0:
            yield

    def command(image: ClusterImage) -> Outcome:
        config = services.metadata.config
        return config_changes.alter_configs(image, alterations, config, validate_only=validate_only)

    def done(outcome: Outcome | None, error: BaseException | None) -> None:
        if outcome is None:
            log.error("settings could not be changed", exc_info=error)
        for number, answer in enumerate(places):
            if outcome is None:
                answer.error_code, answer.error_message = ErrorCode.UNKNOWN_SERVER_ERROR, str(error)
            else:
                result = outcome.results[number]
                answer.error_code, answer.error_message = result.error_code, result.error_message
        reply(answers)

    if alterations:
        services.metadata.change(command, done)
    else:
        reply(answers)
    return PENDING


def _alteration(services: Services, one: _Wanted) -> Alterations:
    if one.resource_type == ConfigResource.TOPIC:
        if not one.name:
            raise InvalidRequestError("Topics have no settings in common: a name is needed.")
        if not is_topic_name(one.name):
            raise InvalidTopicError(f"{one.name[:300]!r} is not the name of a topic.")
        return TopicAlterations(one.name, one.changes, one.whole)
    if one.resource_type == ConfigResource.GROUP:
        return GroupAlterations(one.name, one.changes, one.whole)
    if one.resource_type == ConfigResource.BROKER:
        return BrokerAlterations(broker_number(services, one.name), one.changes, one.whole)
    known = one.resource_type in set(ConfigResource)
    raise InvalidRequestError(
        NOT_THERE[ConfigResource(one.resource_type)]
        if known
        else f"{one.resource_type} is not a type of resource."
    )
