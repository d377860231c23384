"""Ending transactions, also from a process other than the one that began them."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.cluster import TRANSACTION, Cluster
from ottla.client.failures import check
from ottla.errors import ProducerFencedError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.end_txn import EndTxnRequest

_END = 4  # the last version that does not give the producer a new epoch
_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


@dataclass(frozen=True)
class HeldTransaction:
    """A transaction that is open, to be ended from elsewhere."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def end_transaction(cluster: Cluster, held: HeldTransaction, *, committed: bool) -> None:
    """Commit or abort an open transaction. Doing it twice does no harm."""
    name = held.transactional_id
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=held.producer_id,
        producer_epoch=held.producer_epoch,
        committed=committed,
    )

    def end() -> None:
        answer = cluster.ask(cluster.coordinator(TRANSACTION, name), request, _END)
        check_producer(answer.error_code, f"the end of transaction {name}", name)

    cluster.retrying(end)


def check_producer(code: int, what: str, transactional_id: str | None, detail: str | None = None) -> None:
    """Raise what a broker said to a producer, if it said no."""
    if code in _FENCED and transactional_id is not None:
        raise ProducerFencedError(
            f"{what}: another producer has taken over {transactional_id}, or the transaction has run out of time"
        )
    check(code, what, detail)
