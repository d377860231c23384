"""Fetch: records to clients, also in the old message formats."""
