"""Options: the connector's names and rules, and errors that say what to do."""

from __future__ import annotations

import pickle

import pytest

from ottla.errors import ConfigError
from ottla.names import TopicPartition
from ottla.spark.offsets import EARLIEST, LATEST
from ottla.spark.options import Bound, read_options, write_options


def test_what_is_not_said_is_as_in_the_connector() -> None:
    batch = read_options({"path": "/data"})
    stream = read_options({"path": "/data"}, is_stream=True)
    assert (batch.starting, batch.ending) == (Bound(EARLIEST), Bound(LATEST))
    assert stream.starting == Bound(LATEST)
    assert batch.fail_on_data_loss
    assert not batch.read_committed
    assert batch.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def test_options_travel_to_tasks_unchanged() -> None:
    options = read_options(
        {
            "kafka.bootstrap.servers": "a:1,b:2",
            "kafka.security.protocol": "SSL",
            "assign": '{"t": [1, 0]}',
            "startingOffsets": '{"t": {"0": 5, "1": -2}}',
            "endingTimestamp": "2026-01-31T12:00:00Z",
            "KAFKA.isolation.level": "read_committed",
            "targetBytesPerPartition": "512k",
        }
    )
    assert pickle.loads(pickle.dumps(options)) == options
    assert options.servers == "a:1,b:2"
    assert options.kafka["security.protocol"] == "SSL"
    assert options.assign == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert options.starting.by_partition == {TopicPartition("t", 0): 5, TopicPartition("t", 1): EARLIEST}
    assert options.ending.time_ms == 1769860800000
    assert options.read_committed
    assert options.target_bytes_per_partition == 512 * 1024


def test_a_time_goes_before_offsets() -> None:
    both = {"path": "/data", "startingTimestamp": "1700000000000", "startingOffsets": "earliest"}
    assert read_options(both).starting == Bound(time_ms=1_700_000_000_000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "nothing to read from"),
        ({"kafka.bootstrap.servers": "a:1"}, "no topics"),
        ({"path": "s3://bucket/d"}, "directories that every machine sees"),
        ({"path": "/d", "startingOfsets": "earliest"}, "did you mean startingOffsets"),
        ({"path": "/d", "kafak.group.id": "g"}, "did you mean kafka.group.id"),
        ({"path": "/d", "subscribe": "a", "assign": '{"a": [0]}'}, "assign and subscribe contradict"),
        ({"path": "/d", "subscribePattern": "("}, "no regular expression"),
        ({"path": "/d", "startingOffsets": "latest"}, "leaves nothing to read"),
        ({"path": "/d", "endingOffsets": "earliest"}, "leaves nothing to read"),
        ({"path": "/d", "startingOffsets": '{"a": 1}'}, "not offsets by topic and partition"),
        ({"path": "/d", "startingOffsets": '{"a": {"0": -3}}'}, "offsets begin at 0"),
        ({"path": "/d", "startingTimestamp": "yesterday"}, "neither milliseconds nor a time"),
        ({"path": "/d", "minPartitions": "0"}, "a number above 0"),
        ({"path": "/d", "targetBytesPerPartition": "many"}, "a number of bytes"),
        ({"path": "/d", "failOnDataLoss": "maybe"}, "true or false"),
        ({"path": "/d", "mode": "lenient"}, "failfast or permissive"),
        ({"path": "/d", "quarantinePath": "/q"}, "needs mode=permissive"),
        ({"path": "/d", "columns": "key,vale"}, "there is no column vale"),
        ({"path": "/d", "kafka.isolation.level": "snapshot"}, "read_uncommitted or read_committed"),
        ({"path": "/d", "kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({"path": "/d", "maxOffsetsPerTrigger": "5"}, "only for spark.readStream"),
        ({"path": "/d", "topic": "t"}, "only for writing"),
        ({"kafka.bootstrap.servers": "a:1", "bootstrap.servers": "b:1", "subscribe": "t"}, "differ"),
    ],
)
def test_a_wrong_option_is_refused_with_what_to_do(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_options(given)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(ConfigError, match=r"endingOffsets is only for spark\.read"):
        read_options({"path": "/d", "endingOffsets": "latest"}, is_stream=True)


def test_a_write_refuses_what_is_for_reading() -> None:
    assert write_options({"kafka.bootstrap.servers": "a:1", "topic": "t"}).topic == "t"
    with pytest.raises(ConfigError, match="subscribe is an option for reading"):
        write_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t"})
    with pytest.raises(ConfigError, match="nowhere to write to"):
        write_options({"topic": "t"})
