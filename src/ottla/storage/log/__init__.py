"""One partition's log: segments, appends, reads, flushes, truncation, retention."""
