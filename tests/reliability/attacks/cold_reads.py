"""Reads that are far from every index entry, and reads of much that is not in memory."""

from __future__ import annotations

import contextlib
import glob
import os
import random

from ottla.protocol import frame
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.records.builder import NewRecord, build_batch
from tests.reliability.attacks.brokers import Attacked
from tests.server.wire import FETCH, PRODUCE, Wire, fetch, produce

TOPIC = "far"
LIST_OFFSETS = 2
MIB = 1 << 20
LOG_BYTES = 100 * MIB
FETCHED_BYTES = 50 * MIB
CLIENTS = 20
_RECORDED_MS = 1_700_000_000_000


def attack(broker: Attacked, seed: int, share: float) -> None:
    """A topic of the smallest batches that has no index: each lookup goes through the whole segment."""
    chance = random.Random(seed)
    config = {"index.interval.bytes": 2**31 - 1, "segment.bytes": 2**30, "retention.ms": -1}
    broker.create_topic(TOPIC, config=config)
    batch = bytes(build_batch([NewRecord(_RECORDED_MS, None, b"", [])]))
    count = max(50_000, int(LOG_BYTES * share) // len(batch))
    with Wire(broker) as wire:
        for _ in range(-(-count // 1000)):
            wire.send_bytes(_produces(batch, 1000))
            for _ in range(1000):
                wire.read_frame()
    _forget_pages(broker)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker)) for _ in range(max(3, int(CLIENTS * share)))]
        for _ in range(4):
            offsets = [chance.randrange(count) for _ in wires]
            for wire, offset in zip(wires, offsets, strict=True):
                wire.send(FETCH, 12, fetch(TOPIC, offset, partition_max_bytes=FETCHED_BYTES))
            for wire, offset in zip(wires, offsets, strict=True):
                (found,) = wire.receive(FETCH, 12)[1].responses[0].partitions
                first = int.from_bytes(bytes(found.records[:8]), "big")
                assert (found.error_code, first) == (0, offset)
            wires[0].ask(LIST_OFFSETS, 5, _by_time(chance.choice([0, _RECORDED_MS + 1])))
            _forget_pages(broker)


def _produces(batch: bytes, count: int) -> bytes:
    return b"".join(frame.request_parts(PRODUCE, 9, 1, "far", produce(TOPIC, batch))) * count


def _by_time(timestamp: int) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])], isolation_level=0
    )


def _forget_pages(broker: Attacked) -> None:
    """As if nobody had read the files for a long time, where they lie on a disk."""
    for path in glob.glob(f"{broker.data}/{TOPIC}-0/*"):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
