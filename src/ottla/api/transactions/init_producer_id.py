"""InitProducerId, v0 to v5: an id for an idempotent producer, that no producer had before; or, with a transactional
id, the id that goes with it and a new epoch, after which no producer with an older one can do anything.

From v3 on a producer that has an id gives it with its epoch, or neither. Without a transactional id the answer is a
new id with epoch 0 all the same.

A connection that asks for very many is answered and then not read for a while, as Kafka does with what exceeds a quota.
"""

from __future__ import annotations

import logging

from ottla.api.access import CLUSTER_NAME, Operation, Resource
from ottla.api.call import PENDING, Call
from ottla.api.registry import api
from ottla.api.services import Services
from ottla.coordinator.transactions.transaction import Expected
from ottla.errors import BrokerError
from ottla.internal_topics.transaction_records import Transaction
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1
_FENCED_SINCE = 4  # clients before do not know PRODUCER_FENCED
_FREE_IDS = 1000  # for one connection: producers ask for one when they begin, and after some errors
_PACE_MS = 10  # between those after them

log = logging.getLogger(__name__)


@api(ApiKey.INIT_PRODUCER_ID)
def init_producer_id(services: Services, call: Call, request: InitProducerIdRequest) -> object:
    code = _refusal(services, call, request)
    if code is not ErrorCode.NONE:
        return _failed(code)
    call.peer.producer_ids += 1
    if call.peer.producer_ids > _FREE_IDS:
        call.throttle_ms = _PACE_MS
    if request.transactional_id is None:
        _idempotent(services, call)
    else:
        _transactional(services, call, request, request.transactional_id)
    return PENDING


def _failed(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=_NONE)


def _idempotent(services: Services, call: Call) -> None:
    def done(producer_id: int | None, error: BaseException | None) -> None:
        if producer_id is None:
            log.error("no block of producer ids could be taken from the metadata store", exc_info=error)
            # The one on which an idempotent producer tries again.
            call.reply(_failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            call.reply(
                InitProducerIdResponse(
                    throttle_time_ms=call.throttle_ms, producer_id=producer_id, producer_epoch=0
                )
            )

    services.metadata.next_producer_id(done)


def _transactional(
    services: Services, call: Call, request: InitProducerIdRequest, transactional_id: str
) -> None:
    expected = None
    if request.producer_id != _NONE:
        expected = Expected(request.producer_id, request.producer_epoch)

    def reply(txn: Transaction | None, error: BrokerError | None) -> None:
        if txn is not None:
            call.reply(
                InitProducerIdResponse(
                    throttle_time_ms=call.throttle_ms,
                    producer_id=txn.producer_id,
                    producer_epoch=txn.producer_epoch,
                )
            )
            return
        code = ErrorCode.UNKNOWN_SERVER_ERROR if error is None else error.code
        if code == ErrorCode.PRODUCER_FENCED and call.version < _FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        call.reply(_failed(code))

    services.transactions.init_producer(transactional_id, request.transaction_timeout_ms, expected, reply)


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
    longest_ms = services.config.transaction_max_timeout_ms
    if transactional_id is not None and not 0 < request.transaction_timeout_ms <= longest_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE
