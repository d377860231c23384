"""Random messages, and the same messages as kio has them."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import random
import uuid
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial._introspect import EntityField, EntityTupleField, classify_field

from ottla.protocol.message import Field, Message
from ottla.protocol.messages import APIS, request_class, response_class

RANGES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
OLDEST_IN_KIO = {0: 3, 1: 4}

MESSAGES = [
    (message_class, version)
    for api in APIS.values()
    for message_class in (request_class(api.key), response_class(api.key))
    for version in range(api.min_version, api.max_version + 1)
]


def sample(message_class: type[Message], version: int, rng: random.Random) -> Any:
    """A message with random values in the fields that a version has, and defaults elsewhere."""
    values = {}
    for field in message_class.FIELDS:
        if field.since <= version <= field.until:
            values[field.name] = _value(field, version, rng)
    return message_class(**values)


def _value(field: Field, version: int, rng: random.Random) -> Any:
    can_be_null = field.nullable_since is not None and version >= field.nullable_since
    if field.tag is not None and rng.random() < 0.3:
        return [] if field.array else field.default
    if can_be_null and field.tag is None and rng.random() < 0.3:
        return None
    if field.array:
        # Long enough, now and then, for a count of two bytes.
        count = rng.choice([0, 1, 1, 2, 3]) if field.of or rng.random() < 0.95 else 130
        return [_one(field, version, rng) for _ in range(count)]
    one = _one(field, version, rng)
    if field.tag is not None and field.of and one == field.of():
        return None  # there is one way to say nothing
    return one


def _one(field: Field, version: int, rng: random.Random) -> Any:
    if field.of:
        return sample(field.of, version, rng)
    if field.name == "error_code" or field.name.endswith("_error_code"):
        return rng.choice([0, 0, -1, 1, 3, 100])
    if field.kind == "int64" and field.name.endswith(("time_ms", "timestamp_ms")):
        return rng.randrange(0, 4_000_000_000) * 1000  # kio's timestamps have whole seconds
    if field.kind == "int64" and field.name.endswith("_ms"):
        return rng.randrange(-1000, 10**12)
    if field.kind in RANGES:
        top = 2 ** (RANGES[field.kind] - 1)
        return rng.choice([0, 1, -1, -top, top - 1, rng.randrange(-top, top)])
    return {
        "uint16": lambda: rng.choice([0, 9092, 65535]),
        "bool": lambda: rng.random() < 0.5,
        "float64": lambda: rng.choice([0.0, -1.5, 1e300]),
        "string": lambda: _text(rng),
        "bytes": lambda: rng.randbytes(_size(rng)),
        "records": lambda: memoryview(rng.randbytes(_size(rng))),
        "uuid": lambda: rng.choice([None, uuid.UUID(int=rng.getrandbits(128))]),
    }[field.kind]()


def _size(rng: random.Random) -> int:
    return rng.choice([0, 1, 5, 126, 127, 128, 300]) if rng.random() < 0.98 else 20_000


def _text(rng: random.Random) -> str:
    return "".join(rng.choice("abcß€𝄞.-_") for _ in range(min(_size(rng), 300)))


def kio_class(message_class: type[Message], version: int) -> type[Any]:
    """kio's class for this version of a message."""
    kind = "request" if message_class.__name__.endswith("Request") else "response"
    module = importlib.import_module(f"kio.schema.{APIS[message_class.API_KEY].module}.v{version}.{kind}")
    found: type[Any] = getattr(module, message_class.__name__)
    return found


def to_kio(message: Message, target: type[Any]) -> Any:
    """The same message as an instance of kio's class."""
    values = {}
    for field in dataclasses.fields(target):
        kafka_type = field.metadata.get("kafka_type", "")
        name = field.name + ("_ms" if kafka_type.startswith(("timedelta", "datetime")) else "")
        value = getattr(message, name)
        kind = classify_field(field)
        if isinstance(kind, EntityTupleField):
            value = None if value is None else tuple(to_kio(item, kind.type_) for item in value)
        elif isinstance(kind, EntityField):
            if value is None and "tag" in field.metadata:
                continue
            value = None if value is None else to_kio(value, kind.type_)
        elif kind.is_array:
            value = None if value is None else tuple(value)
        elif value is not None:
            value = _kio_value(value, kafka_type)
        values[field.name] = value
    return target(**values)


def _kio_value(value: Any, kafka_type: str) -> Any:
    if kafka_type.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type.startswith("datetime"):
        return None if value == -1 else datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
    if kafka_type == "error_code":
        return ErrorCode(value)
    if kafka_type == "records":
        return bytes(value)
    return value
