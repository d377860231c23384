"""Types and contracts of the compiled readers; request_kernel.py says what they are for.

All give None for anything they do not read: whether that is wrong or only unusual, others find out. They never look
at or past the end of the frame.
"""

from collections.abc import Mapping

from ottla.names import Bytes
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.produce import ProduceRequest

COMPILED: bool

def read_header(
    frame: Bytes, flexible_since: Mapping[int, int]
) -> tuple[int, int, int, str | None, int] | None:
    """API, version, correlation id, client id and the position of the body; headers have no tags.

    `flexible_since` has, by API, the first version whose header could have some.
    """

def read_produce(frame: Bytes, position: int, version: int) -> ProduceRequest | None:
    """A Produce request, v9 or later: no transaction, no tags, not more than 126 of anything, records everywhere.

    `records` are views into the frame, which must be one itself.
    """

def read_offset_commit(frame: Bytes, position: int, version: int) -> OffsetCommitRequest | None:
    """An OffsetCommit request, v8 or later: metadata everywhere, no tags, not more than 126 of anything or bytes of
    any string.

    Its topics are of the kind of commit_topic.py.
    """
