"""Reading with Spark: from options to offsets, splits, and rows as Arrow batches."""
