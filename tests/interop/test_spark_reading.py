"""The directory of a running Kafka broker, read while it is written to, cleaned and trimmed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.spark.transport.files import is_held
from tests.consuming import as_dict
from tests.interop.client import KafkaClient
from tests.interop.kafka import NEWEST, KafkaBroker
from tests.interop.test_live_tools import BATCHES_BETWEEN, PAUSE_MS, RESTLESS, ROUNDS, SMALL, TOPICS
from tests.spark.making import FS, options_for, read_all
from tests.spark.transport.test_kafka_directories import KINDS

ENOUGH = 10  # records: while retention takes them away, few may be found by both
_OFTEN = {"replica.high.watermark.checkpoint.interval.ms": "100"}


@pytest.fixture(scope="module")
def busy(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> Iterator[tuple[KafkaBroker, KafkaClient]]:
    """A broker under load."""
    directory = tmp_path_factory.mktemp("busy")
    with KafkaBroker(NEWEST, directory, {**RESTLESS, **_OFTEN}) as broker, broker.client() as client:
        streams = []
        for topic, configs in TOPICS.items():
            client.call("create", topic=topic, partitions=1, configs={**SMALL, **configs})
            producer = {"client.id": topic, "compression.type": "lz4"}
            if topic in ("txn", "compacted"):
                producer["transactional.id"] = topic
            stream = {
                "topic": topic,
                "producer": producer,
                "keyed": topic == "compacted",
                "pause_ms": PAUSE_MS,
            }
            streams.append({**stream, "seed": rng.randrange(2**31)})
        client.call("load", streams=streams)
        yield broker, client


def _told(row: dict[str, Any]) -> dict[str, Any]:
    headers = [(pair["key"].encode(), pair["value"]) for pair in row["headers"] or []]
    kind = KINDS[row["timestampType"]]
    return as_dict(row["offset"], row["timestamp"] // 1000, kind, row["key"], row["value"], None, headers)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.filterwarnings("ignore:.* are gone:RuntimeWarning")  # retention runs all the time
def test_what_is_read_is_what_a_consumer_gets(
    busy: tuple[KafkaBroker, KafkaClient], topic: str, isolation: str
) -> None:
    broker, client = busy
    options = options_for(
        broker.data_dir,
        subscribe=topic,
        includeHeaders="true",
        targetBytesPerPartition="3000",
        kafka_isolation_level=isolation,
    )
    compared = rounds = 0
    while rounds < ROUNDS // 2 or compared <= ENOUGH:
        rounds += 1
        client.call("await_load", batches=BATCHES_BETWEEN)
        assert is_held(FS, str(broker.data_dir))
        before = client.consume(topic, isolation=isolation)["records"]
        found = [_told(row) for row in read_all(options)]
        after = client.consume(topic, isolation=isolation)["records"]
        offsets = [one["offset"] for one in found]
        assert offsets == sorted(set(offsets))
        known = {one["offset"]: {**one, "leader_epoch": None} for one in (*before, *after)}
        for one in found:
            if one["offset"] in known:
                compared += 1
                assert one == known[one["offset"]]
            else:  # the cleaner or retention took it between the two
                assert topic in ("compacted", "trimmed")
        if topic in ("plain", "txn"):
            assert offsets == [one["offset"] for one in after][: len(offsets)]
