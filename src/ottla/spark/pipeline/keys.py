"""Every key of a pipeline file, with its meaning: what the parser checks and docs/pipelines.md lists."""

from __future__ import annotations

from ottla.spark.pipeline.toml_file import Key, Sections

VALUE_FORMATS = ("raw", "utf8", "json", "csv", "avro", "confluent-avro")
ON_ERROR = ("quarantine", "fail", "drop")
SINK_FORMATS = ("delta", "iceberg", "parquet", "topic", "console")
METADATA = ("key", "topic", "partition", "offset", "timestamp")

SECTIONS: Sections = {
    "source": {
        "topics": Key(list, "The topics to read. Either these or `pattern`."),
        "pattern": Key(str, "A regular expression; every topic whose whole name matches, also later ones."),
        "bootstrap": Key(str, "The broker to read from, HOST:PORT, or several with commas."),
        "path": Key(
            (str, list),
            "A data directory or partition directories to read instead; with `bootstrap` too, only the newest "
            "records come from the broker.",
        ),
        "starting": Key(
            (str, object),
            "Where the first run begins: earliest, latest, a time (ISO 8601), or offsets as JSON "
            '(`{"orders": {"0": 23}}`). Later runs go on where the table stands.',
            default="earliest",
        ),
        "isolation": Key(
            str,
            "read_committed leaves out aborted transactions and waits for open ones.",
            ("read_committed", "read_uncommitted"),
            "read_committed",
        ),
        "group": Key(str, "A consumer group to which progress is committed, so that every tool sees the lag."),
        "options": Key(dict, "Further options of the reader, such as `kafka.security.protocol`."),
    },
    "decode": {
        "value": Key(str, "How a record's value is written.", VALUE_FORMATS, "raw"),
        "schema": Key(
            str, "The columns as Spark's DDL. Without it, json is inferred from a sample. csv needs it."
        ),
        "schema_file": Key(str, "An Avro schema (.avsc): of all values (avro), or to read them as."),
        "registry": Key(str, "URL of a schema registry (confluent-avro); user:password@ before the host."),
        "schemas": Key(dict, "Schema files by id instead of a registry (confluent-avro)."),
        "delimiter": Key(str, "Between two fields of a csv line.", default=","),
        "metadata": Key(
            list, "Facts of the record to keep as columns, with `_` before the name (`_offset`).", METADATA
        ),
        "on_error": Key(
            str,
            "What to do with a record that cannot be decoded or fails an expectation.",
            ON_ERROR,
            "quarantine",
        ),
        "quarantine": Key(
            str, "Path of the quarantine table. Without it, the sink's path with `_quarantine` behind."
        ),
    },
    "transform": {
        "sql": Key(str, "A Spark SQL query over the view `source`."),
        "python": Key(str, "`module:function`, a function from a DataFrame to a DataFrame."),
    },
    "expect": {
        "name": Key(str, "Stands in the quarantine table as the error of a row that fails."),
        "check": Key(str, "A SQL expression over the decoded columns. A row passes only if it is true."),
    },
    "sink": {
        "format": Key(str, "Where rows go.", SINK_FORMATS),
        "path": Key(str, "The table's directory (delta, iceberg, parquet)."),
        "partition_by": Key(list, "Columns whose values become directories."),
        "evolve_schema": Key(
            bool, "Whether new columns, and new fields inside of columns, are added to the table.", default=False
        ),
        "table": Key(
            str, "Name of the Iceberg table, namespace.name. Without it, `default.` and the path's last part."
        ),
        "catalog": Key(
            str, "URI of the Iceberg catalog. Without it, a SQLite file `catalog.db` beside the table."
        ),
        "topic": Key(str, "The topic to write to (topic)."),
        "bootstrap": Key(str, "Its broker. Without it, the source's."),
        "options": Key(dict, "Further options of the topic's writer, such as `kafka.security.protocol`."),
        "compact_every": Key(
            int, "Merge small files after this many batches; 0 leaves it to `ottla pipeline compact`.", default=0
        ),
    },
    "run": {
        "trigger": Key(
            str, "available_now (to the present end, then stop) or a pause such as `10 seconds`.",
            default="available_now",
        ),
        "checkpoint": Key(str, "A directory for the plans of batches. It belongs to this pipeline alone."),
        "max_records": Key(
            int, "At most this many offsets in one batch, so that a backfill commits as it goes.", default=5_000_000
        ),
        "split_mb": Key(int, "How many MiB of the log one task reads.", default=64),
    },
}  # fmt: skip
