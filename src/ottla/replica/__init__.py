"""The partitions of this broker: who leads them, how far they are replicated, and who waits for that."""
