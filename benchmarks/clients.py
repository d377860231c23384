"""The same with real clients, confluent-kafka's: here it is mostly the client that takes the time."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.brokers import HOST, Server, Topic
from benchmarks.contest import Contest, Run, cheaper, contest, faster
from benchmarks.load import Taken
from benchmarks.measure import Bench, Figure

_VALUE = bytes(90)
_RECORD_BYTES = 100
_CONSUMED_AT_ONCE = 10_000
_TIMEOUT_S = 30.0


def run(bench: Bench) -> list[Figure]:
    records = bench.scale.broker.client_records
    size_bytes = records * _RECORD_BYTES
    with contest(bench, 2 * size_bytes) as between, ExitStack() as stack:
        produced = between.race(partial(_produce, between, records))
        topics = {}
        for server in between.servers:
            topics[server.name] = topic = stack.enter_context(server.topic(1))
            between.load(server, produce, topic, records)
        consumed = between.race(lambda server: between.load(server, consume, topics[server.name], records))
    return [
        faster("confluent-kafka: produce 100-byte records", produced, records / 1e3, "thousand/s"),
        cheaper("confluent-kafka: broker CPU per GB, produce", produced, size_bytes),
        faster("confluent-kafka: consume 100-byte records", consumed, records / 1e3, "thousand/s"),
        cheaper("confluent-kafka: broker CPU per GB, consume", consumed, size_bytes),
    ]


def _produce(between: Contest, records: int, server: Server) -> Run:
    with server.topic(1) as topic:
        return between.load(server, produce, topic, records)


def produce(topic: Topic, records: int) -> Taken:
    """In the load's process: send all, and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": f"{HOST}:{topic.port}", "linger.ms": 5})
    # Before the clock starts the client is connected and knows the leader.
    producer.produce(topic.name, _VALUE)
    producer.flush(_TIMEOUT_S)
    cpu_before, before = time.process_time(), time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic.name, _VALUE)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(_TIMEOUT_S)
    taken = Taken(time.perf_counter() - before, time.process_time() - cpu_before)
    if left:
        raise RuntimeError(f"{left} records were not acknowledged")
    return taken


def consume(topic: Topic, records: int) -> Taken:
    """In the load's process: read the partition from its beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"{HOST}:{topic.port}",
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "queued.min.messages": records,  # when it has as many, it waits for a second
        }
    )
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    first = consumer.consume(1, _TIMEOUT_S)
    count = len(first)
    cpu_before, before = time.process_time(), time.perf_counter()
    while count < records:
        came = consumer.consume(min(_CONSUMED_AT_ONCE, records - count), _TIMEOUT_S)
        for message in came:
            if message.error() is not None:
                raise RuntimeError(f"consuming {topic.name} failed: {message.error()}")
        if not came:
            raise RuntimeError(f"{topic.name}: only {count} records came")
        count += len(came)
    taken = Taken(time.perf_counter() - before, time.process_time() - cpu_before)
    consumer.close()
    return taken
