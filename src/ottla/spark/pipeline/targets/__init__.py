"""Where a pipeline's rows go: a table, another topic, or the console."""
