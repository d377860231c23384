"""Messages to bytes and back: readers and writers per message and version, compiled when first needed."""

from __future__ import annotations

from typing import Any

from ottla.protocol import request_kernel
from ottla.protocol.decoding import Decode, compile_decoder
from ottla.protocol.encoding import Encode, Output, compile_encoder
from ottla.protocol.message import Bytes, Message
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.wire import DecodeError

__all__ = ["DecodeError", "Output", "decoder", "encoder"]


_DECODERS: dict[tuple[type[Message], int], Decode] = {}
_ENCODERS: dict[tuple[type[Message], int], Encode] = {}


def decoder(message_class: type[Message], version: int) -> Decode:
    """`decode(buffer, position)` gives the message, or raises `DecodeError`.

    The buffer is bytes, or a writable view of what was received: `records` are views into it, all else is copied.
    """
    found = _DECODERS.get((message_class, version))
    if found is None:
        found = compile_decoder(message_class, version)
        if message_class is ProduceRequest and version >= ProduceRequest.FLEXIBLE_SINCE:
            found = _with_shortcut(found, version)
        _DECODERS[message_class, version] = found
    return found


def _with_shortcut(decode: Decode, version: int) -> Decode:
    """The hottest of all requests is read by the kernel, where that is compiled, if it is as they usually are."""
    if not request_kernel.COMPILED:
        return decode

    def shortcut(buffer: Bytes, position: int) -> Any:
        return request_kernel.read_produce(buffer, position, version) or decode(buffer, position)

    return shortcut


def encoder(message_class: type[Message], version: int) -> Encode:
    """`encode(message, output)` writes the message."""
    found = _ENCODERS.get((message_class, version))
    if found is None:
        found = _ENCODERS[message_class, version] = compile_encoder(message_class, version)
    return found
