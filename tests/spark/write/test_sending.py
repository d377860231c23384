"""Rows into topics from one task: what they become, what is refused, and turns that come again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.client.cluster import Cluster
from ottla.client.producing import Producer as RawProducer
from ottla.client.reading import LATEST, READ_COMMITTED, list_offsets
from ottla.errors import BrokerError, ConfigError, ProducerFencedError
from ottla.spark.options import WriteOptions
from ottla.spark.write.packing import check_columns
from ottla.spark.write.sending import Sent, Turn, end_held, give_up, send_rows
from ottla.testing.embedded import EmbeddedBroker
from tests.client.sending import batch_of

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    name = f"topic{len(broker.topics())}"
    broker.create_topic(name, 3)
    return name


def _options(broker: EmbeddedBroker, topic: str | None = None, **more: str) -> WriteOptions:
    settings = {name.replace("_", "."): value for name, value in more.items()}
    return WriteOptions({"bootstrap.servers": broker.bootstrap, **settings}, topic)


def _read(broker: EmbeddedBroker, topic: str, partitions: int = 3) -> list[Any]:
    """Committed messages in the order of their partitions, read by another client."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def _values(broker: EmbeddedBroker, topic: str) -> list[bytes]:
    return sorted(message.value() for message in _read(broker, topic))


def _rows(*values: str) -> list[pa.RecordBatch]:
    return [pa.record_batch({"value": pa.array(values)})]


def test_keys_values_and_headers_arrive_as_they_are(broker: EmbeddedBroker, topic: str) -> None:
    rows = pa.record_batch(
        {
            "key": pa.array(["a", None, "", "d"]),
            "value": pa.array([b"1", b"2", None, b""]),
            "headers": pa.array(
                [[{"key": "h", "value": b"x"}, {"key": "i", "value": None}], None, [], None], HEADERS
            ),
            "more": pa.array([1, 2, 3, 4]),
        }
    )
    assert send_rows(_options(broker, topic), [rows]) == Sent(4)
    found = {(m.key(), m.value(), tuple(m.headers() or ())) for m in _read(broker, topic)}
    assert found == {
        (b"a", b"1", (("h", b"x"), ("i", None))),
        (None, b"2", ()),
        (b"", None, ()),
        (b"d", b"", ()),
    }


def test_a_slice_of_a_batch_is_only_that_slice(broker: EmbeddedBroker, topic: str) -> None:
    whole = pa.record_batch(
        {
            "key": pa.array([None if n % 3 == 0 else str(n) for n in range(40)]),
            "value": pa.array([None if n % 5 == 0 else str(n) for n in range(40)]),
            "headers": pa.array(
                [None if n % 7 == 0 else [{"key": str(n), "value": b""}] for n in range(40)], HEADERS
            ),
        }
    )
    send_rows(_options(broker, topic), [whole.slice(3, 5), whole.slice(16, 8), whole.slice(39, 0)])
    found = sorted((m.key() or b"", m.value() or b"", str(m.headers())) for m in _read(broker, topic))
    expected = sorted(
        (
            b"" if n % 3 == 0 else b"%d" % n,
            b"" if n % 5 == 0 else b"%d" % n,
            str(None if n % 7 == 0 else [(str(n), b"")]),
        )
        for n in (*range(3, 8), *range(16, 24))
    )
    assert found == expected


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=lambda kind: str(kind)
)
def test_text_of_any_kind_is_written(broker: EmbeddedBroker, topic: str, kind: pa.DataType) -> None:
    rows = pa.record_batch({"key": pa.nulls(2), "value": pa.array(["a", "b"]).cast(kind)})
    send_rows(_options(broker, topic), [rows])
    assert _values(broker, topic) == [b"a", b"b"]


def test_partitions_are_those_that_kafkas_clients_choose(broker: EmbeddedBroker, topic: str) -> None:
    keys = [str(number) for number in range(300)]
    send_rows(_options(broker, topic), [pa.record_batch({"key": keys, "value": keys})])
    broker.create_topic(f"{topic}-there", 3)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2"})
    for key in keys:
        producer.produce(f"{topic}-there", key, key)
    producer.flush(TIMEOUT_S)
    mine, theirs = (
        {m.key(): m.partition() for m in _read(broker, name)} for name in (topic, f"{topic}-there")
    )
    assert mine == theirs


def test_rows_without_keys_are_spread(broker: EmbeddedBroker, topic: str) -> None:
    send_rows(_options(broker, topic), [pa.record_batch({"value": ["x" * 1000] * 300})])
    counts = [sum(m.partition() == index for m in _read(broker, topic)) for index in range(3)]
    assert sum(counts) == 300
    assert min(counts) > 80


def test_topic_and_partition_may_be_columns(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(f"{topic}-b", 3)
    rows = pa.record_batch(
        {
            "topic": [topic, f"{topic}-b", topic],
            "partition": pa.array([2, 1, None], pa.int32()),
            "key": ["0", "0", "0"],
            "value": ["a", "b", "c"],
        }
    )
    send_rows(_options(broker), [rows])
    assert [(m.partition(), m.value()) for m in _read(broker, f"{topic}-b")] == [(1, b"b")]
    assert {m.value() for m in _read(broker, topic)} == {b"a", b"c"}
    assert next(m.partition() for m in _read(broker, topic) if m.value() == b"a") == 2
    # The option goes before the column.
    send_rows(_options(broker, f"{topic}-b"), [rows])
    assert len(_read(broker, f"{topic}-b")) == 4


def test_a_topic_that_is_met_late_is_looked_up_in_between(broker: EmbeddedBroker, topic: str) -> None:
    names = [topic, f"{topic}-b", f"{topic}-c"]
    for name in names[1:]:
        broker.create_topic(name, 3)
    rows = [pa.record_batch({"topic": [name] * 500, "value": ["x" * 90] * 500}) for name in names]
    assert send_rows(_options(broker, batch_size="2000"), rows) == Sent(1500)
    assert [len(_read(broker, name)) for name in names] == [500, 500, 500]


def test_many_rows_fill_batches_and_keep_their_order(broker: EmbeddedBroker, topic: str) -> None:
    batches = [
        pa.record_batch({"key": [str(n % 7) for n in span], "value": [f"{n:06}" for n in span]})
        for span in (range(at, at + 1000) for at in range(0, 20_000, 1000))
    ]
    options = _options(broker, topic, batch_size="4096", compression_type="lz4")
    assert send_rows(options, batches) == Sent(20_000)
    found = _read(broker, topic)
    assert sorted(m.value() for m in found) == [b"%06d" % n for n in range(20_000)]
    for key in {m.key() for m in found}:
        values = [m.value() for m in found if m.key() == key]
        assert values == sorted(values)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": pa.string()}, "column value is missing"),
        ({"value": pa.int64()}, "value is int64: cast it"),
        ({"value": pa.string(), "key": pa.int32()}, "key is int32: cast it"),
        ({"value": pa.string(), "partition": pa.int64()}, "partition is int64: cast it to int"),
        ({"value": pa.string(), "headers": pa.list_(pa.string())}, "headers is list"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns: dict[str, pa.DataType], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_columns(pa.schema(list(columns.items())), "t")


def test_rows_need_a_topic() -> None:
    with pytest.raises(ConfigError, match="option topic, or a column topic"):
        check_columns(pa.schema([("value", pa.string())]), None)
    with pytest.raises(ConfigError, match="topic is int32, not a string"):
        check_columns(pa.schema([("value", pa.string()), ("topic", pa.int32())]), None)
    check_columns(pa.schema([("value", pa.string()), ("topic", pa.string()), ("headers", HEADERS)]), None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"value": ["a", "b"], "topic": ["TOPIC", None]}, "topic is null in some rows"),
        (
            {"value": ["a"], "topic": ["TOPIC"], "partition": pa.array([3], pa.int32())},
            "0 to 2; a row asks for 3",
        ),
        ({"value": ["a"], "topic": ["TOPIC"], "partition": pa.array([-1], pa.int32())}, "a row asks for -1"),
        (
            {
                "value": ["a"],
                "topic": ["TOPIC"],
                "headers": pa.array([[{"key": None, "value": b""}]], HEADERS),
            },
            "a header without a name",
        ),
    ],
)
def test_rows_that_cannot_be_written_are_refused(
    broker: EmbeddedBroker, topic: str, rows: dict[str, Any], message: str
) -> None:
    rows["topic"] = [name and topic for name in rows["topic"]]
    with pytest.raises(ConfigError, match=message):
        send_rows(_options(broker), [pa.record_batch(rows)])


@pytest.mark.parametrize(
    ("setting", "value"),
    [("compression_type", "brotli"), ("batch_size", "0"), ("delivery_timeout_ms", "soon")],
)
def test_settings_that_mean_nothing_are_refused(broker: EmbeddedBroker, setting: str, value: str) -> None:
    with pytest.raises(ConfigError, match=setting.replace("_", ".")):
        send_rows(_options(broker, "t", **{setting: value}), [])


def test_a_topic_that_is_not_there_is_told() -> None:
    with (
        EmbeddedBroker({"auto.create.topics.enable": "false"}) as broker,
        pytest.raises(BrokerError, match="topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        send_rows(_options(broker, "nowhere"), _rows("a"))


# -- turns


def test_a_turn_that_comes_again_is_passed_over(broker: EmbeddedBroker, topic: str) -> None:
    options = _options(broker, topic)
    assert send_rows(options, _rows("a", "b"), Turn(topic, 0, 5)) == Sent(2)
    assert send_rows(options, _rows("a", "b"), Turn(topic, 0, 5)) == Sent(2, skipped=True)
    assert send_rows(options, _rows("x"), Turn(topic, 0, 4)) == Sent(1, skipped=True)  # an older one too
    assert send_rows(options, _rows("c"), Turn(topic, 1, 5)) == Sent(1)  # another task
    assert send_rows(options, _rows("d"), Turn(f"{topic}-b", 0, 5)) == Sent(1)  # another query
    assert send_rows(options, _rows("e"), Turn(topic, 0, 6)) == Sent(1)
    assert _values(broker, topic) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_turn_without_rows_leaves_nothing(broker: EmbeddedBroker, topic: str) -> None:
    options = _options(broker, topic)
    assert send_rows(options, [], Turn(topic, 0, 5)) == Sent(0)
    assert send_rows(options, _rows("a")[:0], Turn(topic, 0, 6)) == Sent(0)
    assert send_rows(options, _rows("a"), Turn(topic, 0, 7)) == Sent(1)
    assert _values(broker, topic) == [b"a"]


def test_turns_are_known_whichever_topic_they_wrote_to(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(f"{topic}-b", 3)
    first = [pa.record_batch({"topic": [topic], "value": ["a"]})]
    second = [pa.record_batch({"topic": [f"{topic}-b"], "value": ["b"]})]
    assert send_rows(_options(broker), second, Turn(topic, 0, 1)) == Sent(1)
    assert send_rows(_options(broker), first, Turn(topic, 0, 2)) == Sent(1)
    assert send_rows(_options(broker), first, Turn(topic, 0, 2)) == Sent(1, skipped=True)
    assert send_rows(_options(broker), second, Turn(topic, 0, 1)) == Sent(1, skipped=True)


def test_a_turn_that_comes_again_with_other_rows_is_an_error(broker: EmbeddedBroker, topic: str) -> None:
    send_rows(_options(broker, topic), _rows("a", "b"), Turn(topic, 0, 5))
    with pytest.raises(ConfigError, match="wrote 2 rows before, and has 3 now"):
        send_rows(_options(broker, topic), _rows("a", "b", "c"), Turn(topic, 0, 5))


class LostError(Exception):
    """A task that ends in the middle."""


def _then_lost(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise LostError


def test_a_turn_that_fails_leaves_nothing_and_is_done_when_it_comes_again(
    broker: EmbeddedBroker, topic: str
) -> None:
    options = _options(broker, topic, batch_size="100")
    with pytest.raises(LostError):
        send_rows(options, _then_lost(_rows(*("x" * 90,) * 50)), Turn(topic, 0, 5))
    assert send_rows(options, _rows("a"), Turn(topic, 0, 5)) == Sent(1)
    assert _values(broker, topic) == [b"a"]


def test_a_task_that_was_given_up_for_dead_cannot_write_any_more(broker: EmbeddedBroker, topic: str) -> None:
    turn = Turn(topic, 0, 5)
    with Cluster(broker.bootstrap) as cluster:
        zombie = RawProducer(cluster, turn.id)
        zombie.send({(topic, 0): batch_of(b"zombie")})
        zombie.flush()
        assert send_rows(_options(broker, topic), _rows("a"), turn) == Sent(1)
        with pytest.raises(ProducerFencedError):
            zombie.commit()
    assert _values(broker, topic) == [b"a"]


def test_the_slower_of_two_attempts_at_a_turn_fails(broker: EmbeddedBroker, topic: str) -> None:
    turn, options = Turn(topic, 0, 5), _options(broker, topic)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from _rows("a")
        assert send_rows(options, _rows("a", "b"), turn) == Sent(2)
        yield from _rows("b")

    with pytest.raises(ProducerFencedError):
        send_rows(options, overtaken(), turn)
    assert _values(broker, topic) == [b"a", b"b"]


@pytest.mark.parametrize("api", ["Produce", "AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn", "OffsetFetch"])
@pytest.mark.parametrize("handled", [False, True])
def test_lost_answers_change_nothing(broker: EmbeddedBroker, topic: str, api: str, handled: bool) -> None:
    broker.faults.drop(api, count=1, handled=handled)
    options = _options(broker, topic)
    assert send_rows(options, _rows("a", "b"), Turn(topic, 0, 5)) == Sent(2)
    assert send_rows(options, _rows("a", "b"), Turn(topic, 0, 5)) == Sent(2, skipped=True)
    assert broker.faults.pending == 0
    assert _values(broker, topic) == [b"a", b"b"]


def test_a_turn_that_is_held_counts_when_the_driver_says_so(broker: EmbeddedBroker, topic: str) -> None:
    options, turn = _options(broker, topic), Turn(topic, 0, 5)
    held = send_rows(options, _rows("a"), turn, hold=True)
    assert held.rows == 1
    assert _values(broker, topic) == []
    for _ in range(2):  # the second time its answer may have been lost
        end_held(options, [held, Sent(0)], committed=True)
    assert _values(broker, topic) == [b"a"]
    again = send_rows(options, _rows("a"), turn, hold=True)
    assert again == Sent(1, skipped=True)
    end_held(options, [again], committed=True)
    given_up = send_rows(options, _rows("b"), Turn(topic, 0, 6), hold=True)
    end_held(options, [given_up], committed=False)
    assert _values(broker, topic) == [b"a"]


def test_a_turn_that_was_held_by_a_driver_that_died_is_written_once(
    broker: EmbeddedBroker, topic: str
) -> None:
    options, turn = _options(broker, topic), Turn(topic, 0, 5)
    lost = send_rows(options, _rows("a"), turn, hold=True)
    held = send_rows(options, _rows("a"), turn, hold=True)
    with pytest.raises(ProducerFencedError):
        end_held(options, [lost], committed=True)
    end_held(options, [held], committed=True)
    assert _values(broker, topic) == [b"a"]


def open_topics(broker: EmbeddedBroker, topic: str, partitions: int = 3) -> list[int]:
    """The partitions whose committed records end before the others: a transaction is open there."""
    keys = dict.fromkeys([(topic, index) for index in range(partitions)], LATEST)
    with Cluster(broker.bootstrap) as cluster:
        everything = list_offsets(cluster, keys)
        stable = list_offsets(cluster, keys, READ_COMMITTED)
    return [key[1] for key in keys if stable[key].offset < everything[key].offset]


def test_who_gives_up_leaves_no_transaction_open_and_touches_no_other(
    broker: EmbeddedBroker, topic: str
) -> None:
    options = _options(broker, topic)
    rows = pa.record_batch({"value": ["a"], "partition": pa.array([0], pa.int32())})
    other = pa.record_batch({"value": ["b"], "partition": pa.array([1], pa.int32())})
    for task in (0, 11):
        send_rows(options, [rows], Turn(f"run-{topic}", task, 0), hold=True)
    held = send_rows(options, [other], Turn(f"run-{topic}-1", 0, 0), hold=True)  # a run with a longer name
    assert open_topics(broker, topic) == [0, 1]
    give_up(options, f"run-{topic}")
    assert open_topics(broker, topic) == [1]
    end_held(options, [held], committed=True)
    assert _values(broker, topic) == [b"b"]
    assert send_rows(options, [rows], Turn(f"run-{topic}", 0, 0)) == Sent(1)


def test_a_task_that_was_given_up_cannot_write_any_more(broker: EmbeddedBroker, topic: str) -> None:
    options = _options(broker, topic)

    def slow() -> Iterator[pa.RecordBatch]:
        give_up(options, topic)
        yield from _rows("late")

    with pytest.raises(ProducerFencedError):
        send_rows(options, slow(), Turn(topic, 0, 0))
    assert _values(broker, topic) == []


def test_giving_up_without_brokers_is_no_second_error() -> None:
    give_up(WriteOptions({"bootstrap.servers": "127.0.0.1:1"}), "query")
