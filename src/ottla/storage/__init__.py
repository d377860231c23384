"""The log on disk: segments, indexes, recovery, retention, compaction, in Kafka's file format."""
