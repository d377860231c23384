"""Declarative pipelines: topics to tables (or topics), exactly once.

What is what, in the order in which a batch meets it:

    Plan        the batch's number, its range of offsets, and its splits (one for each task); written to the checkpoint
                before anything else
    TaskInput   all that a task must know to turn a split into rows: how to read, decode and check it
    RowWriter   writes a task's rows, in the task: files of a table, records of a topic, lines on the console
    TaskResult  what a task leaves: how many records it read, the files it wrote, rows that were bad
    Commit      the whole batch, as the driver makes it part of the target: files, offsets and number in one step
    LastCommit  the last batch that the target has; after a restart it says where to go on
    Target      where the pipeline's rows go: a table, a topic, the console. It gives the tasks their writer, and takes
                the commit
    Sink        a kind of table (`ottla.spark.sinks`: Delta, Iceberg, Parquet). It knows nothing of pipelines: a table
                target has one, and the quarantine is one
    Layout      where and how the files of a table are written (`ottla.spark.tables`); a sink makes it

A batch that the target has is never written again. docs/architecture.md follows one from file to file.
"""
