"""Where raw batches come from: segment files, brokers, or both."""
