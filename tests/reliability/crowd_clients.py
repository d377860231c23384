"""Many producers and consumers on one event loop, speaking the protocol themselves."""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any

from ottla.protocol import frame
from ottla.protocol.message import Message
from ottla.records.builder import NewRecord, build_batch
from tests.reliability.ledger import Entry, Sender, value_of
from tests.reliability.reading import entries_in
from tests.server.wire import FETCH, PRODUCE, Place, fetch, produce

BATCHES = 20  # of each producer
BATCH_RECORDS = 5
_DEADLINE_S = 120.0

Senders = dict[int, dict[str, Sender]]
Read = tuple[int, list[Entry]]


def converse(
    broker: Place, topic: str, partitions: int, *, producers: int, consumers: int
) -> tuple[Senders, list[Read]]:
    """All of them at once; what each partition was sent, and what each consumer read of which partition."""
    senders: Senders = {partition: {} for partition in range(partitions)}
    totals = [0] * partitions
    for number in range(producers):
        senders[number % partitions][f"producer-{number}"] = Sender(False)
        totals[number % partitions] += BATCHES * BATCH_RECORDS

    async def all_of_them() -> list[Read]:
        sending = [
            _produce(broker, topic, partition, name, sender)
            for partition, mine in senders.items()
            for name, sender in mine.items()
        ]
        reading = [
            _consume(broker, topic, number % partitions, totals[number % partitions])
            for number in range(consumers)
        ]
        async with asyncio.timeout(_DEADLINE_S):
            results = await asyncio.gather(*reading, *sending)
        return [result for result in results if result is not None]

    return senders, asyncio.run(all_of_them())


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, api_key: int, version: int, message: Message) -> Any:
        self._writer.writelines(frame.request_parts(api_key, version, 1, "crowd", message))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return frame.decode_response(api_key, version, await self._reader.readexactly(size))[1]

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def _connect(broker: Place) -> _Connection:
    return _Connection(*await asyncio.open_connection("127.0.0.1", broker.port, limit=4 << 20))


async def _produce(broker: Place, topic: str, partition: int, name: str, sender: Sender) -> None:
    connection = await _connect(broker)
    for _ in range(BATCHES):
        first = sender.sent
        sender.sent += BATCH_RECORDS
        now_ms = time.time_ns() // 1_000_000
        batch = build_batch(
            [NewRecord(now_ms, None, value_of(name, number)) for number in range(first, sender.sent)]
        )
        answer = await connection.ask(PRODUCE, 9, produce(topic, bytes(batch), partition=partition))
        (told,) = answer.responses[0].partition_responses
        assert told.error_code == 0, f"{name}: error {told.error_code}"
        for index in range(BATCH_RECORDS):
            sender.acked[first + index] = told.base_offset + index
    await connection.close()


async def _consume(broker: Place, topic: str, partition: int, total: int) -> Read:
    """Follow a partition until all of it has come."""
    connection = await _connect(broker)
    entries: list[Entry] = []
    while len(entries) < total:
        asked = fetch(topic, len(entries), partition=partition, max_wait_ms=500)
        (found,) = (await connection.ask(FETCH, 12, asked)).responses[0].partitions
        assert found.error_code == 0, f"{topic}-{partition}: error {found.error_code}"
        # A batch comes whole, also when its end alone was asked for.
        entries += (entry for entry in entries_in(found.records or b"") if entry.offset >= len(entries))
    await connection.close()
    return partition, entries
