"""InitProducerId, v0 to v5: an id for an idempotent producer, that no producer had before.

From v3 on a producer that has an id gives it with its epoch, or neither. Without a transactional id the answer is a
new id with epoch 0 all the same.

Transactional ids are not there yet. They are answered with UNSUPPORTED_VERSION: of all codes it is the one that makes
clients give up at once and say that the broker cannot do it, where a coordinator's code would have them wait and try
again until their own timeout.
"""

from __future__ import annotations

import logging

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1

log = logging.getLogger(__name__)


@api(22)
def init_producer_id(services: Services, call: Call, request: InitProducerIdRequest) -> object:
    if (code := _refusal(services, call, request)) is not ErrorCode.NONE:
        return InitProducerIdResponse(error_code=code, producer_epoch=_NONE)

    def done(producer_id: int | None, error: BaseException | None) -> None:
        if producer_id is None:
            log.error("no block of producer ids could be taken from the metadata store", exc_info=error)
            code = (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )  # the one on which an idempotent producer tries again
            call.reply(InitProducerIdResponse(error_code=code, producer_epoch=_NONE))
        else:
            call.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    services.metadata.next_producer_id(done)
    return PENDING


def _refusal(services: Services, call: Call, request: InitProducerIdRequest) -> ErrorCode:
    allows, peer = services.authorizer.allows, call.peer
    transactional_id = request.transactional_id
    if transactional_id is not None:
        if transactional_id and not allows(
            peer, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id
        ):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not allows(peer, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    half_given = (request.producer_id == _NONE) != (request.producer_epoch == _NONE)
    if half_given or transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if transactional_id is None else ErrorCode.UNSUPPORTED_VERSION
