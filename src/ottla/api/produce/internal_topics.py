"""Records that a client writes into an internal topic itself: only those that a coordinator will understand.

A record that it cannot read would be left out when the partition is loaded, and with it what it says of a group or a
transaction. Whoever writes it should learn that now.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence

from ottla.api.services import Services
from ottla.errors import BrokerError
from ottla.internal_topics.decoding import reader_for
from ottla.internal_topics.fields import MalformedError
from ottla.names import Bytes, TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.records import kernel
from ottla.storage.batch_reader import read_records

Entries = Sequence[tuple[TopicPartition, Bytes]]
Refused = Mapping[TopicPartition, tuple[ErrorCode, str | None]]


def check_internal(services: Services, entries: Entries, done: Callable[[Refused], None]) -> None:
    """Look at each record of the internal topics, on another thread; `done` with the partitions to be left out."""

    def told(refused: Refused | None, error: BaseException | None) -> None:
        if error is not None:
            raise error
        done(refused or {})

    services.runtime.run_blocking(lambda: _refused(entries), told)


def _refused(entries: Entries) -> Refused:
    found = {key: _what_is_wrong(key.topic, records) for key, records in entries}
    return {key: (ErrorCode.INVALID_RECORD, text) for key, text in found.items() if text is not None}


def _what_is_wrong(topic: str, records: Bytes) -> str | None:
    """Damaged batches are none of this module's business: the append refuses them."""
    read, rows = reader_for(topic), array("q", bytes(8 * kernel.ROW))
    position = 0
    while read is not None and kernel.scan(records, position, len(records), rows, kernel.CHECK_CRC)[0]:
        end = position + rows[kernel.SIZE]
        try:
            for number, record in enumerate(read_records(memoryview(records)[position:end], rows)):
                try:
                    read(record.key, record.value)
                except MalformedError as error:
                    return f"record {number} is none of {topic}: {error}"
        except BrokerError:
            return None
        position = end
    return None
