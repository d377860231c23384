"""Producers that go on whatever happens to the broker, and remember what they sent and what was acknowledged.

Each is a thread that writes numbered records to one partition of its own topic. `RawLoad` speaks the protocol itself:
with the sequence numbers of an idempotent producer, five requests under way, everything without an answer sent again.
Those of real clients are in client_load.py.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.records.builder import NewRecord, build_batch
from ottla.records.compression.codec import Codec
from tests.reliability.ledger import Sender, value_of
from tests.server.wire import PRODUCE, Place, Wire, produce

JOIN_S = 120.0
_INIT_PRODUCER_ID = 22


class Load(threading.Thread, ABC):
    """One producer. `error` is what it could not go on from."""

    FILLER = b"." * 60

    def __init__(self, label: str, broker: Place, topic: str, partition: int, *, is_idempotent: bool) -> None:
        super().__init__(name=f"{label}-{topic}-{partition}", daemon=True)
        self.broker = broker
        self.topic = topic
        self.partition = partition
        self.sender = Sender(is_idempotent)
        self.error: BaseException | None = None
        self.going = threading.Event()  # cleared: nothing new is sent for a while
        self.going.set()
        self.stopping = threading.Event()
        self.given_up = False

    def run(self) -> None:
        try:
            self.produce()
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self.error = error

    @abstractmethod
    def produce(self) -> None:
        """Send until `stopping`, then wait until everything is acknowledged, unless that is `given_up`."""

    def next_value(self) -> tuple[int, bytes]:
        """The next record: its number and its value. It counts as sent from now on."""
        number = self.sender.sent
        self.sender.sent = number + 1
        return number, value_of(self.name, number, self.FILLER)

    def may_send(self) -> bool:
        return self.going.is_set() and not self.stopping.is_set()

    @property
    def unanswered(self) -> int:
        return self.sender.sent - len(self.sender.acked)

    def give_up(self) -> None:
        """The check is over, well or badly: end, whatever is not acknowledged."""
        self.given_up = True
        self.stopping.set()
        if self.is_alive():
            self.join(JOIN_S)

    def finish(self) -> None:
        """Send no more; everything sent is acknowledged when this returns."""
        self.stopping.set()
        self.join(JOIN_S)
        if self.error is not None:
            raise self.error
        assert not self.is_alive(), f"{self.name} waits for {self.unanswered} acknowledgements"
        assert not self.unanswered, f"{self.name}: {self.unanswered} records were not acknowledged"


class _Batch(NamedTuple):
    first_number: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    data: bytes


_AGAIN = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
}


class RawLoad(Load):
    """A producer by the protocol alone. One that is not idempotent has a single request under way."""

    BATCH_RECORDS = 20
    FILLER = b"." * 1000  # so that segments roll, as small as they can be
    PAUSE_S = 0.005
    VERSION = 9

    def __init__(
        self,
        broker: Place,
        topic: str,
        partition: int,
        *,
        is_idempotent: bool,
        acks: int,
        codec: Codec = Codec.NONE,
    ) -> None:
        super().__init__("raw", broker, topic, partition, is_idempotent=is_idempotent)
        self._acks = acks
        self._codec = codec
        self._window = 5 if is_idempotent else 1
        self._producer_id = -1
        self._pending: deque[_Batch] = deque()  # sent, maybe more than once, and not acknowledged

    def produce(self) -> None:
        while not self.stopping.is_set() or (self._pending and not self.given_up):
            try:
                with Wire(self.broker) as wire:
                    self._converse(wire)
            except (OSError, EOFError):
                time.sleep(0.02)  # the broker is down; try again

    def _converse(self, wire: Wire) -> None:
        if self.sender.is_idempotent and self._producer_id < 0:
            told = wire.ask(_INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None))
            assert told.error_code == 0, ErrorCode(told.error_code).name
            self._producer_id = told.producer_id
        for batch in self._pending:
            self._send(wire, batch)
        under_way = deque(self._pending)
        while under_way or not self.stopping.is_set():
            while len(under_way) < self._window and self.may_send():
                batch = self._new_batch()
                self._pending.append(batch)
                under_way.append(batch)
                self._send(wire, batch)
            if under_way and not self._take_answer(wire, under_way):
                return
            time.sleep(self.PAUSE_S)  # a load for the broker, not for the machine

    def _take_answer(self, wire: Wire, under_way: deque[_Batch]) -> bool:
        """Whether the first batch under way was acknowledged; if not, it is tried again on a new connection."""
        code, offset = self._answer(wire)
        if code in _AGAIN:
            # Those behind it fail too, and must not come in between later.
            for _ in range(len(under_way) - 1):
                self._answer(wire)
            return False
        assert code in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER), (
            f"{self.name}: {ErrorCode(code).name} for the first of {[b.first_number for b in under_way]}"
        )
        batch = under_way.popleft()
        assert self._pending.popleft() is batch
        for index in range(batch.count):
            self.sender.acked[batch.first_number + index] = offset + index if code == 0 else None
        return True

    def _answer(self, wire: Wire) -> tuple[int, int]:
        _, response = wire.receive(PRODUCE, self.VERSION)
        (answer,) = response.responses[0].partition_responses
        return answer.error_code, answer.base_offset

    def _send(self, wire: Wire, batch: _Batch) -> None:
        wire.send(
            PRODUCE, self.VERSION, produce(self.topic, batch.data, acks=self._acks, partition=self.partition)
        )

    def _new_batch(self) -> _Batch:
        values = [self.next_value() for _ in range(self.BATCH_RECORDS)]
        first_number = values[0][0]
        now_ms = time.time_ns() // 1_000_000
        identity: dict[str, Any] = (
            {"producer_id": self._producer_id, "producer_epoch": 0, "base_sequence": first_number}
            if self.sender.is_idempotent
            else {}
        )
        records = [NewRecord(now_ms, None, value) for _, value in values]
        return _Batch(first_number, len(values), bytes(build_batch(records, codec=self._codec, **identity)))
