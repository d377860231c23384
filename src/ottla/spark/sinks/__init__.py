"""Tables that a batch of rows can be committed to, exactly once: Delta, Iceberg, and Parquet with a commit log."""
