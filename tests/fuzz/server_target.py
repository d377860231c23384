"""The broker on damaged requests: bytes go into a session as a socket would bring them, in pieces, among others.

Whatever they are: no exception is left to the event loop, no handler fails, every answer is whole, all memory comes
back when the connection ends, nothing waits for a client that is gone, and another client is served as ever.

The broker has state, so inputs come in blocks that begin with a new one; to run one input again, its block is run up
to it.
"""

from __future__ import annotations

import logging
import shutil
import struct
import tempfile
import time
from random import Random
from typing import Any

from ottla.cluster import controller
from ottla.protocol import frame
from ottla.protocol.buffers import MemoryBudget, ReceiveBuffers
from ottla.server.dispatch import Dispatcher
from ottla.server.listener import Listener
from tests.api.world import World
from tests.fuzz.server_frames import TOPICS, a_stream
from tests.server.wire import API_VERSIONS, FETCH, PRODUCE, api_versions, fetch, produce, records

BLOCK = 10_000
GOOD = "good"
MAX_INPUT_S = 10.0
_MAX_FRAME_BYTES = 1 << 20
_BUDGET_BYTES = 4 << 20
_START_MS = 1_700_000_000_000

# A request may make 10,000 partitions. That is no fault, but here it would be most of the time.
_MAX_PARTITIONS = 8
_SETTINGS: dict[str, Any] = {"offsets_topic_num_partitions": "2", "transaction_state_log_num_partitions": "2"}
_USUAL_MAX_PARTITIONS = controller.MAX_PARTITIONS_PER_REQUEST


class Transport:
    """The other end of a session: keeps what is written, and is full when the input says so."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.session: Any = None
        self.is_reading = True
        self.is_closed = False
        self.is_full = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 50_000)

    def set_write_buffer_limits(self, high: int) -> None:
        """It is full when the input says so, not when so many bytes wait."""

    def writelines(self, parts: list[Any]) -> None:
        self.write(b"".join(parts))

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.written += data
        if self.is_full:
            self.session.pause_writing()

    def pause_reading(self) -> None:
        assert not self.is_closed
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_closed
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Errors(logging.Handler):
    """Every handler that failed, and everything else that the broker calls an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


class Block:
    """A broker, and how many inputs of its block it has seen."""

    def __init__(self, seed: int, block: int) -> None:
        self.seed = seed
        self.block = block
        self.number = block * BLOCK
        self._data = tempfile.mkdtemp(prefix="ottla-fuzz-", dir="/dev/shm")
        self._world = World(f"{self._data}/data", queued=True, **_SETTINGS)
        self._world.runtime.set_clock(_START_MS)
        self._topic_ids = [self._world.make_topic(name, partitions=2) for name in TOPICS[:2]]
        self._world.make_topic(GOOD)
        self._now_ns = 0
        dispatcher = Dispatcher(self._world.services, self._clock_ns)
        self._buffers = ReceiveBuffers(MemoryBudget(_BUDGET_BYTES, _MAX_FRAME_BYTES))
        self._listener = Listener(dispatcher, self._world.config, self._buffers)
        self._good, self._good_transport = self._connect()
        self._good_offset = 0
        self.errors = Errors()
        logging.getLogger("ottla").addHandler(self.errors)

    def _clock_ns(self) -> int:
        self._now_ns += 1000
        return self._now_ns + self._world.runtime.monotonic_ms() * 1_000_000

    def close(self) -> None:
        logging.getLogger("ottla").removeHandler(self.errors)
        self._world.close()
        shutil.rmtree(self._data)

    def _connect(self) -> tuple[Any, Transport]:
        transport = Transport()
        session: Any = self._listener._session()
        transport.session = session
        session.connection_made(transport)
        return session, transport

    # -- one input

    def run(self) -> None:
        """Feed the next input to a connection of its own, end that, and see that all is well."""
        random = Random(f"{self.seed}/{self.number}")
        began = time.process_time()
        # The log of a refusal is for people; making its text for each input would be half of the time.
        logging.disable(logging.WARNING)
        controller.MAX_PARTITIONS_PER_REQUEST = _MAX_PARTITIONS
        try:
            session, transport = self._connect()
            self._feed(random, session, transport, a_stream(random, self._topic_ids))
            self._world.runtime.run_pending()
            if random.random() < 0.1:
                self._world.runtime.advance(random.choice((1, 100, 40_000)))
                self._world.runtime.run_pending()
            session.connection_lost(None)
            self._world.runtime.run_pending()
            self._check(transport)
            self._ask_good_one()
        finally:
            logging.disable(logging.NOTSET)
            controller.MAX_PARTITIONS_PER_REQUEST = _USUAL_MAX_PARTITIONS
        assert time.process_time() - began < MAX_INPUT_S
        self.number += 1

    def _feed(self, random: Random, session: Any, transport: Transport, stream: bytearray) -> None:
        transport.is_full = random.random() < 0.1
        position = 0
        while position < len(stream) and not transport.is_closed:
            if not transport.is_reading:
                self._world.runtime.run_pending()
                transport.is_full = False
                session.resume_writing()
                if not transport.is_reading:
                    return
                continue
            buffer = session.get_buffer(-1)
            size = min(len(buffer), len(stream) - position, random.choice((1, 3, 20, 1000, 1 << 20)))
            assert size > 0
            buffer[:size] = stream[position : position + size]
            position += size
            session.buffer_updated(size)

    def _check(self, transport: Transport) -> None:
        assert not self.errors.lines, self.errors.lines[0]
        written, position = transport.written, 0
        while position < len(written):
            (size,) = struct.unpack_from(">i", written, position)
            position += 4 + size
        assert position == len(written), "an answer is not whole"
        assert self._buffers.budget.used_bytes == 0
        purgatories = self._world.replicas.purgatories
        assert purgatories.fetch.delayed == purgatories.produce.delayed == 0
        assert self._listener.connections == 1

    # -- the neighbour

    def _ask_good_one(self) -> None:
        assert self._ask(API_VERSIONS, 3, api_versions()).error_code == 0
        if self.number % 25 == 0:
            made = self._ask(PRODUCE, 9, produce(GOOD, records(b"good", timestamp=_START_MS)))
            assert made.responses[0].partition_responses[0].base_offset == self._good_offset
            self._good_offset += 1
            found = self._ask(FETCH, 12, fetch(GOOD)).responses[0].partitions[0]
            assert found.high_watermark == self._good_offset
            count = bytes(found.records).count(b"good")
            assert count == self._good_offset, f"{count} of {self._good_offset} records, {found!r}"

    def _ask(self, api_key: int, version: int, message: Any) -> Any:
        sent = b"".join(frame.request_parts(api_key, version, 1, "good", message))
        buffer = self._good.get_buffer(-1)
        buffer[: len(sent)] = sent
        self._good.buffer_updated(len(sent))
        self._world.runtime.run_pending()
        written = self._good_transport.written
        assert int.from_bytes(written[:4], "big") == len(written) - 4, "no answer, or more than one"
        _, response = frame.decode_response(api_key, version, bytes(written[4:]))
        written.clear()
        return response


_block: Block | None = None


def check(seed: int, number: int) -> None:
    """Run the input of this number, and those of its block before it that have not been run."""
    global _block  # a broker for each input would be all of the time
    if _block is None or _block.seed != seed or _block.number > number or _block.block != number // BLOCK:
        if _block is not None:
            _block.close()
        _block = Block(seed, number // BLOCK)
    while _block.number <= number:
        try:
            _block.run()
        except BaseException:
            _block.close()
            _block = None
            raise
