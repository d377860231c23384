"""Disks that fail, fill up or are slow, under the real code."""
