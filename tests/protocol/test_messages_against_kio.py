"""Every message in every version: the bytes are those that kio writes, and both read them alike."""

from __future__ import annotations

import io
import random

import pytest
from kio.serial import entity_reader, entity_writer

from ottla.protocol.codec import Output, decoder, encoder
from ottla.protocol.message import Message
from ottla.protocol.messages import APIS
from tests.protocol.samples import MESSAGES, OLDEST_IN_KIO, kio_class, sample, to_kio

ROUNDS = 8


def encoded(message: Message, version: int) -> bytes:
    output = Output()
    encoder(type(message), version)(message, output)
    data = b"".join(output.parts())
    assert len(data) == len(output)
    return data


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_messages_are_written_and_read_as_kio_does(api_key: int) -> None:
    rng = random.Random(api_key)
    for message_class, version in MESSAGES:
        if api_key != message_class.API_KEY or version < OLDEST_IN_KIO.get(api_key, 0):
            continue
        theirs = kio_class(message_class, version)
        write, read = entity_writer(theirs), entity_reader(theirs)
        for _ in range(ROUNDS):
            message = sample(message_class, version, rng)
            same = to_kio(message, theirs)
            buffer = io.BytesIO()
            write(buffer, same)
            data = encoded(message, version)
            assert data == buffer.getvalue(), (version, message)
            assert read(data, 0)[0] == same
            assert decoder(message_class, version)(data, 0) == message


@pytest.mark.parametrize("api_key", APIS, ids=lambda key: APIS[key].name)
def test_what_is_written_is_read_back_from_every_kind_of_buffer(api_key: int) -> None:
    for message_class, version in MESSAGES:
        if api_key != message_class.API_KEY:
            continue
        message = sample(message_class, version, random.Random(version))
        data = encoded(message, version)
        decode = decoder(message_class, version)
        for buffer in (b"123" + data + b"45", bytearray(b"123" + data), memoryview(bytearray(b"123" + data))):
            assert decode(buffer, 3) == message
