"""Checks of what must survive: power cuts, torn files, bit rot, faults, and histories nobody thought of."""
