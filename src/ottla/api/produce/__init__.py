"""Produce: the way of records from a request to the partitions."""
