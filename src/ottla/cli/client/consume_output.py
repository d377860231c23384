"""How `ottla consume` prints a record: as text, by a format, or as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from ottla.cli.client.byte_text import unescape
from ottla.cli.json_text import quote, to_json, utf8_or_base64
from ottla.escapes import visible_json

if TYPE_CHECKING:
    from confluent_kafka import Message

Line = Callable[["Message"], bytes]
Show = Callable[[bytes], bytes]  # what becomes of bytes of a record before they are printed

_TOKEN = re.compile(r"%(.|$)", re.DOTALL)
_NO_TIMESTAMP = 0


def _as_it_is(data: bytes) -> bytes:
    return data


def visible_as_json(message: Message) -> bytes:
    """For a terminal: the same JSON, with escapes for what a terminal would obey."""
    return visible_json(as_json(message).decode()).encode()


def as_text(
    null: bytes, delimiter: bytes, after_key: bytes | None, *, headers: bool, show: Show = _as_it_is
) -> Line:
    """The value, with the key or headers before it if they are wanted."""

    def value_only(message: Message) -> bytes:
        value = message.value()
        return (null if value is None else show(value)) + delimiter

    def line(message: Message) -> bytes:
        key, value = message.key(), message.value()
        before = _headers(message, b":", null, show) + b"\t" if headers else b""
        if after_key is not None:
            before += (null if key is None else show(key)) + after_key
        return before + (null if value is None else show(value)) + delimiter

    return line if headers or after_key is not None else value_only


def as_json(message: Message) -> bytes:
    kind, timestamp = message.timestamp()
    headers = header_pairs(message)
    shown = "[]"
    if headers:
        shown = to_json([{"key": name, "value": utf8_or_base64(value)} for name, value in headers])
    return (
        f'{{"topic":{quote(message.topic() or "")},"partition":{message.partition()},"offset":{message.offset()},'
        f'"timestamp":{"null" if kind == _NO_TIMESTAMP else timestamp},"key":{_json(message.key())},'
        f'"value":{_json(message.value())},"headers":{shown}}}\n'
    ).encode()


def _json(data: bytes | None) -> str:
    if data is None:
        return "null"
    shown = utf8_or_base64(data)
    return quote(shown) if isinstance(shown, str) else to_json(shown)


def compile_format(text: str, null: bytes, show: Show = _as_it_is) -> Line:
    """A function that prints a record as the format says. What the format itself says is printed as it is."""

    def number(value: int | None) -> bytes:
        return b"%d" % (-1 if value is None else value)

    def shown(data: bytes | None) -> bytes:
        return null if data is None else show(data)

    def length(data: bytes | None) -> int:
        return -1 if data is None else len(data)

    tokens: dict[str, Line] = {
        "t": lambda message: (message.topic() or "").encode(),
        "p": lambda message: number(message.partition()),
        "o": lambda message: number(message.offset()),
        "T": lambda message: number(message.timestamp()[1]),
        "k": lambda message: shown(message.key()),
        "s": lambda message: shown(message.value()),
        "h": lambda message: _headers(message, b"=", null, show),
        "K": lambda message: number(length(message.key())),
        "S": lambda message: number(length(message.value())),
        "R": lambda message: show(length(message.value()).to_bytes(4, "big", signed=True)),
        "%": lambda _: b"%",
    }
    pieces: list[Line] = []
    position = 0
    for match in _TOKEN.finditer(text):
        if match[1] not in tokens:
            raise typer.BadParameter(
                f"--format: %{match[1]} is not one of {' '.join(f'%{t}' for t in tokens)}"
            )
        pieces += (_constant(unescape(text[position : match.start()])), tokens[match[1]])
        position = match.end()
    pieces.append(_constant(unescape(text[position:])))
    return lambda message: b"".join([piece(message) for piece in pieces])


def _constant(data: bytes) -> Line:
    return lambda _: data


def _headers(message: Message, after_name: bytes, null: bytes, show: Show) -> bytes:
    return b",".join(
        show(name.encode()) + after_name + (null if value is None else show(value))
        for name, value in header_pairs(message)
    )


def header_pairs(message: Message) -> list[tuple[str, bytes | None]]:
    """A record's headers. The library's types also have what only a sender may write."""
    headers: Any = message.headers()
    return headers or []
