"""The gate that records pass before an append: may this client write here, does the partition exist, is the form right.

The order of these checks is Kafka's. Single requests and runs of them (runs.py) come through here alike.
"""

from __future__ import annotations

import uuid
from struct import Struct
from typing import Final

from ottla.api.access import Operation, Resource
from ottla.api.call import Peer
from ottla.api.services import Services
from ottla.protocol.errors import ErrorCode
from ottla.records import batch
from ottla.records.compression.codec import Codec
from ottla.records.legacy.conversion import NO_BATCH, batch_size

ONE_BATCH_SINCE: Final = 3
TOPIC_IDS_SINCE: Final = 13
_ZSTD_SINCE: Final = 7
_NONE: Final = ErrorCode.NONE
_WRITE: Final = Operation.WRITE
_TOPIC: Final = Resource.TOPIC
_FORM: Final = Struct(">8xi4xb4xh")  # length, magic, attributes


def check_topic(
    services: Services, peer: Peer, name: str | None, topic_id: uuid.UUID | None
) -> tuple[str, int, ErrorCode]:
    """The topic's name, how many partitions it has (0: it does not exist), and what is against writing to it.

    A topic is found by its id where there is no name.
    """
    image = services.metadata.image
    topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
    if topic is not None:
        name = topic.name
    elif name is None:
        return "", 0, ErrorCode.UNKNOWN_TOPIC_ID
    if not services.authorizer.allows(peer, _WRITE, _TOPIC, name):
        return name, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return name, 0 if topic is None else len(topic.partitions), _NONE


def is_usual(records: memoryview | None, version: int) -> bool:
    """Whether this is one whole batch of the kind that nearly all are, seen from its header alone: no `check_form`."""
    if records is None or len(records) < batch.HEADER_SIZE:
        return False
    length, magic, attributes = _FORM.unpack_from(records)
    return (
        magic == batch.MAGIC_V2
        and length + batch.OVERHEAD_SIZE == len(records)
        and not attributes & batch.TRANSACTIONAL
        and version >= _ZSTD_SINCE
    )


def check_form(records: memoryview | None, version: int) -> tuple[ErrorCode, str | None]:
    """What is wrong with the form of `records` for a client of this version."""
    if version < ONE_BATCH_SINCE:
        return _NONE, None
    size = 0 if records is None else batch_size(records, 0)
    if records is None or size == 0:
        return ErrorCode.INVALID_RECORD, f"Produce v{version} must carry a record batch for each partition"
    if size == NO_BATCH:
        return ErrorCode.CORRUPT_MESSAGE, "the records do not begin with a batch"
    if records[batch.MAGIC_AT] != batch.MAGIC_V2:
        return ErrorCode.INVALID_RECORD, f"Produce v{version} carries record batches of magic 2 only"
    attributes = records[batch.ATTRIBUTES_AT + 1] if size >= batch.HEADER_SIZE else 0
    if version < _ZSTD_SINCE and attributes & batch.CODEC_MASK == Codec.ZSTD:
        text = f"Produce v{version} cannot carry zstd, v{_ZSTD_SINCE} can"
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text
    if size < len(records) and (behind := batch_size(records, size)):
        if behind == NO_BATCH:
            return ErrorCode.CORRUPT_MESSAGE, "what follows the batch is none"
        text = f"Produce v{version} carries one record batch for each partition only"
        return ErrorCode.INVALID_RECORD, text
    return _NONE, None
