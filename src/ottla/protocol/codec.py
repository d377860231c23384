"""Messages to bytes and back: readers and writers per message and version, compiled when first needed."""

from __future__ import annotations

from ottla.protocol.decoding import Decode, compile_decoder
from ottla.protocol.encoding import Encode, Output, compile_encoder
from ottla.protocol.message import Message
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
        found = _DECODERS[message_class, version] = compile_decoder(message_class, version)
    return found


def encoder(message_class: type[Message], version: int) -> Encode:
    """`encode(message, output)` writes the message."""
    found = _ENCODERS.get((message_class, version))
    if found is None:
        found = _ENCODERS[message_class, version] = compile_encoder(message_class, version)
    return found
