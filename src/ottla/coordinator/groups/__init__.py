"""The group coordinator, put together: its state in one partition of `__consumer_offsets`, and its upkeep."""
