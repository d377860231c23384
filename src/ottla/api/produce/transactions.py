"""Whether the records of a produce request may go into the transaction that they say they are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct

from ottla.api.call import Call
from ottla.api.services import Services
from ottla.coordinator.transactions.transaction import Expected
from ottla.coordinator.transactions.verification import Supports
from ottla.names import Bytes, TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest
from ottla.records import batch

_SUPPORTS = {11: Supports.ABORTABLE, 12: Supports.ADDING, 13: Supports.ADDING}
_NOT_VERIFIED = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_PRODUCER = Struct(">43xqhi")  # id, epoch, sequence

Refused = Mapping[TopicPartition, tuple[ErrorCode, str | None]]


def check_transaction(
    services: Services,
    call: Call,
    request: ProduceRequest,
    entries: Sequence[tuple[TopicPartition, Bytes]],
    done: Callable[[Refused], None],
) -> None:
    """Ask the coordinator about partitions that are new to a transaction; `done` with those to be left out."""
    producers: dict[Expected, dict[TopicPartition, int]] = {}
    for key, records in entries:
        hosted = services.replicas.partition(key)
        if hosted is not None and hosted.is_leader and is_transactional(records):
            producer_id, epoch, sequence = _PRODUCER.unpack_from(records)
            producers.setdefault(Expected(producer_id, epoch), {})[key] = sequence
    if len(producers) > 1:
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        done({key: (code, "the records are of several producers") for key, _ in entries})
        return
    transactional_id = request.transactional_id
    supports = _SUPPORTS.get(call.version, Supports.OLD_ERRORS)
    if not producers or transactional_id is None or not is_asked_for(services, supports):
        done({})
        return
    ((producer, sequences),) = producers.items()

    def checked(codes: dict[TopicPartition, int]) -> None:
        done({key: _told(ErrorCode(code), supports) for key, code in codes.items() if code})

    services.verifier.check(transactional_id, producer, sequences, supports, checked)


def is_asked_for(services: Services, supports: Supports) -> bool:
    """Whether coordinators are asked. Clients that count on being added by it cannot do without."""
    return (
        supports is Supports.ADDING
        or services.metadata.broker_config.transaction_partition_verification_enable
    )


def is_transactional(records: Bytes) -> bool:
    """Whether a batch of magic 2 says that it is part of a transaction."""
    return len(records) >= batch.HEADER_SIZE and bool(records[batch.ATTRIBUTES_AT + 1] & batch.TRANSACTIONAL)


def _told(code: ErrorCode, supports: Supports) -> tuple[ErrorCode, str | None]:
    is_unknown = supports is not Supports.ADDING and code is ErrorCode.CONCURRENT_TRANSACTIONS
    if code in _NOT_VERIFIED or is_unknown:
        # Clients of any age send the records again then.
        return ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction could not be verified: {code.name}"
    return code, "the records are of no open transaction in this partition"
