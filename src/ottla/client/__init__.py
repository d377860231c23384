"""A blocking client of the protocol itself: for tools and Spark's executors. It moves batches, never records."""
