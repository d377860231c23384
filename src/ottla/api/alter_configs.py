"""AlterConfigs (v0 to v2) and IncrementalAlterConfigs (v0 to v1): settings changed for good.

AlterConfigs gives all settings of a resource and resets what it does not name; IncrementalAlterConfigs sets, resets,
adds to and takes from single ones. A change takes effect without a restart, and is answered when it has. Each
resource changes whole or not at all. The answer has the order of the request.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ottla.api.access import Operation
from ottla.api.call import PENDING, Call
from ottla.api.configs import NOT_THERE, ConfigResource, broker_number, configs_refusal
from ottla.api.registry import api
from ottla.api.services import Services
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
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import alter_configs as whole
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.storage.layout import is_topic_name

log = logging.getLogger(__name__)


class _Wanted(NamedTuple):
    """One resource of a request."""

    resource_type: int
    name: str
    changes: list[Alteration]
    whole: bool


class _Answer(NamedTuple):
    """What became of one."""

    resource_type: int
    resource_name: str
    error_code: int = ErrorCode.NONE
    error_message: str | None = None


@api(33)
def alter_configs(services: Services, call: Call, request: whole.AlterConfigsRequest) -> object:
    wanted = [
        _Wanted(
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, config.value) for config in resource.configs],
            whole=True,
        )
        for resource in request.resources
    ]

    def reply(answers: list[_Answer]) -> None:
        responses = [whole.AlterConfigsResourceResponse(**answer._asdict()) for answer in answers]
        call.reply(whole.AlterConfigsResponse(responses=responses))

    _alter(services, call, wanted, request.validate_only, reply)
    return PENDING


@api(44)
def incremental_alter_configs(
    services: Services, call: Call, request: incremental.IncrementalAlterConfigsRequest
) -> object:
    wanted = [
        _Wanted(
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, config.value, config.config_operation) for config in resource.configs],
            whole=False,
        )
        for resource in request.resources
    ]

    def reply(answers: list[_Answer]) -> None:
        responses = [incremental.AlterConfigsResourceResponse(**answer._asdict()) for answer in answers]
        call.reply(incremental.IncrementalAlterConfigsResponse(responses=responses))

    _alter(services, call, wanted, request.validate_only, reply)
    return PENDING


def _alter(
    services: Services,
    call: Call,
    wanted: list[_Wanted],
    validate_only: bool,
    reply: Callable[[list[_Answer]], None],
) -> None:
    """Refuse what is not ours to change, let the cluster change the rest, and answer in the order asked."""
    counts = Counter((one.resource_type, one.name) for one in wanted)
    answers: list[_Answer] = []
    places: list[int] = []  # of the alterations, among the answers
    alterations: list[Alterations] = []
    for one in wanted:
        answer = _Answer(one.resource_type, one.name)
        refusal = configs_refusal(services, call, Operation.ALTER_CONFIGS, one.resource_type, one.name)
        if refusal is not ErrorCode.NONE:
            answer = answer._replace(error_code=refusal, error_message="Authorization failed.")
        else:
            try:
                if counts[one.resource_type, one.name] > 1:
                    raise InvalidRequestError("Each resource may be given only once.")
                alterations.append(_alteration(services, one))
                places.append(len(answers))
            except BrokerError as error:
                answer = answer._replace(error_code=error.code, error_message=str(error))
        answers.append(answer)

    def command(image: ClusterImage) -> Outcome:
        config = services.metadata.config
        return config_changes.alter_configs(image, alterations, config, validate_only=validate_only)

    def done(outcome: Outcome | None, error: BaseException | None) -> None:
        if outcome is None:
            log.error("settings could not be changed", exc_info=error)
        for number, place in enumerate(places):
            code, message = (
                (ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
                if outcome is None
                else (outcome.results[number].error_code, outcome.results[number].error_message)
            )
            answers[place] = answers[place]._replace(error_code=code, error_message=message)
        reply(answers)

    if alterations:
        services.metadata.change(command, done)
    else:
        reply(answers)


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
