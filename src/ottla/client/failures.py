"""What a client may meet, as errors; and which of it passes by itself."""

from __future__ import annotations

from ottla.errors import BrokerError, CodedError, CorruptionError
from ottla.protocol.errors import ErrorCode

# Errors that pass when the client asks for metadata again, or waits a little.
TRANSIENT = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
)


def check(code: int, what: str, detail: str | None = None) -> None:
    """Raise what a broker said, if it said no."""
    if code:
        raise CodedError(code, f"{what}: {name_of(code)}" + (f", {detail}" if detail else ""))


def name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def is_transient(error: BrokerError) -> bool:
    """Whether the same request may do better a moment later."""
    return error.code in TRANSIENT and not isinstance(error, CorruptionError)
