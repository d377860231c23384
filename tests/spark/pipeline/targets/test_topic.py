"""Pipelines into topics: each row once, as it was or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.client.transactions import end_transaction
from ottla.errors import PipelineError
from ottla.spark.pipeline.targets.topic import TopicTarget
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.pipeline.helpers import KilledHere, Steps, orders, produce, run_here, write_pipeline
from tests.spark.write.test_sending import open_topics


def read_all(broker: EmbeddedBroker, topic: str) -> list[bytes]:
    """Committed values of a topic's first partition, in order."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "reader",
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings | {"enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        values.append(message.value() or b"")
    consumer.close()
    return values


def sink(broker: EmbeddedBroker, topic: str) -> str:
    broker.create_topic(f"{topic}-out", 1)
    return f'format = "topic"\ntopic = "{topic}-out"\n'


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is killed gives nothing up."""
    monkeypatch.setattr(TopicTarget, "give_up", lambda self, app_id: None)


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("step", ["planned", "written", "quarantined", "committed"])
def test_a_driver_that_dies_at_any_step_leaves_each_record_once(
    step: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, decode='value = "raw"\n', sink=sink(broker, topic))
    produce(broker, topic, [b"%d" % number for number in range(20)], 0)
    produce(broker, topic, [b"%d" % number for number in range(20, 30)], 1)
    with pytest.raises(KilledHere):
        run_here(pipeline, Steps(die_at=step))
    produce(broker, topic, [b"%d" % number for number in range(30, 40)], 1)
    run_here(pipeline)
    assert sorted(map(int, read_all(broker, f"{topic}-out"))) == list(range(40))


@pytest.mark.usefixtures("killed")
def test_a_driver_that_dies_between_two_tasks_transactions_finishes_the_rest(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.spark.write import sending

    pipeline = write_pipeline(tmp_path, broker, topic, decode='value = "raw"\n', sink=sink(broker, topic))
    produce(broker, topic, [b"0", b"1"], 0)
    produce(broker, topic, [b"2", b"3"], 1)
    ended: list[object] = []
    end = end_transaction

    def dies_at_the_second(*args: object, **kwargs: object) -> None:
        if ended:
            raise KilledHere
        ended.append(args)
        end(*args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(sending, "end_transaction", dies_at_the_second)
        with pytest.raises(KilledHere):
            run_here(pipeline)
    run_here(pipeline)
    assert sorted(read_all(broker, f"{topic}-out")) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("how", ["a task fails", "the driver fails"])
def test_a_run_that_fails_leaves_no_transaction_open(
    how: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    decode = 'value = "utf8"\non_error = "fail"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, decode=decode, sink=sink(broker, topic))
    produce(broker, topic, [b"0", b"1"], 0)
    produce(broker, topic, [b"\xff" if how == "a task fails" else b"2"], 1)
    with pytest.raises((PipelineError, KilledHere)):
        run_here(pipeline, Steps(die_at="written"))
    assert open_topics(broker, f"{topic}-out", 1) == []
    assert read_all(broker, f"{topic}-out") == []
    if how == "the driver fails":
        run_here(pipeline)
        assert sorted(read_all(broker, f"{topic}-out")) == [b"0", b"1", b"2"]


def test_decoded_rows_go_out_as_json(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink(broker, topic))
    produce(broker, topic, [*orders(0, 2), b"bad"])
    assert run_here(pipeline).bad == 1
    values = [json.loads(value) for value in read_all(broker, f"{topic}-out")]
    assert values == [{"id": 0, "item": "book", "price": 0.5}, {"id": 1, "item": "book", "price": 1.5}]
    assert list((tmp_path / "checkpoint/quarantine").glob("*.parquet"))


def test_the_console_shows_rows_and_goes_on(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, sink='format = "console"\n')
    produce(broker, topic, orders(0, 30))
    run_here(pipeline)
    shown = capsys.readouterr().out
    assert "batch 0: 30 rows" in shown
    assert shown.count("book") == 20
    assert run_here(pipeline).batches == 0
