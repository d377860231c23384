"""Writing with Spark: rows of Arrow batches into batches of records, and into topics."""
