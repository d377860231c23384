"""Where a pipeline stands, from its table, its checkpoint and its source; nothing is changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ottla.errors import BrokerError
from ottla.spark.offsets import Offsets
from ottla.spark.pipeline.checkpoint import Checkpoint
from ottla.spark.pipeline.config import TABLE_FORMATS, Pipeline
from ottla.spark.pipeline.source import reader_options
from ottla.spark.pipeline.targets.choice import make_target, quarantine_sink, table_sink
from ottla.spark.read.plan import latest_offsets
from ottla.spark.sinks.base import LastCommit


def collect(pipeline: Pipeline) -> dict[str, Any]:
    """Facts by name; `partitions` is a list."""
    checkpoint = Checkpoint(pipeline.checkpoint)
    app_id = checkpoint.known_app_id()
    last = make_target(pipeline, checkpoint).last(app_id) if app_id is not None else None
    plan = checkpoint.last_plan()
    position = _position(checkpoint, last)
    ends, problem = _ends(pipeline)
    partitions = [
        {
            "partition": str(partition),
            "offset": position.get(partition),
            "end": ends.get(partition),
            "lag": ends[partition] - position[partition]
            if partition in ends and partition in position
            else None,
        }
        for partition in sorted({*position, *ends})
    ]
    lags = [one["lag"] for one in partitions if one["lag"] is not None]
    facts = last.facts if last is not None else {}
    return {
        "pipeline": pipeline.file.stem,
        "sink": f"{pipeline.sink.format} {pipeline.sink.path or pipeline.sink.topic}".strip(),
        "source": problem or "reachable",
        "last_batch": last.batch if last is not None else None,
        "last_commit": _time(facts.get("committed_ms")),
        "last_batch_rows": facts.get("rows"),
        "unfinished_batch": plan.batch if plan and plan.batch > (last.batch if last else -1) else None,
        "rows": table_sink(pipeline).row_count() if pipeline.sink.format in TABLE_FORMATS else None,
        "bad_rows": quarantine_sink(pipeline).row_count(),
        "lag": sum(lags) if lags else None,
        "partitions": partitions,
    }


def _position(checkpoint: Checkpoint, last: LastCommit | None) -> Offsets:
    if last is None:
        return {}
    if last.position is not None:
        return last.position.offsets
    plan = checkpoint.plan(last.batch)
    return plan.end.offsets if plan is not None else {}


def _ends(pipeline: Pipeline) -> tuple[Offsets, str]:
    try:
        return latest_offsets(reader_options(pipeline)), ""
    except (BrokerError, OSError) as error:
        return {}, str(error)


def _time(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
