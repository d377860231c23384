"""Faults in a broker's answers: late, lost, wrong, for as many requests as the test says."""

from __future__ import annotations

import select
import time
from typing import Any

import pytest

from ottla.api.registry import APIS
from ottla.protocol import frame
from ottla.protocol.codec import Output, decoder, encoder
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages import request_class, response_class
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing.embedded import EmbeddedBroker
from ottla.testing.error_answers import error_answer
from tests.server.wire import (
    API_VERSIONS,
    FETCH,
    PRODUCE,
    Wire,
    api_versions,
    fetch,
    produce,
    records,
    wait_until,
)

TOPIC = "t"
METADATA = 3


@pytest.fixture
def broker(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    ottla_broker.create_topic(TOPIC)
    return ottla_broker


def produce_error(wire: Wire, value: bytes = b"x") -> int:
    response = wire.ask(PRODUCE, 9, produce(TOPIC, records(value)))
    code: int = response.responses[0].partition_responses[0].error_code
    return code


def end_offset(broker: EmbeddedBroker) -> int:
    return broker.call(lambda: next(iter(broker.broker.logs.logs.values())).end_offset)


def test_the_next_requests_fail_and_then_no_more(broker: EmbeddedBroker) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", count=2)
    with Wire(broker) as wire:
        assert produce_error(wire) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        wire.ping()  # other requests do not count
        assert produce_error(wire) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert end_offset(broker) == 0, "what failed has had no effect"
        assert broker.faults.pending == 0
        assert produce_error(wire) == ErrorCode.NONE
    assert end_offset(broker) == 1


def test_an_error_has_a_number_too_and_lasts_until_it_is_cleared(broker: EmbeddedBroker) -> None:
    broker.faults.fail("Produce", 29, count=None)
    with Wire(broker) as wire:
        assert [produce_error(wire) for _ in range(5)] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 5
        broker.faults.clear()
        assert produce_error(wire) == ErrorCode.NONE


def test_a_fetch_fails_for_the_partitions_it_asked_for(broker: EmbeddedBroker) -> None:
    broker.faults.fail("Fetch", "KAFKA_STORAGE_ERROR")
    with Wire(broker) as wire:
        found = wire.ask(FETCH, 12, fetch(TOPIC))
        assert found.error_code == ErrorCode.NONE
        assert found.responses[0].topic == TOPIC
        assert found.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_metadata_that_fails_still_says_where_the_brokers_are(broker: EmbeddedBroker) -> None:
    broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE")
    with Wire(broker) as wire:
        found = wire.ask(METADATA, 9, MetadataRequest(topics=None))
        assert [topic.error_code for topic in found.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
        assert found.brokers[0].port == broker.port


def test_acks_0_that_is_to_fail_ends_the_connection(broker: EmbeddedBroker) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    with Wire(broker) as wire:
        wire.send(PRODUCE, 9, produce(TOPIC, records(b"x"), acks=0))
        assert wire.is_closed()


@pytest.mark.parametrize(("handled", "kept"), [(False, 0), (True, 1)])
def test_a_dropped_request_was_handled_or_not_as_the_test_wants(
    broker: EmbeddedBroker, handled: bool, kept: int
) -> None:
    broker.faults.drop("Produce", handled=handled)
    with Wire(broker) as wire:
        wire.send(PRODUCE, 9, produce(TOPIC, records(b"x")))
        assert wire.is_closed()
    assert end_offset(broker) == kept
    with Wire(broker) as wire:
        assert produce_error(wire) == ErrorCode.NONE


def test_a_late_answer_holds_back_the_ones_behind_it(broker: EmbeddedBroker) -> None:
    broker.faults.delay("Produce", 50, count=1)
    with Wire(broker) as wire:
        began = time.monotonic()
        late = wire.send(PRODUCE, 9, produce(TOPIC, records(b"x")))
        wire.send(API_VERSIONS, 3, api_versions())
        assert wire.receive(PRODUCE, 9)[0] == late
        assert time.monotonic() - began >= 0.045
        wire.receive(API_VERSIONS, 3)


def test_a_long_delay_passes_with_the_brokers_clock(broker: EmbeddedBroker) -> None:
    broker.faults.delay("Produce", 3_600_000)
    with Wire(broker) as wire:
        wire.send(PRODUCE, 9, produce(TOPIC, records(b"x")))
        wait_until(lambda: end_offset(broker) == 1)
        # The record is there a moment before its answer, and an hour is counted from the answer on.
        while not select.select([wire.socket], [], [], 0.1)[0]:
            broker.clock.advance(3_600_000)
        wire.receive(PRODUCE, 9)


def test_late_and_wrong_go_together(broker: EmbeddedBroker) -> None:
    broker.faults.delay("Produce", 20, count=1)
    broker.faults.fail("Produce", "REQUEST_TIMED_OUT")
    with Wire(broker) as wire:
        began = time.monotonic()
        assert produce_error(wire) == ErrorCode.REQUEST_TIMED_OUT
        assert time.monotonic() - began >= 0.015
        assert produce_error(wire) == ErrorCode.NONE


def test_a_name_that_is_no_api_or_no_error_is_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="Produce, Fetch"):
        broker.faults.drop("Products")
    with pytest.raises(KeyError):
        broker.faults.fail("Produce", "NO_SUCH_ERROR")
    assert broker.faults.pending == 0


# -- answers that say nothing but an error, for every API and version


def filled(cls: type[Message]) -> Message:
    """A message in which every list has one item, and every name says something."""
    parts = (field for field in cls.FIELDS if field.of is not None and not field.array)
    message = cls(**{field.name: filled(field.of) for field in parts if field.of is not None})
    for field in cls.FIELDS:
        value: Any
        if field.of is not None:
            value = [filled(field.of)] if field.array else filled(field.of)
        elif field.kind == "string":
            value = ["name"] if field.array else "name"
        elif field.array:
            value = [3]
        elif field.kind in ("int32", "int16", "int8") and field.name not in ("replica_id", "session_id"):
            value = 3
        else:
            continue
        setattr(message, field.name, value)
    return message


def codes(message: Message) -> list[int]:
    found = []
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name in ("error_code", "partition_error_code"):
            found.append(value)
        elif field.array and field.of is not None:
            found += [code for item in value or () for code in codes(item)]
    return found


WITH_CODES = [api for api in APIS.values() if codes(filled(response_class(api.key)))]


@pytest.mark.parametrize("api", WITH_CODES, ids=lambda api: api.name)
def test_every_api_can_be_answered_with_an_error_in_every_version(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        request = as_sent(request_class(api.key), version)
        answer = error_answer(api.key, request, ErrorCode.POLICY_VIOLATION)
        parts = frame.response_parts(api.key, version, 1, answer)
        _, received = frame.decode_response(api.key, version, b"".join(parts)[4:])
        found = codes(received)
        assert ErrorCode.POLICY_VIOLATION in found or (api.name, version) in NO_CODE, (
            f"v{version}: {received}"
        )
        named = names(request)
        assert named & names(received) or not named or api.name in WITHOUT_NAMES, f"v{version}: {received}"


NO_CODE = {("DescribeLogDirs", 1), ("DescribeLogDirs", 2)}  # these versions have one for each directory only
WITHOUT_NAMES = ("DescribeLogDirs", "JoinGroup")  # one is about directories, the other's names are protocols


def as_sent(cls: type[Message], version: int) -> Message:
    """Filled, and with only those fields that this version has."""
    output = Output()
    encoder(cls, version)(filled(cls), output)
    message: Message = decoder(cls, version)(b"".join(output.parts()), 0)
    return message


def names(message: Message) -> set[str]:
    """The names that a message speaks of, at the first level of its lists."""
    found: set[str] = set()
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.array and field.of is not None:
            for item in value or ():
                found |= {
                    str(getattr(item, f.name))
                    for f in item.FIELDS
                    if f.name in ("name", "topic", "topic_name")
                }
    return found - {"", "None"}
