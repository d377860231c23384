"""Declarative pipelines: topics to tables (or topics), exactly once.

How a record travels: `run.Runner` plans a range of offsets and writes the plan down, tasks read its splits
(`ottla.spark.read.plan`), decode them (`decode`), check them (`expect`) and write Parquet files (`table_files`), and a
sink (`sinks`) makes those files part of the table in one commit that also holds the range and the batch's number. After
a restart the table says which batch it has last; a batch that it has is never written again.
"""
