"""Frames: a length, a header, and a message. Both ends: what a broker reads and writes, and what a client does.

A frame here is what follows the length. Response headers have a correlation id and, with the flexible encoding, tags;
except that of ApiVersions, which a client must understand before it knows what the broker speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache
from struct import Struct
from typing import Any, Final

from ottla.names import Bytes
from ottla.protocol import request_kernel
from ottla.protocol.codec import DecodeError, Output, decoder, encoder, slow_encoder
from ottla.protocol.message import Message
from ottla.protocol.messages import APIS, request_class, response_class
from ottla.protocol.wire import MAX_ELEMENTS, SLICE, skip_tags

API_VERSIONS: Final = 18
CORRELATION_ID_AT: Final = 4  # in a response, behind its length
_REQUEST_HEAD: Final = Struct(">hhih")
_RESPONSE_HEAD: Final = Struct(">ii")
_LENGTH: Final = Struct(">i")
_FLEXIBLE_SINCE: Final = {api.key: api.flexible_since for api in APIS.values()}

Respond = Callable[[int, Message], list[Bytes]]  # correlation id, message
RespondSlowly = Callable[[int, Message], Generator[None, None, list[Bytes]]]


class RequestHeader:
    """Who asks for what, and where in the frame the request itself begins."""

    __slots__ = ("api_key", "body_position", "client_id", "correlation_id", "version")

    def __init__(
        self, api_key: int, version: int, correlation_id: int, client_id: str | None, body_position: int
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body_position = body_position

    @classmethod
    def parse(cls, frame: Bytes) -> RequestHeader:
        """Read the header of a frame. APIs that are not known are taken to have no tags in it."""
        return cls(*read_header(frame))


def read_header(frame: Bytes) -> tuple[int, int, int, str | None, int]:
    """The same as a tuple, in the order of `RequestHeader`."""
    if request_kernel.COMPILED:
        usual = request_kernel.read_header(frame, _FLEXIBLE_SINCE)
        if usual is not None:
            return usual
    size = len(frame)
    if size < _REQUEST_HEAD.size:
        raise DecodeError(f"a request of {size} bytes has no whole header")
    api_key, version, correlation_id, length = _REQUEST_HEAD.unpack_from(frame)
    position = 10
    client_id = None
    if length >= 0:
        position += length
        if position > size:
            raise DecodeError(f"a client id of {length} bytes in a request of {size}")
        try:
            client_id = str(frame[10:position], "utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError("the client id is not UTF-8") from error
    if version >= _FLEXIBLE_SINCE.get(api_key, 32767):
        position = _after_tags(frame, position)
    return api_key, version, correlation_id, client_id, position


def _after_tags(frame: Bytes, position: int) -> int:
    try:
        count = frame[position]
        position += 1
        if count:
            position, _ = skip_tags(frame, position, count, MAX_ELEMENTS)
    except IndexError as error:
        raise DecodeError("the header has no whole tags") from error
    return position


def decode_request(header: RequestHeader, frame: Bytes) -> Any:
    """The request behind a header; its version must be one of `APIS`."""
    return decoder(request_class(header.api_key), header.version)(frame, header.body_position)


def _response_tags(api_key: int, version: int) -> bytes:
    # An ApiVersions response keeps the old header, so that a client of any age can read it.
    return b"\0" if version >= _FLEXIBLE_SINCE[api_key] and api_key != API_VERSIONS else b""


@cache
def responder(api_key: int, version: int) -> Respond:
    """What makes whole responses of one kind out of a correlation id and a message, to be written in order."""
    encode = encoder(response_class(api_key), version)
    tags = _response_tags(api_key, version)

    def respond(correlation_id: int, message: Message) -> list[Bytes]:
        output = Output()
        data = output.data
        data += _RESPONSE_HEAD.pack(0, correlation_id)
        data += tags
        encode(message, output)
        _LENGTH.pack_into(data, 0, len(output) - 4)
        return output.parts()

    return respond


@cache
def slow_responder(api_key: int, version: int) -> RespondSlowly:
    """As `responder`, for responses of very many elements: a generator that stops now and then."""
    encode = slow_encoder(response_class(api_key), version)
    tags = _response_tags(api_key, version)

    def respond(correlation_id: int, message: Message) -> Generator[None, None, list[Bytes]]:
        output = Output()
        data = output.data
        data += _RESPONSE_HEAD.pack(0, correlation_id)
        data += tags
        yield from encode(message, output)
        _LENGTH.pack_into(data, 0, len(output) - 4)
        return output.parts()

    return respond


def take_apart(message: Message) -> Generator[None, None, None]:
    """Free a message that has very many elements, some hundred at a time. Nobody else may have it."""
    for name in _lists(message):
        elements = getattr(message, name)
        while elements:
            for element in elements[-SLICE:]:
                if any(len(getattr(element, inner) or ()) > SLICE for inner in _lists(element)):
                    yield from take_apart(element)
            del elements[-SLICE:]
            yield


def _lists(message: Message) -> list[str]:
    """The fields that are lists of parts."""
    return [field.name for field in message.FIELDS if field.array and field.kind == "struct"]


def response_parts(api_key: int, version: int, correlation_id: int, message: Message) -> list[Bytes]:
    """A whole response, length and all, to be written in order. Records are not copied."""
    return responder(api_key, version)(correlation_id, message)


def request_parts(
    api_key: int, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[Bytes]:
    """A whole request, length and all, as a client sends it."""
    output = Output()
    data = output.data
    name = b"" if client_id is None else client_id.encode()
    data += _LENGTH.pack(0)
    data += _REQUEST_HEAD.pack(api_key, version, correlation_id, -1 if client_id is None else len(name))
    data += name
    if version >= _FLEXIBLE_SINCE[api_key]:
        data.append(0)
    encoder(request_class(api_key), version)(message, output)
    _LENGTH.pack_into(data, 0, len(output) - 4)
    return output.parts()


def decode_response(api_key: int, version: int, frame: Bytes) -> tuple[int, Any]:
    """The correlation id and the message of a response that answers such a request."""
    if len(frame) < 4:
        raise DecodeError(f"a response of {len(frame)} bytes has no correlation id")
    (correlation_id,) = _LENGTH.unpack_from(frame)
    position = 4
    if version >= _FLEXIBLE_SINCE[api_key] and api_key != API_VERSIONS:
        position = _after_tags(frame, position)
    return correlation_id, decoder(response_class(api_key), version)(frame, position)
