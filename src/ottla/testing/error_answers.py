"""Answers that say nothing but an error: the request's own topics and partitions, each with the code.

Made from the tables of fields, so that every API and version is served by the same few lines. A part of a response
stands for the part of the request that it names: by name, by number, or by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Field, Message
from ottla.protocol.messages import response_class

# By which fields a part of a request or of a response says what it is about; some have several names.
_NAMES = {
    "group_id": "group_id",
    "index": "partition",
    "key": "key",
    "name": "name",
    "partition": "partition",
    "partition_index": "partition",
    "producer_id": "producer_id",
    "resource_name": "resource_name",
    "resource_type": "resource_type",
    "topic": "name",
    "topic_id": "topic_id",
    "topic_name": "name",
    "transactional_id": "transactional_id",
}
_CODES = ("error_code", "partition_error_code")


def error_answer(api_key: int, request: Message, code: ErrorCode) -> Message:
    """The response to this request in which everything that was asked for has failed with `code`."""
    return _answer(response_class(api_key), request, code)


def fail_topics(metadata_response: Any, code: ErrorCode) -> Any:
    """Metadata says where the brokers are, also when it has nothing good to say about topics: those alone fail."""
    for topic in metadata_response.topics:
        topic.error_code = code
        topic.partitions = []
    return metadata_response


def _answer(cls: type[Message], asked: object, code: ErrorCode) -> Message:
    values: dict[str, Any] = {}
    told_in_parts = False
    for field in cls.FIELDS:
        if (meaning := _NAMES.get(field.name)) is not None:
            values[field.name] = _named(asked, meaning)
        elif field.array and field.of is not None and _has_error(field.of):
            parts = [_answer(field.of, part, code) for part in _parts(asked, field.of)]
            values[field.name] = parts
            told_in_parts = told_in_parts or bool(parts)
        elif field.name == "error_message":
            values[field.name] = f"{code.name}, as the test wants it"
    if not told_in_parts:
        values.update({field.name: code for field in cls.FIELDS if field.name in _CODES})
    answer = cls()
    for name, value in values.items():
        if value is not None:
            setattr(answer, name, value)
    return answer


def _has_error(cls: type[Message]) -> bool:
    return any(
        field.name in _CODES or (field.array and field.of is not None and _has_error(field.of))
        for field in cls.FIELDS
    )


def _meanings(cls: type[Message]) -> set[str]:
    return {_NAMES[field.name] for field in cls.FIELDS if field.name in _NAMES}


def _named(asked: object, meaning: str) -> object:
    """What a part of the request is called; a bare name or number in a list means the part, never its producer."""
    if not isinstance(asked, Message):
        return None if meaning == "producer_id" else asked
    return next((getattr(asked, f.name) for f in asked.FIELDS if _NAMES.get(f.name) == meaning), None)


def _parts(asked: object, cls: type[Message]) -> Iterator[object]:
    """The parts of what was asked that a list of such answers stands for."""
    if not isinstance(asked, Message):
        return
    for field in asked.FIELDS:
        items = getattr(asked, field.name) if field.array else None
        if not items:
            continue
        if _stands_for(cls, field):
            yield from items
        else:  # what is asked for lies deeper, as the topics of AlterReplicaLogDirs do in their directories
            for item in items:
                yield from _parts(item, cls)
        return


def _stands_for(cls: type[Message], field: Field) -> bool:
    mine = _meanings(cls)
    return (
        bool(mine & _meanings(field.of))
        if field.of is not None
        else len(mine - {"topic_id", "producer_id"}) == 1
    )
