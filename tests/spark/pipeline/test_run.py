"""The driver loop: each record once whatever happens, and after a restart the table decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from ottla.errors import LogDirLockedError, PipelineError
from ottla.spark.options import ReadOptions
from ottla.spark.pipeline.checkpoint import Checkpoint
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.run import Runner
from ottla.spark.pipeline.targets.choice import table_sink
from ottla.spark.pipeline.validate import dry_run
from ottla.spark.read.loss import DataLostError
from ottla.testing.embedded import EmbeddedBroker
from tests.spark.pipeline.helpers import (
    SCHEMA,
    TABLES,
    EngineHere,
    KilledHere,
    Steps,
    bad_rows,
    landed_ids,
    orders,
    produce,
    run_here,
    sink_lines,
    write_pipeline,
)
from tests.spark.table_rows import table_rows

STEPS = ("planned", "written", "quarantined", "committed")


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_dies_at_any_step_leaves_each_row_once(
    form: str, step: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink_lines(form))
    produce(broker, topic, [*orders(0, 40), b"bad"], 0)
    produce(broker, topic, orders(40, 60), 1)
    with pytest.raises(KilledHere):
        run_here(pipeline, Steps(die_at=step))
    produce(broker, topic, [b"worse", *orders(60, 70)], 1)
    run_here(pipeline)
    assert landed_ids(pipeline) == list(range(70))
    assert [row["bytes"] for row in bad_rows(pipeline)] == [b"bad", b"worse"]


@pytest.mark.parametrize("form", TABLES)
def test_what_an_unfinished_attempt_wrote_is_swept_away(
    form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, sink=sink_lines(form))
    produce(broker, topic, orders(0, 10))
    with pytest.raises(KilledHere):
        run_here(pipeline, Steps(die_at="written"))
    run_here(pipeline)
    files = {str(path) for path in (tmp_path / "lake").rglob("part-*.parquet")}
    assert files == set(table_sink(pipeline).active_files())
    assert len(files) == 1


def test_a_batch_that_was_planned_is_done_with_its_own_range_first(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, orders(0, 5))
    with pytest.raises(KilledHere):
        run_here(pipeline, Steps(die_at="planned"))
    produce(broker, topic, orders(5, 9))
    steps = Steps()
    summary = run_here(pipeline, steps)
    assert steps.steps == [*STEPS, *STEPS]
    assert steps.notes == ["batch 0 was begun and not finished; it is done again"]
    assert (summary.batches, summary.rows) == (2, 9)


def test_a_large_backlog_lands_in_bounded_batches(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    run = 'checkpoint = "checkpoint"\nmax_records = 30\n'
    pipeline = write_pipeline(tmp_path, broker, topic, run=run)
    produce(broker, topic, orders(0, 50), 0)
    produce(broker, topic, orders(50, 100), 1)
    assert run_here(pipeline).batches == 4
    assert landed_ids(pipeline) == list(range(100))


def test_with_nothing_new_nothing_is_committed(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, orders(0, 5))
    run_here(pipeline)
    steps = Steps()
    assert run_here(pipeline, steps).batches == 0
    assert steps.steps == []


def test_aborted_transactions_do_not_land(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(60)
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(topic, b'{"id": %d}' % number, partition=0)
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    run_here(pipeline)
    assert landed_ids(pipeline) == [0, 2]


def test_starting_at_the_latest_leaves_out_what_was_there(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, more_source='starting = "latest"\n')
    produce(broker, topic, orders(0, 5))
    run_here(pipeline)
    produce(broker, topic, orders(5, 8))
    run_here(pipeline)
    assert landed_ids(pipeline) == [5, 6, 7]


def test_starting_offsets_may_be_given(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    source = f'starting = {{ "{topic}" = {{ "0" = 3, "1" = -2 }} }}\n'
    pipeline = write_pipeline(tmp_path, broker, topic, more_source=source)
    produce(broker, topic, orders(0, 5), 0)
    produce(broker, topic, orders(5, 7), 1)
    run_here(pipeline)
    assert landed_ids(pipeline) == [3, 4, 5, 6]


def test_progress_is_committed_to_the_group(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic, more_source=f'group = "{topic}-lake"\n')
    produce(broker, topic, orders(0, 5), 0)
    produce(broker, topic, orders(5, 8), 1)
    run_here(pipeline)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"{topic}-lake", "log_level": 0})
    committed = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], 20)
    consumer.close()
    assert [one.offset for one in committed] == [5, 3]


@pytest.mark.parametrize("count", [2, 9])
def test_a_topic_that_was_made_anew_is_told_and_not_passed_over(
    count: int, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, orders(0, 5))
    run_here(pipeline)
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    produce(broker, topic, orders(100, 100 + count))
    with pytest.raises(DataLostError, match=f"{topic}-0: the topic was deleted and made anew"):
        run_here(pipeline)
    assert landed_ids(pipeline) == list(range(5))
    lenient = write_pipeline(tmp_path, broker, topic, more_source='options = { failOnDataLoss = "false" }\n')
    with pytest.warns(RuntimeWarning, match="made anew"):
        run_here(lenient)
    assert landed_ids(pipeline) == [*range(5), *range(100, 100 + count)]


def test_one_pipeline_is_run_by_one_process(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    monkeypatch.setattr("ottla.spark.pipeline.checkpoint._FS.lock", lambda path: None)
    with pytest.raises(LogDirLockedError, match="is running already"):
        run_here(pipeline)


@pytest.mark.parametrize(
    ("on_error", "ids", "bad"), [("quarantine", [0, 1], [b"bad"]), ("drop", [0, 1], [])], ids=str
)
def test_bad_records_are_put_aside_or_dropped(
    on_error: str, ids: list[int], bad: list[bytes], broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    decode = f'value = "json"\nschema = "{SCHEMA}"\non_error = "{on_error}"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, decode=decode)
    produce(broker, topic, [*orders(0, 2), b"bad"])
    assert run_here(pipeline).bad == 1
    assert landed_ids(pipeline) == ids
    assert [row["bytes"] for row in bad_rows(pipeline)] == bad


def test_a_bad_record_ends_a_pipeline_that_says_fail(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    decode = f'value = "json"\nschema = "{SCHEMA}"\non_error = "fail"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, decode=decode)
    produce(broker, topic, [*orders(0, 2), b"bad"])
    with pytest.raises(PipelineError, match=f"{topic}-0, offset 2: the value is not a JSON object"):
        run_here(pipeline)
    assert landed_ids(pipeline) == []


def test_a_quarantined_row_says_where_it_came_from_and_why(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    checks = '[[expect]]\nname = "cheap"\ncheck = "price < 10"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, extra=checks)
    produce(broker, topic, [{"id": 0, "price": 1}, {"id": 1, "price": 99}, b"\xff", None], 1)
    run_here(pipeline)
    assert landed_ids(pipeline) == [0]
    found = [
        (row["topic"], row["partition"], row["offset"], row["error"], row["bytes"])
        for row in bad_rows(pipeline)
    ]
    assert found == [
        (topic, 1, 1, "cheap", b'{"id": 1, "price": 99}'),
        (topic, 1, 2, "the value is not UTF-8", b"\xff"),
        (topic, 1, 3, "the record has no value", None),
    ]


def test_the_table_alone_says_where_to_go_on(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    pipeline = write_pipeline(tmp_path, broker, topic)
    produce(broker, topic, orders(0, 5))
    run_here(pipeline)
    for plan in (tmp_path / "checkpoint/plans").iterdir():
        plan.unlink()
    produce(broker, topic, orders(5, 8))
    run_here(pipeline)
    assert landed_ids(pipeline) == list(range(8))
    assert Checkpoint(pipeline.checkpoint).last_plan() is not None


def test_new_topics_that_match_the_pattern_are_taken_up(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("match-one", 1)
    source = f'pattern = "match-.*"\nbootstrap = "{broker.bootstrap}"\n'
    pipeline = write_pipeline(tmp_path, broker, "unused", source=source)
    produce(broker, "match-one", orders(0, 3))
    run_here(pipeline)
    broker.create_topic("match-two", 1)
    produce(broker, "match-two", orders(3, 6))
    run_here(pipeline)
    assert landed_ids(pipeline) == list(range(6))


def test_plain_parquet_is_right_for_readers_that_know_nothing_of_commits(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = write_pipeline(
        tmp_path, broker, topic, sink=sink_lines("parquet", 'partition_by = ["item"]\n')
    )
    produce(broker, topic, orders(0, 30))
    with pytest.raises(KilledHere):
        run_here(pipeline, Steps(die_at="written"))
    run_here(pipeline)
    found = spark.read.parquet(str(tmp_path / "lake/rows")).collect()
    assert sorted(row.id for row in found) == list(range(30))
    assert {row["item"] for row in found} == {"book"}


def inferred(tmp_path: Path, broker: EmbeddedBroker, topic: str, form: str = "delta") -> Pipeline:
    sink = sink_lines(form, "evolve_schema = true\n")
    return write_pipeline(tmp_path, broker, topic, decode='value = "json"\n', sink=sink)


def rows_by_id(pipeline: Pipeline) -> list[dict[str, object]]:
    table = table_rows(table_sink(pipeline))
    assert table is not None
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("form", TABLES)
def test_inferred_columns_grow_with_the_records(
    form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = inferred(tmp_path, broker, topic, form)
    produce(broker, topic, [{"id": 1, "at": "2026-01-01"}])
    run_here(pipeline)
    produce(broker, topic, [{"id": 2}, {"id": 3, "tags": ["a"], "deep": {"x": 1}}])
    run_here(pipeline)
    produce(broker, topic, [{"id": 4, "deep": {"x": 2}}])
    run_here(pipeline)
    assert rows_by_id(pipeline)[2:] == [
        {"id": 3, "at": None, "tags": ["a"], "deep": {"x": 1}},
        {"id": 4, "at": None, "tags": None, "deep": {"x": 2}},
    ]


@pytest.mark.parametrize("form", TABLES)
def test_inferred_fields_inside_of_columns_grow_with_the_records(
    form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = inferred(tmp_path, broker, topic, form)
    produce(broker, topic, [{"id": 1, "deep": {"x": 1}, "list": [{"x": 1}]}])
    run_here(pipeline)
    # Two tasks of one batch see different ones.
    produce(broker, topic, [{"id": 2, "deep": {"x": 2, "y": {"z": "new"}}, "list": []}], 0)
    produce(broker, topic, [{"id": 3, "deep": {"w": 2.5}, "list": [{"y": True}]}], 1)
    run_here(pipeline)
    assert rows_by_id(pipeline) == [
        {"id": 1, "deep": {"x": 1, "y": None, "w": None}, "list": [{"x": 1, "y": None}]},
        {"id": 2, "deep": {"x": 2, "y": {"z": "new"}, "w": None}, "list": []},
        {"id": 3, "deep": {"x": None, "y": None, "w": 2.5}, "list": [{"x": None, "y": True}]},
    ]


@pytest.mark.parametrize("form", TABLES)
def test_a_longer_schema_in_the_file_grows_inside_of_columns(
    form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    for fields, evolve in (("x: long", "false"), ("x: long, y: string", "true")):
        decode = f'value = "json"\nschema = "id long, deep struct<{fields}>"\n'
        sink = sink_lines(form, f"evolve_schema = {evolve}\n")
        pipeline = write_pipeline(tmp_path, broker, topic, decode=decode, sink=sink)
        produce(broker, topic, [{"id": len(fields), "deep": {"x": 1, "y": "a"}}])
        run_here(pipeline)
    assert [row["deep"] for row in rows_by_id(pipeline)] == [{"x": 1, "y": None}, {"x": 1, "y": "a"}]


def test_tasks_that_see_a_new_column_differently_agree_on_one_type(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = inferred(tmp_path, broker, topic)
    produce(broker, topic, [{"id": 0}])
    run_here(pipeline)
    produce(broker, topic, [{"id": 1, "n": 1, "m": 1}], 0)
    produce(broker, topic, [{"id": 2, "n": 2.5}, {"id": 3, "m": "text"}], 1)
    summary = run_here(pipeline)
    assert [row.get("n") for row in rows_by_id(pipeline)] == [None, 1.0, 2.5]
    assert (summary.rows, summary.bad) == (2, 1)
    assert [row["offset"] for row in bad_rows(pipeline)] == [1]


def test_a_pipeline_with_a_pause_goes_on_until_it_is_stopped(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    run = 'checkpoint = "checkpoint"\ntrigger = "7 seconds"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, run=run)
    produce(broker, topic, orders(0, 3))
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        produce(broker, topic, orders(3 * len(waits), 3 * len(waits) + 3))
        if len(waits) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runner(pipeline, EngineHere, Steps(), wait=wait).run()
    assert landed_ids(pipeline) == list(range(9))
    assert all(5 < seconds <= 7 for seconds in waits)
    run_here(pipeline)
    assert landed_ids(pipeline) == list(range(12))


def test_a_pipeline_with_a_pause_waits_for_a_broker_that_is_away(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    run = 'checkpoint = "checkpoint"\ntrigger = "1 second"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, run=run)
    produce(broker, topic, orders(0, 3))
    steps = Steps()

    def refused(options: ReadOptions) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    patch = pytest.MonkeyPatch()
    patch.setattr("ottla.spark.read.stream.open_transport", refused)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        patch.undo()
        if len(waits) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runner(pipeline, EngineHere, steps, wait=wait).run()
    assert steps.notes == ["[Errno 111] Connection refused; trying again"]
    assert landed_ids(pipeline) == list(range(3))


def test_segment_files_are_read_without_a_broker(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "data") as broker:
        broker.create_topic("topic", 2)
        produce(broker, "topic", orders(0, 5), 0)
        produce(broker, "topic", orders(5, 9), 1)
    pipeline = write_pipeline(tmp_path, broker, "topic", source='topics = ["topic"]\npath = "data"\n')
    run_here(pipeline)
    assert landed_ids(pipeline) == list(range(9))


# -- names that differ only in case


@pytest.mark.parametrize("form", TABLES)
def test_of_keys_that_differ_only_in_case_one_is_kept_and_the_other_told(
    form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    pipeline = inferred(tmp_path, broker, topic, form)
    produce(broker, topic, [{"id": 1, "ID": 9, "in": {"x": 1, "X": 2}}, {"id": 2}])
    steps = Steps()
    run_here(pipeline, steps)
    assert "the names id and ID differ only in case" in steps.notes[0]
    assert "id is kept, and ID passed over" in steps.notes[0]
    # Later ones too, in whichever task.
    produce(broker, topic, [{"id": 3, "Id": 9, "new": 1}], 0)
    produce(broker, topic, [{"id": 4, "NEW": 2}], 1)
    steps = Steps()
    run_here(pipeline, steps)
    assert "id and Id differ only in case" in steps.notes[0]
    assert [row["id"] for row in rows_by_id(pipeline)] == [1, 2, 3, 4]
    columns = table_sink(pipeline).schema()
    assert columns is not None
    assert [name.lower() for name in columns.names] == ["id", "in", "new"]
    assert [field.name for field in columns.field("in").type] == ["x"]


def test_without_evolve_schema_such_keys_end_the_run_before_anything_is_written(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    decode = 'value = "json"\n'
    pipeline = write_pipeline(tmp_path, broker, topic, decode=decode)
    produce(broker, topic, [{"id": 1}, {"id": 2, "ID": 9}])
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"id and ID differ only in case.*evolve_schema = true"):
            run_here(pipeline)
    assert table_sink(pipeline).schema() is None
    report = dry_run(pipeline, 10, lambda: pytest.fail("there is nothing to do for Spark"))
    assert "id and ID differ only in case" in report.problems[0]
    pipeline = write_pipeline(
        tmp_path, broker, topic, decode=decode, sink=sink_lines("delta", "evolve_schema = true\n")
    )
    assert "id is kept" in dry_run(pipeline, 10, lambda: pytest.fail("nor now")).notes[0]
    run_here(pipeline)
    assert landed_ids(pipeline) == [1, 2]


def test_a_key_with_the_name_of_metadata_is_passed_over(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    decode = 'value = "json"\nmetadata = ["offset"]\n'
    sink = sink_lines("delta", "evolve_schema = true\n")
    pipeline = write_pipeline(tmp_path, broker, topic, decode=decode, sink=sink)
    produce(broker, topic, [{"id": 1, "_offset": 9}, {"id": 2, "_OFFSET": 9}])
    run_here(pipeline)
    assert rows_by_id(pipeline) == [{"id": 1, "_offset": 0}, {"id": 2, "_offset": 1}]


@pytest.mark.parametrize("form", TABLES)
def test_a_column_that_a_table_has_in_another_case_is_told(
    form: str, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [{"id": 1, "ID": 1}])
    for schema in ("id long", "ID long"):
        decode = f'value = "json"\nschema = "{schema}"\n'
        sink = sink_lines(form, "evolve_schema = true\n")
        run = f'checkpoint = "checkpoint-{schema[:2]}"\n'
        pipeline = write_pipeline(tmp_path, broker, topic, decode=decode, sink=sink, run=run)
        if schema == "id long":
            run_here(pipeline)
    with pytest.raises(PipelineError, match="the names id and ID differ only in case"):
        run_here(pipeline)
    report = dry_run(pipeline, 10, lambda: pytest.fail("there is nothing to do for Spark"))
    assert "the names id and ID differ only in case" in report.problems[0]
