"""Messages to bytes and back: readers and writers per message and version, compiled when first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.names import Bytes
from ottla.protocol import request_kernel
from ottla.protocol.decoding import Decode, DecodeSlowly, compile_decoder, compile_slow_decoder
from ottla.protocol.encoding import Encode, EncodeSlowly, Output, compile_encoder, compile_slow_encoder
from ottla.protocol.message import Message
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.wire import MAX_ELEMENTS, DecodeError, TooManyElementsError

__all__ = [
    "MAX_ELEMENTS", "DecodeError", "Output", "TooManyElementsError", "decoder", "encoder", "slow_decoder",
    "slow_encoder",
]  # fmt: skip

Shortcut = Callable[[Bytes, int, int], Message | None]  # buffer, position, version

# Interpreted, they are none.
_SHORTCUTS: dict[type[Message], Shortcut] = (
    {
        ProduceRequest: request_kernel.read_produce,
        OffsetCommitRequest: request_kernel.read_offset_commit,
    }
    if request_kernel.COMPILED
    else {}
)
_FEW_TOPICS = 3  # too few to be counted: the shortcuts read at most 126 partitions of a topic
_DECODERS: dict[tuple[type[Message], int], Decode] = {}
_ENCODERS: dict[tuple[type[Message], int], Encode] = {}
_SLOW_DECODERS: dict[tuple[type[Message], int], DecodeSlowly] = {}
_SLOW_ENCODERS: dict[tuple[type[Message], int], EncodeSlowly] = {}


def decoder(message_class: type[Message], version: int) -> Decode:
    """`decode(buffer, position)` gives the message, or raises `DecodeError`.

    A third argument is how many elements the message may have, at least a few hundred: with more it raises
    `TooManyElementsError`. The buffer is bytes, or a writable view of what was received: `records` are views into it,
    all else is copied.
    """
    found = _DECODERS.get((message_class, version))
    if found is None:
        found = compile_decoder(message_class, version)
        shortcut = _SHORTCUTS.get(message_class)
        if shortcut is not None and version >= message_class.FLEXIBLE_SINCE:
            found = _with_shortcut(found, shortcut, version)
        _DECODERS[message_class, version] = found
    return found


def _with_shortcut(decode: Decode, read: Shortcut, version: int) -> Decode:
    """The hottest of all requests are read by the kernel, if they are as they usually are."""

    def shortcut(buffer: Bytes, position: int, room: int = MAX_ELEMENTS) -> Any:
        found = read(buffer, position, version)
        if found is None or (room < MAX_ELEMENTS and _has_more(found, room)):
            return decode(buffer, position, room)
        return found

    return shortcut


def _has_more(request: Any, room: int) -> bool:
    """Whether a request that was read by a shortcut has more elements than that."""
    if type(request) is ProduceRequest:
        topics = request.topic_data
        return len(topics) > _FEW_TOPICS and sum(len(topic.partition_data) + 1 for topic in topics) > room
    topics = request.topics
    return len(topics) > _FEW_TOPICS and sum(len(topic.entries) + 1 for topic in topics) > room


def encoder(message_class: type[Message], version: int) -> Encode:
    """`encode(message, output)` writes the message."""
    found = _ENCODERS.get((message_class, version))
    if found is None:
        found = _ENCODERS[message_class, version] = compile_encoder(message_class, version)
    return found


def slow_decoder(message_class: type[Message], version: int) -> DecodeSlowly:
    """As `decoder`, for a message of very many elements: a generator that stops now and then.

    It returns the message and the number of its elements.
    """
    found = _SLOW_DECODERS.get((message_class, version))
    if found is None:
        found = _SLOW_DECODERS[message_class, version] = compile_slow_decoder(message_class, version)
    return found


def slow_encoder(message_class: type[Message], version: int) -> EncodeSlowly:
    """As `encoder`, likewise."""
    found = _SLOW_ENCODERS.get((message_class, version))
    if found is None:
        found = _SLOW_ENCODERS[message_class, version] = compile_slow_encoder(message_class, version)
    return found
