"""Reads through brokers: what was written is read, for any sizes of fetches and splits."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.cluster import Cluster
from ottla.client.producing import Producer
from ottla.client.reading import end_offsets
from ottla.errors import BrokerError
from ottla.names import TopicPartition
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.records.compression.codec import Codec
from ottla.spark.options import ReadOptions, read_options
from ottla.spark.read import plan
from ottla.spark.transport.open_transport import open_transport
from ottla.testing.embedded import EmbeddedBroker
from tests.client.sending import batch_of

Row = tuple[int, int, bytes]  # partition, offset, value


class Step(NamedTuple):
    """A batch of some producer, and what becomes of its transaction then."""

    producer: int | None  # None: without a transaction
    codec: Codec
    partition: int
    values: list[bytes]
    end: str  # "", "commit", "abort"


steps = st.lists(
    st.builds(
        Step,
        st.none() | st.integers(0, 2),
        st.sampled_from(Codec),
        st.integers(0, 1),
        st.lists(st.binary(max_size=300), min_size=1, max_size=5),
        st.sampled_from(("", "", "commit", "abort")),
    ),
    max_size=25,
)


class History:
    """A topic that is being written to, and what a reader should find."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self.topic = topic
        self._producers: dict[int, Producer] = {}
        ends = end_offsets(cluster, [(topic, 0), (topic, 1)])
        self._ends = [ends[topic, 0], ends[topic, 1]]
        self.start = json.dumps({topic: {str(index): end for index, end in enumerate(self._ends)}})
        self.rows: list[Row] = []
        self._open: dict[int, list[Row]] = {}
        self._aborted: list[Row] = []

    def run(self, history: list[Step]) -> None:
        for step in history:
            rows = self._written(step)
            if step.producer is None:
                producer = Producer(self._cluster, codec=step.codec)
            else:
                if step.producer not in self._producers:
                    name = f"{self.topic}-{step.producer}"
                    self._producers[step.producer] = Producer(self._cluster, name, codec=step.codec)
                producer = self._producers[step.producer]
                self._open.setdefault(step.producer, []).extend(rows)
            producer.send({(self.topic, step.partition): batch_of(*step.values)})
            producer.flush()
            if step.producer is not None and step.end:
                self._finish(step.producer, step.end)

    def _written(self, step: Step) -> list[Row]:
        first = self._ends[step.partition]
        self._ends[step.partition] += len(step.values)
        rows = [(step.partition, first + index, value) for index, value in enumerate(step.values)]
        self.rows += rows
        return rows

    def _finish(self, number: int, end: str) -> None:
        rows = self._open.pop(number)
        producer = self._producers[number]
        producer.commit() if end == "commit" else producer.abort()
        for partition in {row[0] for row in rows}:
            self._ends[partition] += 1  # the marker
        if end == "abort":
            self._aborted += rows

    def close(self) -> None:
        """Nothing stays open in the way of what comes after."""
        for number in list(self._open):
            self._finish(number, "abort")

    def committed(self) -> list[Row]:
        """Up to the first open transaction, without those that were given up."""
        ends = list(self._ends)
        for rows in self._open.values():
            for partition, offset, _ in rows:
                ends[partition] = min(ends[partition], offset)
        return [row for row in self.rows if row[1] < ends[row[0]] and row not in self._aborted]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        # Made here: hypothesis makes random ids the same again, so that its examples could make one topic only.
        running.create_topic("grows", 2)
        with Cluster(running.bootstrap) as cluster:
            Producer(cluster, "first")
        yield running


@pytest.fixture(scope="module")
def cluster(broker: EmbeddedBroker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as found:
        yield found


def _options(broker: EmbeddedBroker, topic: str, **more: object) -> ReadOptions:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    return read_options({**given, **{name.replace("_", "."): str(value) for name, value in more.items()}})


def _read(options: ReadOptions) -> list[Row]:
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    found = []
    for split in splits:
        for batch in plan.read_split(options, split):
            columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
            found += list(zip(*columns, strict=True))
    return found


@settings(max_examples=25)
@given(steps, st.integers(50, 3000), st.integers(100, 5000))
def test_what_was_written_is_read_for_any_size_of_fetches_and_splits(
    broker: EmbeddedBroker, cluster: Cluster, history: list[Step], fetch_bytes: int, split_bytes: int
) -> None:
    made = History(cluster, "grows")
    made.run(history)
    more = {
        "kafka_fetch_max_bytes": fetch_bytes,
        "targetBytesPerPartition": split_bytes,
        "startingOffsets": made.start,
    }
    assert sorted(_read(_options(broker, "grows", **more))) == sorted(made.rows)
    committed = _options(broker, "grows", kafka_isolation_level="read_committed", **more)
    assert sorted(_read(committed)) == sorted(made.committed())
    made.close()


def _fill(cluster: Cluster, topic: str, batches: int, size_bytes: int = 1000) -> list[Row]:
    producer = Producer(cluster)
    values = [b"%d" % number + b"x" * size_bytes for number in range(batches)]
    for value in values:
        producer.send({(topic, 0): batch_of(value)})
    producer.flush()
    return [(0, offset, value) for offset, value in enumerate(values)]


def test_splits_are_about_as_large_as_asked_for_and_the_same_when_planned_again(
    broker: EmbeddedBroker, cluster: Cluster
) -> None:
    broker.create_topic("sized")
    _fill(cluster, "sized", 400)
    options = _options(broker, "sized", targetBytesPerPartition=40_000)
    start, end = plan.starting_offsets(options), plan.latest_offsets(options)
    splits = plan.plan_splits(options, start, end)
    assert 9 <= len(splits) <= 14
    _fill(cluster, "sized", 10, 50_000)  # what comes later changes nothing
    assert plan.plan_splits(options, start, end) == splits


def test_a_broker_that_goes_away_in_the_middle_is_read_to_the_end() -> None:
    with EmbeddedBroker() as mortal, Cluster(mortal.bootstrap) as cluster:
        mortal.create_topic("t")
        expected = _fill(cluster, "t", 50)
        options = _options(mortal, "t", kafka_fetch_max_bytes=5000)
        (split,) = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
        transport = open_transport(options)
        read = transport.read(split.partition, split.start, split.end)
        next(read)
        mortal.restart()
        assert len(list(read)) >= 9
        transport.close()
        assert _read(options) == expected


def test_offsets_that_are_gone_are_named_or_passed_over(broker: EmbeddedBroker, cluster: Cluster) -> None:
    broker.create_topic("gone")
    expected = _fill(cluster, "gone", 10)
    from_first = {"startingOffsets": '{"gone": {"0": 0}}'}  # who asks for the earliest takes what is there
    options = _options(broker, "gone", **from_first)
    end = plan.latest_offsets(options)
    (split,) = plan.plan_splits(options, {TopicPartition("gone", 0): 0}, end)
    _delete_before(cluster, "gone", 4)
    with pytest.raises(BrokerError, match="gone-0: offsets 0 to 3 are gone"):
        list(plan.read_split(options, split))
    with pytest.warns(RuntimeWarning, match="offsets 0 to 3"):
        found = [
            row
            for batch in plan.read_split(
                _options(broker, "gone", failOnDataLoss="false", **from_first), split
            )
            for row in batch.column("offset").to_pylist()
        ]
    assert found == [offset for _, offset, _ in expected[4:]]


def _delete_before(cluster: Cluster, topic: str, offset: int) -> None:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    cluster.ask(
        cluster.leader((topic, 0)),
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=5000),
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("with_files", [False, True])
def test_what_is_reported_as_gone_does_not_land_though_its_batch_is_there(
    codec: Codec, with_files: bool, broker: EmbeddedBroker, cluster: Cluster
) -> None:
    topic = f"half-{codec.name}-{with_files}"
    broker.create_topic(topic)
    producer = Producer(cluster, codec=codec)
    for first in (0, 100, 200):
        producer.send({(topic, 0): batch_of(*[b"%d" % n for n in range(first, first + 100)])})
    producer.flush()
    given = {"startingOffsets": json.dumps({topic: {"0": 90}}), "failOnDataLoss": "false"}
    options = _options(broker, topic, **given, **({"path": broker.data} if with_files else {}))
    splits = plan.plan_splits(options, plan.starting_offsets(options), plan.latest_offsets(options))
    _delete_before(cluster, topic, 150)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = [
            n
            for split in splits
            for batch in plan.read_split(options, split)
            for n in batch["offset"].to_pylist()
        ]
    gone = [n for n in range(90, 300) if n not in found]
    assert found == sorted(found)
    assert found[-150:] == list(range(150, 300))
    # Files may still have what was deleted, and then nothing is said to be gone.
    assert [str(one.message).partition(" are")[0] for one in told] == (
        [f"{topic}-0: offsets {gone[0]} to {gone[-1]}"] if gone else []
    )
    assert with_files or gone == list(range(90, 150))


def test_a_corrupt_batch_is_told_or_put_aside_and_the_others_are_read() -> None:
    with EmbeddedBroker() as broker, Cluster(broker.bootstrap) as cluster:
        broker.create_topic("t")
        expected = _fill(cluster, "t", 9)
        broker.stop()
        path = f"{broker.data}/t-0/{0:020}.log"
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            file.seek(size // 2)  # in the middle of the fifth batch
            file.write(b"?")
        broker.start()
        with pytest.raises(BrokerError, match=r"t-0: at position .*, offset 4: the checksum does not match"):
            _read(_options(broker, "t"))
        options = _options(broker, "t", mode="permissive")
        found = _read(options)
        assert [row for row in found if row[2] is not None] == expected[:4] + expected[5:]


def test_times_and_patterns_are_looked_up_at_the_broker(broker: EmbeddedBroker, cluster: Cluster) -> None:
    for name in ("seen-a", "seen-b"):
        broker.create_topic(name)
        _fill(cluster, name, 3)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribePattern": "seen-.*"}
    assert len(_read(read_options(options))) == 6
    assert len(_read(read_options({**options, "startingTimestamp": "0"}))) == 6
    assert _read(read_options({**options, "endingTimestamp": "0"})) == []
    late = {**options, "startingTimestamp": str(1 << 45)}
    with pytest.raises(BrokerError, match="startingOffsetsByTimestampStrategy=latest"):
        _read(read_options(late))
    assert _read(read_options({**late, "startingOffsetsByTimestampStrategy": "latest"})) == []


def test_a_topic_that_is_not_there_is_told(broker: EmbeddedBroker) -> None:
    with pytest.raises(BrokerError, match="nowhere"):
        _read(_options(broker, "nowhere"))
