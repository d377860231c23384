"""Fetch sessions of as many partitions as a request can name: each would have to be remembered."""

from __future__ import annotations

import contextlib
import random

from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, Wire

PARTITIONS = 99_990
SESSIONS = 8
LARGEST = 25_000  # partitions that one session may have, a fourth of what all may
_ASKED = "kafka_server_fetch_session_partitions"


def attack(broker: Attacked, seed: int, share: float) -> None:
    """Several clients begin one each and never come back to it. Those too large do not become sessions."""
    chance = random.Random(seed)
    broker.create_topic("in-session")
    count = max(2_000, int(PARTITIONS * share))
    with contextlib.ExitStack() as stack:
        for _ in range(max(2, int(SESSIONS * share))):
            wire = stack.enter_context(Wire(broker))
            answer = wire.ask(FETCH, 12, _session(count, chance))
            assert answer.error_code == 0
            assert (answer.session_id == 0) == (count > LARGEST)
        assert broker.metrics()[_ASKED] <= 4 * LARGEST


def _session(count: int, chance: random.Random) -> FetchRequest:
    first = chance.randrange(1 << 20)
    partitions = [
        FetchPartition(partition=first + number, fetch_offset=0, partition_max_bytes=1 << 20)
        for number in range(count)
    ]
    topic = FetchTopic(topic="in-session", partitions=partitions)
    return FetchRequest(session_id=0, session_epoch=0, max_wait_ms=0, min_bytes=0, topics=[topic])
