"""Very many producer ids: when a segment is full, all of them are written down."""

from __future__ import annotations

import random
import time

from ottla.protocol import frame
from ottla.records.builder import NewRecord, build_batch
from tests.reliability.attacks.brokers import Attacked, segments
from tests.server.wire import PRODUCE, Wire, produce

TOPIC = "producers"
IDS = 300_000
_AT_ONCE = 50


def attack(broker: Attacked, seed: int, share: float) -> None:
    """Each sends one record; the segments are small, so that many are begun."""
    chance = random.Random(seed)
    broker.create_topic(TOPIC, config={"segment.bytes": 1 << 20})
    count = max(8_000, int(IDS * share))
    now_ms = time.time_ns() // 1_000_000
    with Wire(broker) as wire:
        for first in range(0, count, _AT_ONCE):
            asked = [_record(1_000_000 + first + more, now_ms, chance) for more in range(_AT_ONCE)]
            wire.send_bytes(b"".join(asked))
            for _ in asked:
                answer = wire.receive(PRODUCE, 9)[1]
                assert answer.responses[0].partition_responses[0].error_code == 0
    assert segments(broker, TOPIC) > 1


def _record(producer_id: int, now_ms: int, chance: random.Random) -> bytes:
    data = build_batch(
        [NewRecord(now_ms, None, chance.randbytes(80), [])],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    return b"".join(frame.request_parts(PRODUCE, 9, 1, "ids", produce(TOPIC, bytes(data))))
