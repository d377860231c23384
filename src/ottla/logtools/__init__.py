"""What `ottla log` does to a log directory: show, dump, verify, repair, reindex, compact, trim."""
