"""Compaction: which logs are due, the two passes over old segments, and the cleaner in the background."""
