"""Messages to bytes and back: readers and writers per message and version, compiled when first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.protocol import request_kernel
from ottla.protocol.decoding import Decode, compile_decoder
from ottla.protocol.encoding import Encode, Output, compile_encoder
from ottla.protocol.message import Bytes, Message
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.wire import DecodeError

__all__ = ["DecodeError", "Output", "decoder", "encoder"]

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
_DECODERS: dict[tuple[type[Message], int], Decode] = {}
_ENCODERS: dict[tuple[type[Message], int], Encode] = {}


def decoder(message_class: type[Message], version: int) -> Decode:
    """`decode(buffer, position)` gives the message, or raises `DecodeError`.

    The buffer is bytes, or a writable view of what was received: `records` are views into it, all else is copied.
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

    def shortcut(buffer: Bytes, position: int) -> Any:
        return read(buffer, position, version) or decode(buffer, position)

    return shortcut


def encoder(message_class: type[Message], version: int) -> Encode:
    """`encode(message, output)` writes the message."""
    found = _ENCODERS.get((message_class, version))
    if found is None:
        found = _ENCODERS[message_class, version] = compile_encoder(message_class, version)
    return found
