"""Transactions of 100 records each: begun by writing, ended by EndTxn, the next begun when the end is answered.

As clients of `transaction.version` 2 do it. A broker may still be writing the markers of the transaction before, and
say so; then the records are sent again.
"""

from __future__ import annotations

import select
import socket
import struct
import time
import uuid
from functools import partial

from benchmarks.brokers import HOST, TIMEOUT_S, Server, Topic, ask
from benchmarks.contest import Contest, Run, contest, faster, lower
from benchmarks.load import Taken, drive, encoded
from benchmarks.measure import Bench, Figure
from ottla.protocol import frame
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.builder import NewRecord, build_batch

_PRODUCERS = 10
_RECORDS = 100
_VALUE = bytes(90)
_MEMORY_BYTES = 64 << 20
_FIND, _FIND_VERSION = 10, 4
_INIT, _INIT_VERSION = 22, 5
_PRODUCE, _PRODUCE_VERSION = 0, 12
_END, _END_VERSION = 26, 5
_LENGTH = struct.Struct(">i")
_RETRY_S = 0.01


def run(bench: Bench) -> list[Figure]:
    """One partition for each of ten producers."""
    transactions = bench.scale.broker.transactions
    with contest(bench, _MEMORY_BYTES) as between:
        runs = between.race(partial(_transact, between, transactions))
    what = f"transactions of {_RECORDS} records, {_PRODUCERS} producers"
    return [
        faster(what, runs, transactions, "transactions/s", 1.5),
        lower("broker CPU for a transaction", [run.cpu_s / transactions * 1e6 for run in runs], "µs", None),
    ]


def _transact(between: Contest, transactions: int, server: Server) -> Run:
    with server.topic(_PRODUCERS) as topic:
        return between.load(server, transact, topic, transactions)


def transact(topic: Topic, transactions: int) -> Taken:
    """In the load's process: so many transactions in all."""
    each = transactions // _PRODUCERS
    lines = [_Producer(topic, number, each) for number in range(_PRODUCERS)]
    return drive([line.socket for line in lines], lines)


class _Producer:
    """A connection of one transactional id; everything is encoded before."""

    def __init__(self, topic: Topic, partition: int, count: int) -> None:
        self._name = f"bench-{uuid.uuid4().hex[:8]}"
        producer_id, epoch = _initialised(topic.port, self._name)
        # The first is for warming up: a new topic may not be led at once.
        self._requests = iter(
            [
                request
                for number in range(1, count + 1)
                for request in (
                    self._produce(topic, partition, producer_id, epoch + number),
                    self._end(producer_id, epoch + number),
                )
            ]
        )
        self.socket = socket.create_connection((HOST, topic.port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._is_end = True
        self._sent = b""
        for request in (self._produce(topic, partition, producer_id, epoch), self._end(producer_id, epoch)):
            self._until_taken(request)

    def _produce(self, topic: Topic, partition: int, producer_id: int, epoch: int) -> bytes:
        now_ms = int(time.time() * 1000)
        batch = build_batch(
            [NewRecord(now_ms, None, _VALUE) for _ in range(_RECORDS)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
        data = PartitionProduceData(index=partition, records=memoryview(bytes(batch)))
        request = ProduceRequest(
            transactional_id=self._name,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic.name, partition_data=[data])],
        )
        return encoded(_PRODUCE, _PRODUCE_VERSION, request)

    def _end(self, producer_id: int, epoch: int) -> bytes:
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        return encoded(_END, _END_VERSION, request)

    def _until_taken(self, request: bytes) -> None:
        self._is_end = not self._is_end
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.socket.sendall(request)
            (size,) = _LENGTH.unpack(self.socket.recv(4, socket.MSG_WAITALL))
            code = self._code(self.socket.recv(size, socket.MSG_WAITALL))
            if not code:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"no transaction can be begun: {ErrorCode(code).name}")
            time.sleep(_RETRY_S)

    def _code(self, answer: bytes | bytearray) -> int:
        code: int
        if self._is_end:
            code = frame.decode_response(_END, _END_VERSION, bytes(answer))[1].error_code
        else:
            response = frame.decode_response(_PRODUCE, _PRODUCE_VERSION, bytes(answer))[1]
            code = response.responses[0].partition_responses[0].error_code
        return code

    def turn(self, event: int) -> int:
        """Receive an answer and send what follows from it; 0 when all is done."""
        if event:
            self._received += self.socket.recv(1 << 16)
            if len(self._received) < 4 or len(self._received) < 4 + _LENGTH.unpack_from(self._received)[0]:
                return select.EPOLLIN
            code = self._code(self._received[4:])
            self._received.clear()
            if code == ErrorCode.CONCURRENT_TRANSACTIONS:
                self.socket.send(self._sent)
                return select.EPOLLIN
            if code:
                raise RuntimeError(f"a transaction failed: {ErrorCode(code).name}")
        request = next(self._requests, None)
        if request is None:
            return 0
        self._is_end = not self._is_end
        self._sent = request
        self.socket.send(request)
        return select.EPOLLIN


def _initialised(port: int, name: str) -> tuple[int, int]:
    """The coordinator may still be made."""
    deadline = time.monotonic() + TIMEOUT_S
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    while True:
        ask(port, _FIND, _FIND_VERSION, FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
        answer = ask(port, _INIT, _INIT_VERSION, request)
        if not answer.error_code:
            return answer.producer_id, answer.producer_epoch
        if time.monotonic() > deadline:
            raise RuntimeError(f"no producer id: {ErrorCode(answer.error_code).name}")
        time.sleep(_RETRY_S)
