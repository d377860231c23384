"""Which columns the decoded rows have: given, known from batches before, or found in a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from ottla.errors import PipelineError
from ottla.spark.options import ReadOptions
from ottla.spark.pipeline.checkpoint import Checkpoint
from ottla.spark.pipeline.config import Pipeline
from ottla.spark.pipeline.decode.rows import make_decoder
from ottla.spark.read.plan import read_split
from ottla.spark.read.ranges import Split
from ottla.spark.tables.names import Clashes, told, without_clashes

SAMPLE_ROWS = 10_000


def is_found(pipeline: Pipeline) -> bool:
    """Whether the columns are not given but found in the records."""
    decode = pipeline.decode
    return (decode.value == "json" and decode.schema is None) or (
        decode.value == "confluent-avro" and decode.schema_file is None
    )


def grows(pipeline: Pipeline) -> bool:
    """Whether columns that show up later are taken up."""
    return is_found(pipeline) and pipeline.sink.evolve_schema


def find_columns(
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    options: ReadOptions,
    splits: Sequence[Split],
    note: Callable[[str], None],
) -> pa.Schema | None:
    """The columns that a batch is decoded to."""
    if not is_found(pipeline):
        # A schema that the decoder cannot use is an error here, before any task starts.
        make_decoder(pipeline.decode, pipeline.decode.schema, grow=False)
        return pipeline.decode.schema
    known = checkpoint.schema()
    found, clashes = known, Clashes()
    # A query has to know its columns before it runs: then new ones are looked for in a sample of each batch.
    if found is None or (grows(pipeline) and pipeline.has_transform):
        found, clashes = infer(pipeline, sample(options, splits, SAMPLE_ROWS), found)
        if not found.names:
            raise PipelineError("no columns were found: no record of the sample decodes; give a schema")
    found, more = without_clashes(found, pipeline.decode.metadata_names)
    if clashes := clashes | more:
        told = told_of(pipeline, clashes)
        if not grows(pipeline):
            raise PipelineError(told)
        note(told)
    if known is None or not found.equals(known):
        checkpoint.save_schema(found)
    return found


def told_of(pipeline: Pipeline, clashes: Clashes) -> str:
    """What is done about names that differ only in case."""
    left_out, kept = next(iter(clashes.items()))
    if grows(pipeline):
        return f"{told(clashes)}; {kept} is kept, and {left_out} passed over"
    return f"{told(clashes)}; give a schema, or evolve_schema = true, which keeps {kept} and passes over {left_out}"


def sample(options: ReadOptions, splits: Sequence[Split], count: int) -> Iterator[pa.RecordBatch]:
    """Some records, the same number from each split as far as there are."""
    for split in splits:
        left = max(1, count // len(splits))
        for batch in read_split(options, split):
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                break


def infer(
    pipeline: Pipeline, batches: Iterable[pa.RecordBatch], known: pa.Schema | None = None
) -> tuple[pa.Schema, Clashes]:
    """The columns of some records, beside those that are known; and names that no table can have beside them."""
    decoder = make_decoder(pipeline.decode, known, grow=True)
    for batch in batches:
        decoder.decode(batch)
    return decoder.columns, decoder.clashes


def merged(known: pa.Schema | None, seen: Sequence[pa.Schema]) -> pa.Schema:
    """All columns; numbers of different width get the wider type, other differences keep the first.

    Of names that differ only in case, the first is kept.
    """
    result = known
    for schema in seen:
        if result is None:
            result = schema
            continue
        for column in schema:
            at = result.get_field_index(column.name)
            if at < 0:
                result = result.append(column)
            elif result.field(at).type != column.type:
                result = result.set(at, _wider(result.field(at), column))
    assert result is not None
    return without_clashes(result)[0]


def _wider(known: pa.Field, seen: pa.Field) -> pa.Field:
    try:
        both = pa.unify_schemas([pa.schema([known]), pa.schema([seen])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return known
    return both.field(0)
