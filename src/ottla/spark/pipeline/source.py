"""A pipeline's source as options of the reader."""

from __future__ import annotations

import json

from ottla.spark.options import ReadOptions, read_options
from ottla.spark.pipeline.config import Pipeline


def reader_options(pipeline: Pipeline) -> ReadOptions:
    source = pipeline.source
    given = {
        "kafka.isolation.level": source.isolation,
        "targetBytesPerPartition": str(pipeline.split_mb << 20),
        "columns": ",".join(_columns(pipeline)),
        "maxOffsetsPerTrigger": str(pipeline.max_records),
    }
    if source.bootstrap:
        given["kafka.bootstrap.servers"] = source.bootstrap
    if source.path:
        given["path"] = json.dumps(list(source.path))
    if source.topics:
        given["subscribe"] = ",".join(source.topics)
    if source.pattern:
        given["subscribePattern"] = source.pattern
    given |= _starting(source.starting)
    return read_options(given | source.options, is_stream=True)


def _starting(text: str) -> dict[str, str]:
    if text in ("earliest", "latest") or text.lstrip().startswith("{"):
        return {"startingOffsets": text}
    return {"startingTimestamp": text, "startingOffsetsByTimestampStrategy": "latest"}


def _columns(pipeline: Pipeline) -> list[str]:
    """Only what is needed is taken out of the batches; a bad record is told with all but its key."""
    needs_key = pipeline.decode.value in ("raw", "utf8") or "key" in pipeline.decode.metadata
    return [*(["key"] if needs_key else []), "value", "topic", "partition", "offset", "timestamp"]
