"""Requests about groups: members of both protocols, committed offsets, and what administrators ask."""
