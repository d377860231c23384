"""InitProducerId, and produce requests whose batches are numbered."""

from __future__ import annotations

from typing import Any

from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.records.compression.codec import Codec
from tests.conversation.say import NEWEST_FETCH_BY_NAME, fetch, produce, records
from tests.conversation.talk import Talk, versions

KEY = InitProducerIdRequest.API_KEY
NEWEST_INIT = 5
VERSIONS = (3, 8, 11, 12)
MAX_SEQUENCE = 2**31 - 1


def script(talk: Talk) -> None:
    for version in versions(KEY):
        _ids(talk, version)
    for version in VERSIONS:
        _sequences(talk, version)
        _epochs(talk, version)
    _around(talk)
    _odd(talk)


def _ids(talk: Talk, version: int) -> None:
    def ask(step: str, **fields: Any) -> None:
        request = InitProducerIdRequest(
            **{"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}
        )
        talk.ask(step, version, request)

    ask("an id")
    ask("another")
    ask("an id, and no time")
    ask("an id, in time -1", transaction_timeout_ms=-1)
    ask("an empty transactional id", transactional_id="")
    if version >= 3:
        ask("an id that one has", producer_id=4000, producer_epoch=2)
        ask("an id without an epoch", producer_id=4000)
        ask("an epoch without an id", producer_epoch=2)
        ask("a negative id", producer_id=-2, producer_epoch=-2)


def _new_id(talk: Talk) -> int:
    """Not written down, but the normal form must know it."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    response = talk.request(NEWEST_INIT, request)
    talk.normal.message(response, NEWEST_INIT)
    found: int = response.producer_id
    return found


def _sequences(talk: Talk, version: int) -> None:
    name = f"sequence-{version}"
    talk.topic(name)
    producer = _new_id(talk)

    def ask(step: str, sequence: int, *values: bytes, **more: Any) -> None:
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence, **more}
        talk.ask(step, version, produce(name, records(*values, **fields)))

    ask("the first", 0, b"a", b"b")
    ask("the next", 2, b"c")
    ask("the next again", 2, b"c")
    ask("the first again", 0, b"a", b"b")
    ask("a gap", 5, b"x")
    ask("an overlap", 1, b"x", b"y")
    ask("part of the first", 0, b"a")
    ask("more than the last", 2, b"c", b"d")
    ask("compressed", 3, b"d", codec=Codec.GZIP)
    for sequence in range(4, 9):
        ask(f"number {sequence}", sequence, b"v")
    ask("the sixth back", 2, b"c")
    ask("the fifth back", 4, b"v")
    ask("from 0 again", 0, b"z")
    ask("no sequence", -1, b"z")
    ask("a sequence of -2", -2, b"z")
    ask("a producer that comes late", 7, b"n", producer_id=987_654)
    ask("its next", 8, b"n", producer_id=987_654)
    ask("its gap", 10, b"n", producer_id=987_654)
    talk.ask(f"after sequences, v{version}", NEWEST_FETCH_BY_NAME, fetch(name))


def _epochs(talk: Talk, version: int) -> None:
    name = f"epoch-{version}"
    talk.topic(name)
    producer = _new_id(talk)

    def ask(step: str, epoch: int, sequence: int) -> None:
        data = records(b"v", producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        talk.ask(step, version, produce(name, data))

    ask("epoch 1", 1, 0)
    ask("epoch 0", 0, 0)
    ask("epoch 2, sequence 1", 2, 1)
    ask("epoch 2", 2, 0)
    ask("epoch 1 again", 1, 1)
    ask("no epoch", -1, 0)
    talk.ask(f"after epochs, v{version}", NEWEST_FETCH_BY_NAME, fetch(name))


def _around(talk: Talk) -> None:
    """The largest sequence is followed by 0."""
    name = "sequence-wraps"
    talk.topic(name)
    producer = _new_id(talk)

    def ask(step: str, sequence: int, *values: bytes) -> None:
        data = records(*values, producer_id=producer, producer_epoch=0, base_sequence=sequence)
        talk.ask(step, 12, produce(name, data))

    ask("before the largest", MAX_SEQUENCE - 1, b"a")
    ask("across the largest", MAX_SEQUENCE, b"b", b"c")
    ask("across it again", MAX_SEQUENCE, b"b", b"c")
    ask("behind it", 1, b"d")
    ask("a gap behind it", 3, b"e")
    ask("back to the largest", MAX_SEQUENCE, b"e")


def _odd(talk: Talk) -> None:
    name = "sequence-odd"
    talk.topic(name)
    producer = _new_id(talk)
    data = records(b"v", producer_id=producer, producer_epoch=0, base_sequence=0)
    talk.ask("idempotent, acks 1", 12, produce(name, data, acks=1))
    talk.ask("idempotent, again with acks -1", 12, produce(name, data, acks=-1))
    talk.ask(
        "a transactional id without a transaction", 12, produce(name, records(b"v"), transactional_id="t")
    )
    transactional = records(b"v", producer_id=producer, producer_epoch=0, base_sequence=1, transactional=True)
    talk.ask("a transactional batch, no transactional id", 12, produce(name, transactional))
    talk.tell("idempotent, acks 0", 12, produce(name, data, acks=0))
    gap = records(b"v", producer_id=producer, producer_epoch=0, base_sequence=77)
    talk.tell("a gap, acks 0", 12, produce(name, gap, acks=0))
    half = records(b"v", producer_id=producer, producer_epoch=-1, base_sequence=-1)
    talk.ask("an id without an epoch and a sequence", 12, produce(name, half))
