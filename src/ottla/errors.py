"""Every error ottla raises, with Kafka's code for it.

One base, two branches that are not a client's fault: bytes that are wrong (`CorruptionError`) and a disk that
fails (`StorageError`). Only the api floor turns an error into response bytes; below it they are exceptions.
"""

from __future__ import annotations


class BrokerError(Exception):
    """The base of all of ottla's errors; `code` is Kafka's number for it on the wire."""

    code: int = -1
    retriable: bool = False


class CodedError(BrokerError):
    """An error of which the code says it all."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message or "")
        self.code = code


class ConfigError(BrokerError):
    code = 40  # INVALID_CONFIG


class PipelineError(BrokerError):
    """A pipeline cannot go on."""


class PipelineFileError(ConfigError):
    """A pipeline's file says what cannot be."""


class OffsetOutOfRangeError(BrokerError):
    code = 1


class UnknownTopicOrPartitionError(BrokerError):
    code = 3
    retriable = True


class NotLeaderOrFollowerError(BrokerError):
    code = 6
    retriable = True


class RequestTimedOutError(BrokerError):
    code = 7
    retriable = True


class NotEnoughReplicasError(BrokerError):
    """Fewer replicas are in sync than an append with acks=all asks for; nothing was written."""

    code = 19
    retriable = True


class NotEnoughReplicasAfterAppendError(BrokerError):
    """As before, but the records are in the leader's log."""

    code = 20
    retriable = True


class InvalidRequiredAcksError(BrokerError):
    code = 21


class RecordTooLargeError(BrokerError):
    code = 10  # MESSAGE_TOO_LARGE


class UnpackedTooLargeError(RecordTooLargeError):
    """A batch that would grow past ottla.decompression.max.bytes; docs/decisions/0016 says why it is this code."""


class RecordBatchTooLargeError(BrokerError):
    code = 18  # RECORD_LIST_TOO_LARGE


class OutOfOrderSequenceError(BrokerError):
    code = 45  # OUT_OF_ORDER_SEQUENCE_NUMBER


class PolicyViolationError(BrokerError):
    code = 44


class InvalidProducerEpochError(BrokerError):
    code = 47


class InvalidTxnStateError(BrokerError):
    code = 48


class TransactionCoordinatorFencedError(BrokerError):
    code = 52


class FencedLeaderEpochError(BrokerError):
    """The client's idea of the leader is older than the broker's."""

    code = 74
    retriable = True


class UnknownLeaderEpochError(BrokerError):
    """The client's idea of the leader is newer than the broker's."""

    code = 75
    retriable = True


class UnsupportedCompressionTypeError(BrokerError):
    code = 76


class RefusedRecordsError(BrokerError):
    """Records that are whole but break a rule; `record_errors` names each one by its index in the batch."""

    def __init__(self, message: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(message)
        self.record_errors = record_errors or []


class InvalidRecordError(RefusedRecordsError):
    code = 87


class InvalidTimestampError(RefusedRecordsError):
    code = 32


class UnknownTopicIdError(BrokerError):
    code = 100
    retriable = True


class InconsistentTopicIdError(BrokerError):
    """The log of this name belongs to another topic, made or deleted meanwhile."""

    code = 103
    retriable = True


class UnexpectedAppendOffsetError(BrokerError):
    """A follower was given offsets that do not grow."""


class CorruptionError(BrokerError):
    """Bytes that are not what they claim to be."""

    code = 2  # CORRUPT_MESSAGE
    retriable = True


class CorruptRecordError(CorruptionError):
    """A batch whose length, magic, CRC or records are wrong."""


class DecompressionLimitError(CorruptRecordError):
    """Compressed data that would grow past the cap: a bomb, or a cap set too low."""


class CorruptIndexError(CorruptionError):
    """An index file that contradicts its segment. It can be rebuilt from the segment."""


class CorruptSnapshotError(CorruptionError):
    """A producer snapshot that cannot be read. It can be rebuilt from the segments."""


class CorruptCheckpointError(CorruptionError):
    """A checkpoint file that cannot be read."""


class LogDirNotFoundError(BrokerError):
    """The broker has no log directory of this name."""

    code = 57


class ReplicaNotAvailableError(BrokerError):
    """There is no log here to be moved."""

    code = 9
    retriable = True


class StorageError(BrokerError):
    """The disk said no, or a rule of the log directory is broken."""

    code = 56  # KAFKA_STORAGE_ERROR
    retriable = True


class LogDirOfflineError(StorageError):
    """An earlier I/O error took this log directory offline."""


class DiskFullError(StorageError):
    """There is no room for what was to be written, and nothing of it is there. The log goes on when there is room.

    Clients are told UNKNOWN_SERVER_ERROR: a storage error they would send again until their time is over, and then
    report only that it is over (docs/decisions/0016).
    """

    code = -1
    retriable = False


class LogInUseError(StorageError):
    """A log cannot be cut while its bytes are being sent. They are gone soon: to be tried again."""


class LogDirLockedError(StorageError):
    """Another process holds the log directory."""


class CompactionAbortedError(BrokerError):
    """A cleaning that was called off, or whose log changed meanwhile. Nothing is lost; it can be tried again."""

    retriable = True


class IndexFullError(StorageError):
    """No room for one more entry; the segment must roll."""


# -- what a change of the cluster can be refused for


class InvalidTopicError(BrokerError):
    code = 17  # INVALID_TOPIC_EXCEPTION


class TopicAlreadyExistsError(BrokerError):
    code = 36


class InvalidPartitionsError(BrokerError):
    code = 37


class InvalidReplicationFactorError(BrokerError):
    code = 38


class InvalidReplicaAssignmentError(BrokerError):
    code = 39


class InvalidRequestError(BrokerError):
    code = 42


class TopicDeletionDisabledError(BrokerError):
    code = 73


class BrokerIdNotRegisteredError(BrokerError):
    code = 102


class InconsistentClusterIdError(BrokerError):
    """A log directory that belongs to another cluster or another broker."""

    code = 104


# -- what coordinators refuse


class CoordinatorLoadInProgressError(BrokerError):
    code = 14
    retriable = True


class CoordinatorNotAvailableError(BrokerError):
    code = 15
    retriable = True


class NotCoordinatorError(BrokerError):
    code = 16
    retriable = True


# -- what a client meets


class ConnectionLostError(BrokerError):
    """There is no broker at that address, or it does not answer."""

    code = 13  # NETWORK_EXCEPTION
    retriable = True


class AuthenticationError(BrokerError):
    """The broker does not take this client for who it says it is, or the other way round."""

    code = 58  # SASL_AUTHENTICATION_FAILED


class UnsupportedVersionError(BrokerError):
    """Client and broker have no version of a request in common."""

    code = 35


class ProducerFencedError(BrokerError):
    """Another producer with the same transactional id has taken over."""

    code = 90
