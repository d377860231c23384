"""The format of the internal topics: what writes and what reads `__consumer_offsets` and `__transaction_state`."""
